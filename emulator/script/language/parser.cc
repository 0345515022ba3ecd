#include "emulator/script/language/parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "emulator/script/language/lexer.h"
#include "emulator/script/language/vocabulary.h"

namespace rocemu::script {

namespace {

using Kind = Token::Kind;

std::string names_of(std::span<const Key> keys) {
  std::string text;
  for (const Key& key : keys) text += (text.empty() ? "" : " ") + std::string(key.name);
  return text;
}

const Key* find_key(std::span<const Key> keys, std::string_view name) {
  const auto found = std::ranges::find(keys, name, &Key::name);
  return found == keys.end() ? nullptr : &*found;
}

bool is_error_name(std::string_view word) {
  return word.size() > 2 && word[0] == 'E' &&
         std::ranges::all_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
}

// The parts of one line, from left to right.
class LineParser {
 public:
  LineParser(std::string_view text, unsigned number)
      : text_(text), tokens_(tokens_of(text, number)) {}

  bool empty() const { return at().kind == Kind::end; }

  Line line() {
    Line line;
    line.place = at().place;
    if (take_sign("+")) line.timing = timing();
    const size_t begin = at().begin;
    if (take_sign("<")) {
      line.frame = frame(false);
    } else if (take_sign(">")) {
      line.frame = frame(true);
    } else {
      line.call = call();
    }
    if (!empty()) fail("the line goes on where it should end");
    line.source = std::string(text_.substr(begin, at().begin - begin));
    while (line.source.ends_with(' ')) line.source.pop_back();
    return line;
  }

  Call call(bool needs_result = true) {
    const Token name = at();
    const Verb* verb = name.kind == Kind::word ? find_verb(name.text) : nullptr;
    if (verb == nullptr)
      fail("'" + name.text + "' is no verb; a line has <, > or one of: " + all_verbs());
    ++at_;
    Call call;
    call.verb = name.text;
    need_sign("(", "the arguments of " + name.text);
    call.arguments = arguments(*verb);
    const size_t end = at().end;
    need_sign(")", "the end of the arguments");
    call.source = std::string(text_.substr(name.begin, end - name.begin));
    if (take_sign("=")) {
      call.result = result(*verb);
      if (call.verb == "memory") name_length(call);
    } else if (!verb->result.empty()) {
      if (needs_result) fail(call.verb + " needs = and what it gives: " + names_of(verb->result));
    } else {
      call.result.add_word("result", "ok");
    }
    return call;
  }

  // Whoever reads the memory has to know how much of it.
  static void name_length(Call& call) {
    const size_t bytes = call.result.find("result")->make_bytes().size();
    call.arguments.add("bytes", bytes);
    call.source.pop_back();
    call.source += ", bytes " + std::to_string(bytes) + ")";
  }

  Fields result(const Verb& verb) {
    Fields fields;
    if (verb.result.empty()) {
      if (at().text != "ok" && !is_error_name(at().text))
        fail("the result is ok or a name of errno.h, like EINVAL");
      fields.add_word("result", at().text);
      ++at_;
    } else if (is_error_name(at().text)) {
      fields.add_word("result", at().text);
      ++at_;
    } else {
      add_field(fields, "result", verb.result[0]);
      if (verb.result.size() > 1 && at().kind != Kind::end && peek_is(",") &&
          is_one_of(verb.result[1].words, tokens_[at_ + 1].text)) {
        ++at_;
        add_field(fields, "opcode", verb.result[1]);
      }
    }
    while (take_sign(",")) {
      if (take_sign("...")) {
        fields.open = true;
        break;
      }
      // The numbers of a new object, by which frames name it.
      static constexpr std::array<Key, 6> kNumbers{
          {{"qpn"}, {"va"}, {"rkey"}, {"lkey"}, {"srqn"}, {"errno"}}};
      keyed_field(fields, verb.result.empty() ? std::span<const Key>(kNumbers)
                                              : std::span<const Key>(verb.result_keys));
    }
    return fields;
  }

  void need_end() {
    if (!empty()) fail("the text goes on where it should end");
  }

