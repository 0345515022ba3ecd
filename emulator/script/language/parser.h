// Reads a script. docs/scripts.md has the grammar.
#pragma once

#include <string>
#include <string_view>

#include "emulator/script/language/script.h"

namespace rocemu::script {

// Limits of a script: what is longer is refused.
inline constexpr size_t kMaxScriptBytes = 1 << 20;
inline constexpr size_t kMaxPayloadBytes = 1 << 16;

// `file` is for messages alone. Throws SyntaxError.
Script parse_script(const std::string& file, std::string_view text);

// A call alone, as it stands in a line of a script, and a list of results. Throw SyntaxError.
Call parse_call(std::string_view text);
Fields parse_result(const std::string& verb, std::string_view text);

// Both return text that parse_result() reads.
std::string to_text(const Fields& fields);
std::string to_text(const Value& value);
// "1.5 us"
std::string time_text(TimeNs ns);

}  // namespace rocemu::script
