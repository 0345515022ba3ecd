// Impairments and the links they are for, as options and the control protocol carry them:
//
//   SPEC                    every port's transmit direction, so once per direction of each path
//   PORT:SPEC               what that port sends
//   PORT.tx:SPEC  PORT.rx:SPEC  PORT.both:SPEC
//
// PORT is a name, or `all`. `none` without a direction clears both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "impairment/grammar.h"

namespace rocemu::impairment {

// A port's link has two directions: what the port sends, and what is sent to it.
enum class Direction : uint8_t { transmit, receive };
inline constexpr Direction kDirections[] = {Direction::transmit, Direction::receive};

std::string_view to_text(Direction direction);  // "tx", "rx"

// The seed is different for each link, so that links of one spec do not fail in step.
uint64_t link_seed(uint64_t seed, uint32_t port, Direction direction);

inline constexpr std::string_view kAllPorts = "all";

struct Assignment {
  std::string port{kAllPorts};
  bool transmit = true;
  bool receive = false;
  Spec spec;

  bool covers(Direction direction) const {
    return direction == Direction::transmit ? transmit : receive;
  }
  bool operator==(const Assignment&) const = default;
};

struct ParsedAssignment {
  std::optional<Assignment> assignment;
  std::string error;  // one line, as of parse_spec()
};

ParsedAssignment parse_assignment(std::string_view text);

// Takes the three words apart; `direction` is tx, rx, both or empty for the default.
ParsedAssignment parse_assignment(std::string_view port, std::string_view direction,
                                  std::string_view spec);

// PORT.DIRECTION:SPEC, which parse_assignment() makes the same assignment of.
std::string to_text(const Assignment& assignment);

}  // namespace rocemu::impairment
