// Numbers and constants of verbs as reports write them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "verbs_shim/abi/rings.h"

namespace rocemu::check {

inline constexpr auto kFlush = static_cast<ibv_wr_opcode>(ROCEMU_WR_FLUSH);

std::string hex(uint64_t value);     // "0x1f"
std::string qpn_text(uint32_t qpn);  // "0x00001f"
// "1 request", "2 requests".
std::string count_of(uint64_t count, const char* one, const char* several);

const char* name_of(ibv_qp_type type);      // "RC"
const char* name_of(ibv_qp_state state);    // "RTS"
const char* name_of(ibv_wr_opcode opcode);  // "RDMA_WRITE"
const char* name_of(ibv_wc_status status);  // "RETRY_EXC_ERR"

}  // namespace rocemu::check
