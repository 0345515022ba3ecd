// Numbers with a unit, exactly: "0.5%" is 5000 parts per million, "1.5us" is 1500 ns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rocemu::impairment {

struct Unit {
  std::string_view name;
  uint64_t size;  // in the smallest unit
};

// One kind of quantity: its units, the smallest of size 1 among them, and what may be said.
struct Kind {
  std::string_view name;  // "a probability"
  std::span<const Unit> units;
  uint64_t most;  // in the smallest unit
  std::string_view most_text;
  std::string_view example;
};

extern const Kind kProbability;  // parts per million
extern const Kind kDuration;     // nanoseconds
extern const Kind kRate;         // bits per second
extern const Kind kSize;         // bytes

struct ParsedQuantity {
  std::optional<uint64_t> value;  // in the smallest unit
  std::string error;              // names `text`
};

ParsedQuantity parse_quantity(const Kind& kind, std::string_view text);

// Writes it in the largest unit that gives a whole number; probabilities in %.
std::string to_text(const Kind& kind, uint64_t value);

}  // namespace rocemu::impairment