 private:
  const Token& at() const { return tokens_[std::min(at_, tokens_.size() - 1)]; }
  bool peek_is(std::string_view sign) const { return at().kind == Kind::sign && at().text == sign; }
  bool take_sign(std::string_view sign) {
    if (!peek_is(sign)) return false;
    ++at_;
    return true;
  }
  void need_sign(std::string_view sign, const std::string& what) {
    if (!take_sign(sign)) fail("'" + std::string(sign) + "' is missing: " + what);
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw SyntaxError(at().place, message);
  }

  TimeNs duration() {
    const Token& token = at();
    const bool zero = token.kind == Kind::number && token.number == 0;
    if (token.kind != Kind::duration && !zero)
      fail("a time has a unit: ns, us, ms or s (0 may have none)");
    ++at_;
    return token.number;
  }

  Timing timing() {
    Timing timing;
    timing.first_ns = duration();
    if (!take_sign("..")) return timing;
    timing.last_ns = duration();
    if (*timing.last_ns < timing.first_ns) fail("the later time stands first");
    return timing;
  }

  Fields arguments(const Verb& verb) {
    Fields fields;
    if (peek_is(")")) {
      if (verb.needed > 0) fail("missing: " + names_of(verb.positional));
      return fields;
    }
    size_t position = 0;
    do {
      const bool by_name = at().kind == Kind::word && find_key(verb.keys, at().text) != nullptr;
      if (position < verb.positional.size() && !by_name) {
        const Key& key = verb.positional[position];
        add_field(fields, std::string(key.name), key);
        ++position;
      } else {
        if (position < verb.needed) fail("missing: " + std::string(verb.positional[position].name));
        keyed_field(fields, verb.keys);
      }
    } while (take_sign(","));
    if (position < verb.needed) fail("missing: " + std::string(verb.positional[position].name));
    return fields;
  }

  Frame frame(bool from_nic) {
    Frame frame;
    frame.from_nic = from_nic;
    frame.opcode = at().text;
    if (from_nic && frame.opcode == "nothing") {
      ++at_;
      frame.nothing = true;
      return frame;
    }
    const Opcode* opcode = find_opcode(frame.opcode);
    if (at().kind != Kind::word || opcode == nullptr)
      fail("'" + frame.opcode + "' is no opcode; there are: " + all_opcodes());
    ++at_;
    // The headers are known when the transport is; the parser allows those of any transport.
    std::vector<Key> keys(common_fields().begin(), common_fields().end());
    const std::vector<Key> needed = fields_of_headers(*opcode, keys);
    while (!empty()) {
      if (take_sign("...")) {
        frame.fields.open = true;
        break;
      }
      keyed_field(frame.fields, keys);
      if (!take_sign(",")) break;
    }
    check_complete(frame, needed);
    return frame;
  }

  // Adds to `keys` what the frame may have, and returns what it has to name.
  static std::vector<Key> fields_of_headers(const Opcode& opcode, std::vector<Key>& keys) {
    std::vector<Key> needed;
    if (!opcode.operation) {
      const std::vector<Key> more = header_fields(opcode, {});
      keys.insert(keys.end(), more.begin(), more.end());
      return needed;
    }
    for (const wire::Transport transport :
         {wire::Transport::rc, wire::Transport::ud, wire::Transport::xrc})
      for (const Key& key :
           header_fields(opcode, wire::traits_of(wire::bth_opcode(transport, *opcode.operation)))) {
        if (find_key(keys, key.name) == nullptr) keys.push_back(key);
        const bool may_lack =
            is_one_of("msn credits", key.name) ||
            (key.name == "syndrome" && opcode.operation != wire::Operation::acknowledge);
        if (transport == wire::Transport::rc && !may_lack) needed.push_back(key);
      }
    needed.push_back({"psn", Takes::psn});
    if (wire::traits_of(wire::bth_opcode(wire::Transport::rc, *opcode.operation)).payload)
      needed.push_back({"payload", Takes::bytes});
    return needed;
  }

  // A frame that is sent may leave its payload and some others out: they are empty or 0.
  void check_complete(const Frame& frame, const std::vector<Key>& needed) const {
    if (frame.fields.open && !frame.from_nic) fail("... is for frames that are expected");
    if (frame.fields.open) return;
    for (const Key& key : needed) {
      const bool is_needed = frame.from_nic || is_one_of("psn va rkey len timer", key.name);
      if (is_needed && !frame.fields.has(std::string(key.name)))
        fail(frame.opcode + " needs " + std::string(key.name) +
             (frame.from_nic ? ", or ... at its end" : ""));
    }
  }

