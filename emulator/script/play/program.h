// The common part of both kinds of programs, those on a device of the simulator and those over
// libibverbs: names of the results of calls.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/script/language/script.h"

namespace rocemu::script {

// "ok" for 0, or the name of an errno value.
Fields result_of(int error);
Fields nothing();
// One field, "result".
Fields result_word(const std::string& word);
Fields result_bytes(std::vector<std::byte> bytes);

struct CompletionText {
  uint32_t status = 0;  // enum ibv_wc_status
  uint32_t opcode = 0;  // enum ibv_wc_opcode
  uint64_t wr_id = 0;
  std::string qp;
  uint32_t byte_length = 0;
  bool has_immediate = false;
  bool has_invalidated = false;
  bool has_grh = false;
  uint32_t immediate = 0;  // in host order; or a key
  uint32_t source_qp = 0;
};
Fields result_completion(const CompletionText& completion);
// `type` is an enum ibv_event_type; `object` the key "qp" or "srq", or empty.
Fields result_event(uint32_t type, const std::string& object, const std::string& name);

// An immediate is in network order in frames and completions, and a number in a script.
uint32_t network_order(uint32_t number);

}  // namespace rocemu::script
