// A script as values: what docs/scripts.md describes as text. parser.h makes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace rocemu::script {

// Both count from 1.
struct Place {
  unsigned line = 0;
  unsigned column = 0;
};

// A text that is no script: what is wrong, and what is allowed there.
class SyntaxError : public std::runtime_error {
 public:
  SyntaxError(Place place, const std::string& message)
      : std::runtime_error(message), place_(place) {}
  Place place() const { return place_; }

 private:
  Place place_;
};

// The value behind a key. The vocabulary says which kinds a key takes.
struct Value {
  enum class Kind : uint8_t {
    none,      // the key alone: a flag
    number,    // 5, 0x5
    range,     // 5..7
    any,       // *
    relative,  // +5, of a PSN: from the first of its stream on
    name,      // m, m+5: an object's address or key, with something added; a word
    flags,     // a|b
    length,    // a number of bytes, whatever they are
    counted,   // 8 from 3: 3 4 5 …
    filled,    // 8 of 3: 3 3 3 …
    literal,   // "0a0b"
    word,      // word 5: eight bytes as the processor stores them
  };
  Kind kind = Kind::none;
  uint64_t number = 0;  // also a length, and what is added to a name
  uint64_t last = 0;    // end of a range; bytes: value of the first
  std::string text;     // name, word or flags, as written
  std::vector<std::byte> bytes;

  bool is_bytes() const { return kind >= Kind::length; }
  // The bytes that are meant; of a mere length those that count from 0.
  std::vector<std::byte> make_bytes() const;
};

struct Field {
  std::string key;
  Value value;
  Place place;
};

// A list of fields, by key. A flag's value is of kind none.
struct Fields {
  std::vector<Field> list;
  bool open = false;  // ended with "...": what is not named may be anything

  const Value* find(const std::string& key) const;
  bool has(const std::string& key) const { return find(key) != nullptr; }
  uint64_t number(const std::string& key, uint64_t otherwise) const;
  std::string text(const std::string& key, const std::string& otherwise = {}) const;

  void add(const std::string& key, uint64_t number);
  void add_word(const std::string& key, const std::string& word);
  void add_flag(const std::string& key);
};

// The results of calls, both as expected and as they came, are fields as well: the key "result" has
// the first word, others what it consists of.
struct Call {
  std::string verb;
  Fields arguments;
  Fields result;
  std::string source;  // the call as it is written, without its result
};

// A frame that the script sends, or one that it expects of the NIC.
struct Frame {
  bool from_nic = false;
  bool nothing = false;  // expected: none at all
  std::string opcode;
  Fields fields;
};

// The time after the line before. An action happens at the first; an expectation is to be met
// between both.
struct Timing {
  TimeNs first_ns = 0;
  std::optional<TimeNs> last_ns;
};

struct Line {
  Place place;
  Timing timing;
  std::optional<Call> call;  // else a frame
  Frame frame;
  std::string source;
};

struct Script {
  std::string file;
  std::string title;  // the comment of the first line, which names the clause
  std::vector<Line> lines;
};

}  // namespace rocemu::script
