// The findings of a run as files for other programs; docs/check.md has the schema.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "emulator/cli/findings/findings.h"

namespace rocemu::cli {

std::string as_json(const std::vector<FoundOnce>& findings);

// For people, and for scripts that want to know where: "NAME: SENTENCE" begins a finding, a frame
// has two blanks in front, a blank line ends the finding. The counts come last.
std::string as_text(const std::vector<FoundOnce>& findings);

// A test case for each finding, which fails; a single one that passes where there are none.
std::string as_junit(const std::vector<FoundOnce>& findings);

// By the file's name: .xml is JUnit, all else JSON. Throws Failure when it can't be written.
void write_report(const std::filesystem::path& file, const std::vector<FoundOnce>& findings);
// What stands there until the program has ended, and stays where it never ran: an error.
void write_report_of_none(const std::filesystem::path& file);

}  // namespace rocemu::cli