  void keyed_field(Fields& fields, std::span<const Key> keys) {
    const Key* key = at().kind == Kind::word ? find_key(keys, at().text) : nullptr;
    if (key == nullptr)
      fail("'" + at().text + "' is none of what may stand here: " + names_of(keys));
    if (fields.has(at().text)) fail("'" + at().text + "' stands here twice");
    ++at_;
    add_field(fields, std::string(key->name), *key);
  }

  void add_field(Fields& fields, const std::string& name, const Key& key) {
    const Place place = at().place;
    fields.list.push_back({name, value(key), place});
  }

  Value value(const Key& key) {
    switch (key.takes) {
      case Takes::nothing:
        return {};
      case Takes::number:
        // ackreq and se stand for 1 when they are alone.
        if (is_one_of("ackreq se", key.name) && (peek_is(",") || empty())) return number_value(1);
        return pattern(key);
      case Takes::psn:
        return peek_is("+") ? relative() : pattern(key);
      case Takes::place:
      case Takes::key:
        return at().kind == Kind::word ? name_and_offset() : pattern(key);
      case Takes::bytes:
        return bytes();
      case Takes::word:
        return word(key);
      case Takes::flags:
        return flags(key);
      case Takes::object:
      case Takes::new_object:
      case Takes::error:
        return name(key);
    }
    return {};
  }

  static Value number_value(uint64_t number) {
    return {.kind = Value::Kind::number, .number = number, .text = {}, .bytes = {}};
  }

  uint64_t number(const Key& key) {
    if (at().kind != Kind::number) fail(std::string(key.name) + " is a number");
    return tokens_[at_++].number;
  }

  Value pattern(const Key& key) {
    if (take_sign("*")) return {.kind = Value::Kind::any, .text = {}, .bytes = {}};
    Value value = number_value(number(key));
    if (!take_sign("..")) return value;
    value.kind = Value::Kind::range;
    value.last = number(key);
    if (value.last < value.number) fail("the larger number stands first");
    return value;
  }

  Value relative() {
    ++at_;
    Value value = number_value(number({"a PSN behind +"}));
    value.kind = Value::Kind::relative;
    return value;
  }

  Value name_and_offset() {
    Value value{.kind = Value::Kind::name, .text = at().text, .bytes = {}};
    ++at_;
    const bool minus = peek_is("-");
    if (minus || peek_is("+")) {
      ++at_;
      const uint64_t offset = number({"what is added"});
      value.number = minus ? ~offset + 1 : offset;
    }
    return value;
  }

  Value name(const Key& key) {
    if (at().kind != Kind::word) fail(std::string(key.name) + " is a name");
    return {.kind = Value::Kind::name, .text = tokens_[at_++].text, .bytes = {}};
  }

  Value word(const Key& key) {
    if (!is_one_of(key.words, at().text))
      fail("'" + at().text + "' is none of: " + std::string(key.words));
    return {
        .kind = Value::Kind::name, .number = at().number, .text = tokens_[at_++].text, .bytes = {}};
  }

  Value flags(const Key& key) {
    Value value = word(key);
    value.kind = Value::Kind::flags;
    while (take_sign("|")) value.text += "|" + word(key).text;
    return value;
  }

  Value bytes() {
    if (take_sign("*")) return {.kind = Value::Kind::any, .text = {}, .bytes = {}};
    if (at().kind == Kind::text) return literal();
    if (at().text == "word") {
      ++at_;
      Value value = number_value(number({"word"}));
      value.kind = Value::Kind::word;
      return value;
    }
    if (at().kind != Kind::number)
      fail("bytes are N, N of BYTE, N from BYTE, word NUMBER or \"hexadecimal digits\"");
    Value value = number_value(number({"a length"}));
    if (value.number > kMaxPayloadBytes) fail("more than 65536 bytes");
    value.kind = Value::Kind::length;
    for (const auto& [between, kind] :
         {std::pair{"of", Value::Kind::filled}, std::pair{"from", Value::Kind::counted}}) {
      if (at().text != between) continue;
      ++at_;
      value.kind = kind;
      value.last = number({"a byte"});
      break;
    }
    return value;
  }

