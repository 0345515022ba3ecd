// A scenario is what two ends of a connection do to each other, one thing at a time; see
// scenario.cc.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace rocemu::interop {

enum class Fault : uint8_t {
  none,
  wrong_key,          // a key that no memory of the responder has
  behind_the_region,  // of the responder's memory, but for its last byte
  no_right,           // the responder's memory may not be used so
  no_receive,         // none is posted, and rnr_retry is small
  short_receive,      // shorter than the message
  nobody_answers,     // the responder's QP is destroyed
};

struct Scenario {
  std::string_view name;
  ibv_wr_opcode opcode;
  Fault fault = Fault::none;
  bool datagram = false;
};

std::span<const Scenario> scenarios();
// Null when there is none of that name.
const Scenario* find_scenario(std::string_view name);

}  // namespace rocemu::interop
