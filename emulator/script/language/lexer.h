// A line of a script as tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/script/language/script.h"

namespace rocemu::script {

struct Token {
  enum class Kind : uint8_t { word, number, duration, text, sign, end };
  Kind kind = Kind::end;
  std::string text;     // a word, a sign, what stands between quotes; as written otherwise
  uint64_t number = 0;  // a duration's in nanoseconds
  Place place;
  size_t begin = 0;  // where in the line it is written
  size_t end = 0;
};

// Signs are ( ) , = + - * | < > .. and ...; a comment, from # on, is no token. The last token is
// `end`. Throws SyntaxError.
std::vector<Token> tokens_of(std::string_view line, unsigned line_number);

}  // namespace rocemu::script
