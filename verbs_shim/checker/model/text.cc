#include "verbs_shim/checker/model/text.h"

#include <cstdio>

namespace rocemu::check {
namespace {

std::string formatted(const char* format, unsigned long long value) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

}  // namespace

std::string hex(uint64_t value) { return formatted("0x%llx", value); }
std::string qpn_text(uint32_t qpn) { return formatted("0x%06llx", qpn); }

std::string count_of(uint64_t count, const char* one, const char* several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

#define ROCEMU_NAME(prefix, name) \
  case prefix##name:              \
    return #name;

const char* name_of(ibv_qp_type type) {
  switch (type) {
    ROCEMU_NAME(IBV_QPT_, RC)
    ROCEMU_NAME(IBV_QPT_, UC)
    ROCEMU_NAME(IBV_QPT_, UD)
    ROCEMU_NAME(IBV_QPT_, RAW_PACKET)
    ROCEMU_NAME(IBV_QPT_, XRC_SEND)
    ROCEMU_NAME(IBV_QPT_, XRC_RECV)
    default:
      return "of another type";
  }
}

const char* name_of(ibv_qp_state state) {
  switch (state) {
    ROCEMU_NAME(IBV_QPS_, RESET)
    ROCEMU_NAME(IBV_QPS_, INIT)
    ROCEMU_NAME(IBV_QPS_, RTR)
    ROCEMU_NAME(IBV_QPS_, RTS)
    ROCEMU_NAME(IBV_QPS_, SQD)
    ROCEMU_NAME(IBV_QPS_, SQE)
    case IBV_QPS_ERR:
      return "ERROR";
    default:
      return "in no known state";
  }
}

const char* name_of(ibv_wr_opcode opcode) {
  if (opcode == kFlush) return "FLUSH";
  switch (opcode) {
    ROCEMU_NAME(IBV_WR_, SEND)
    ROCEMU_NAME(IBV_WR_, SEND_WITH_IMM)
    ROCEMU_NAME(IBV_WR_, SEND_WITH_INV)
    ROCEMU_NAME(IBV_WR_, RDMA_WRITE)
    ROCEMU_NAME(IBV_WR_, RDMA_WRITE_WITH_IMM)
    ROCEMU_NAME(IBV_WR_, RDMA_READ)
    ROCEMU_NAME(IBV_WR_, ATOMIC_CMP_AND_SWP)
    ROCEMU_NAME(IBV_WR_, ATOMIC_FETCH_AND_ADD)
    ROCEMU_NAME(IBV_WR_, LOCAL_INV)
    ROCEMU_NAME(IBV_WR_, BIND_MW)
    ROCEMU_NAME(IBV_WR_, TSO)
    ROCEMU_NAME(IBV_WR_, ATOMIC_WRITE)
    default:
      return "request";
  }
}

const char* name_of(ibv_wc_status status) {
  switch (status) {
    ROCEMU_NAME(IBV_WC_, SUCCESS)
    ROCEMU_NAME(IBV_WC_, LOC_LEN_ERR)
    ROCEMU_NAME(IBV_WC_, LOC_QP_OP_ERR)
    ROCEMU_NAME(IBV_WC_, LOC_PROT_ERR)
    ROCEMU_NAME(IBV_WC_, WR_FLUSH_ERR)
    ROCEMU_NAME(IBV_WC_, MW_BIND_ERR)
    ROCEMU_NAME(IBV_WC_, LOC_ACCESS_ERR)
    ROCEMU_NAME(IBV_WC_, REM_INV_REQ_ERR)
    ROCEMU_NAME(IBV_WC_, REM_ACCESS_ERR)
    ROCEMU_NAME(IBV_WC_, REM_OP_ERR)
    ROCEMU_NAME(IBV_WC_, RETRY_EXC_ERR)
    ROCEMU_NAME(IBV_WC_, RNR_RETRY_EXC_ERR)
    ROCEMU_NAME(IBV_WC_, BAD_RESP_ERR)
    ROCEMU_NAME(IBV_WC_, REM_ABORT_ERR)
    ROCEMU_NAME(IBV_WC_, FATAL_ERR)
    ROCEMU_NAME(IBV_WC_, GENERAL_ERR)
    ROCEMU_NAME(IBV_WC_, TM_ERR)
    default:
      return "an error";
  }
}

#undef ROCEMU_NAME

}  // namespace rocemu::check
