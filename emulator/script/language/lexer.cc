#include "emulator/script/language/lexer.h"

#include <array>
#include <charconv>
#include <utility>

namespace rocemu::script {

namespace {

constexpr std::array<std::pair<std::string_view, uint64_t>, 4> kUnits{
    {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
constexpr uint64_t kLongestNs = 3600ull * 1'000'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  Lexer(std::string_view line, unsigned number) : line_(line), number_(number) {}

  std::vector<Token> all() {
    std::vector<Token> tokens;
    do {
      while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r'))
        ++at_;
      const size_t begin = at_;
      Token token = next();
      token.place = {number_, static_cast<unsigned>(begin) + 1};
      token.begin = begin;
      token.end = at_;
      tokens.push_back(std::move(token));
    } while (tokens.back().kind != Token::Kind::end);
    return tokens;
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < line_.size() ? line_[at_ + ahead] : '\0';
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw SyntaxError({number_, static_cast<unsigned>(at_) + 1}, message);
  }

  Token next() {
    if (at_ == line_.size() || peek() == '#') return {};
    if (is_digit(peek())) return number();
    if (is_letter(peek())) return word();
    if (peek() == '"') return quoted();
    return sign();
  }

  Token word() {
    const size_t begin = at_;
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    return {Token::Kind::word, std::string(line_.substr(begin, at_ - begin)), 0, {}};
  }

  Token quoted() {
    const size_t close = line_.find('"', at_ + 1);
    if (close == std::string_view::npos) fail("a text in quotes does not end");
    Token token{Token::Kind::text, std::string(line_.substr(at_ + 1, close - at_ - 1)), 0, {}};
    at_ = close + 1;
    return token;
  }

  Token number() {
    const size_t begin = at_;
    const bool hexadecimal = peek() == '0' && peek(1) == 'x';
    if (hexadecimal) at_ += 2;
    uint64_t value = 0;
    const char* const end = line_.data() + line_.size();
    const auto read = std::from_chars(line_.data() + at_, end, value, hexadecimal ? 16 : 10);
    if (read.ec != std::errc()) fail("a number that is none, or has more than 64 bits");
    at_ = static_cast<size_t>(read.ptr - line_.data());
    if (!hexadecimal && (is_letter(peek()) || (peek() == '.' && is_digit(peek(1)))))
      return duration(begin, value);
    return {Token::Kind::number, std::string(line_.substr(begin, at_ - begin)), value, {}};
  }

  // The whole part has been read.
  Token duration(size_t begin, uint64_t whole) {
    uint64_t fraction = 0;
    uint64_t parts = 1;
    if (peek() == '.') {
      for (++at_; is_digit(peek()) && parts < kLongestNs; ++at_, parts *= 10)
        fraction = fraction * 10 + static_cast<uint64_t>(peek() - '0');
    }
    const std::string unit = word().text;
    for (const auto& [name, ns] : kUnits) {
      if (name != unit) continue;
      if (whole > kLongestNs / ns) fail("a time of more than an hour");
      const uint64_t total = whole * ns + fraction * ns / parts;
      return {Token::Kind::duration, std::string(line_.substr(begin, at_ - begin)), total, {}};
    }
    at_ = begin;
    fail("a number is followed by no unit, or by ns, us, ms or s");
  }

  Token sign() {
    for (const std::string_view sign :
         {"...", "..", "(", ")", ",", "=", "+", "-", "*", "|", "<", ">"})
      if (line_.substr(at_).starts_with(sign)) {
        at_ += sign.size();
        return {Token::Kind::sign, std::string(sign), 0, {}};
      }
    fail("a character that no script has; signs are ( ) , = + - * | < > .. and ...");
  }

  std::string_view line_;
  unsigned number_;
  size_t at_ = 0;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view line, unsigned line_number) {
  return Lexer(line, line_number).all();
}

}  // namespace rocemu::script
