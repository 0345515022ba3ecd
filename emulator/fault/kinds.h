// The kinds of faults: their names, what each has to be told beside whom and when, and how it goes
// on. The table is the truth for the grammar, its errors and the help.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/fault/spec.h"

namespace rocemu::fault {

struct KindRow {
  Kind kind;
  std::string_view name;
  Nature nature;
  // Keys stand with spaces between and around.
  std::string_view whom;    // keys by which it can be about somebody alone
  std::string_view keys;    // keys that it takes beside whom and when
  std::string_view needed;  // keys among these that it has to be given
  std::string_view example;
  std::string_view what;  // one line for the help
};

std::span<const KindRow> kinds();
const KindRow& row_of(Kind kind);
// Null: there is no kind of that name.
const KindRow* find_kind(std::string_view name);

// The calls of programs that can fail or be slow, by name.
std::span<const std::string_view> call_names();

// The statuses of completions: "retry-exc-err" is IBV_WC_RETRY_EXC_ERR.
struct StatusName {
  std::string_view name;
  uint8_t status;
};
std::span<const StatusName> status_names();
std::string status_text(uint8_t status);

}  // namespace rocemu::fault