  Value literal() {
    Value value{.kind = Value::Kind::literal, .text = at().text, .bytes = {}};
    const std::string& digits = value.text;
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
      unsigned byte = 0;
      for (const char c : {digits[i], digits[i + 1]}) {
        const size_t digit = std::string_view("0123456789abcdef").find(c);
        if (digit == std::string_view::npos) fail("bytes in quotes are pairs of 0-9 and a-f");
        byte = byte * 16 + static_cast<unsigned>(digit);
      }
      value.bytes.push_back(static_cast<std::byte>(byte));
    }
    if (digits.size() % 2 != 0) fail("bytes in quotes are pairs of 0-9 and a-f");
    ++at_;
    return value;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

std::string hexadecimal(uint64_t number) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  do text.insert(text.begin(), kDigits[number & 15]);
  while ((number >>= 4) != 0);
  return "0x" + text;
}

}  // namespace

Script parse_script(const std::string& file, std::string_view text) {
  if (text.size() > kMaxScriptBytes) throw SyntaxError({1, 1}, "a script of more than 1 MiB");
  Script script;
  script.file = file;
  for (unsigned number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1) {
      if (!line.starts_with("# "))
        throw SyntaxError({1, 1}, "the first line is a comment that names the clause");
      script.title = std::string(line.substr(2));
    }
    if (LineParser parser(line, number); !parser.empty()) script.lines.push_back(parser.line());
  }
  if (script.lines.empty()) throw SyntaxError({1, 1}, "there is nothing to play in it");
  return script;
}

Call parse_call(std::string_view text) {
  LineParser parser(text, 1);
  Call call = parser.call(/*needs_result=*/false);
  parser.need_end();
  return call;
}

Fields parse_result(const std::string& verb, std::string_view text) {
  const Verb* known = find_verb(verb);
  if (known == nullptr) throw SyntaxError({1, 1}, "no verb");
  LineParser parser(text, 1);
  Fields fields = parser.result(*known);
  parser.need_end();
  return fields;
}

std::string to_text(const Value& value) {
  switch (value.kind) {
    case Value::Kind::none:
      return "";
    case Value::Kind::number:
      return value.number > 0xffff ? hexadecimal(value.number) : std::to_string(value.number);
    case Value::Kind::range:
      return std::to_string(value.number) + ".." + std::to_string(value.last);
    case Value::Kind::any:
      return "*";
    case Value::Kind::relative:
      return "+" + std::to_string(value.number);
    case Value::Kind::name:
      return value.number == 0 || value.number > 1ull << 63
                 ? value.text
                 : value.text + "+" + std::to_string(value.number);
    case Value::Kind::flags:
      return value.text;
    case Value::Kind::length:
      return std::to_string(value.number);
    case Value::Kind::counted:
      return std::to_string(value.number) + " from " + std::to_string(value.last);
    case Value::Kind::filled:
      return std::to_string(value.number) + " of " + hexadecimal(value.last);
    case Value::Kind::literal:
      return '"' + value.text + '"';
    case Value::Kind::word:
      return "word " + std::to_string(value.number);
  }
  return "";
}

std::string to_text(const Fields& fields) {
  std::string text;
  for (const Field& field : fields.list) {
    if (!text.empty()) text += ", ";
    const bool named = field.key != "result" && field.key != "opcode";
    const std::string value = to_text(field.value);
    text += (named ? field.key : "") + (named && !value.empty() ? " " : "") + value;
  }
  if (fields.open) text += ", ...";
  return text;
}

std::string time_text(TimeNs ns) {
  const bool milliseconds = ns >= 1'000'000;
  const TimeNs unit = milliseconds ? 1'000'000 : 1'000;
  std::string fraction = std::to_string(1000 + ns % unit / (unit / 1000)).substr(1);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return std::to_string(ns / unit) + (fraction.empty() ? "" : "." + fraction) +
         (milliseconds ? " ms" : " us");
}

}  // namespace rocemu::script
