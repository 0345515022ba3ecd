#include "emulator/daemon/faults/call_names.h"

#include <algorithm>
#include <iterator>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/abi/memory.h"
#include "verbs_shim/abi/services.h"

namespace rocemu::daemon {
namespace {

struct Name {
  uint32_t operation;
  std::string_view call;
};

constexpr Name kNames[] = {
    {ROCEMU_OP_HELLO, "open"},
    {ROCEMU_OP_ALLOC_PD, "alloc-pd"},
    {ROCEMU_OP_REG_MR, "reg-mr"},
    {ROCEMU_OP_REG_FILE_MR, "reg-mr"},
    {ROCEMU_OP_REG_DM_MR, "reg-mr"},
    {ROCEMU_OP_ALLOC_NULL_MR, "reg-mr"},
    {ROCEMU_OP_REREG_MR, "reg-mr"},
    {ROCEMU_OP_ALLOC_MW, "alloc-mw"},
    {ROCEMU_OP_ALLOC_DM, "alloc-dm"},
    {ROCEMU_OP_CREATE_CQ, "create-cq"},
    {ROCEMU_OP_RESIZE_CQ, "resize-cq"},
    {ROCEMU_OP_CREATE_QP, "create-qp"},
    {ROCEMU_OP_OPEN_QP, "create-qp"},
    {ROCEMU_OP_MODIFY_QP, "modify-qp"},
    {ROCEMU_OP_CREATE_SRQ, "create-srq"},
    {ROCEMU_OP_MODIFY_SRQ, "modify-srq"},
    {ROCEMU_OP_CREATE_AH, "create-ah"},
    {ROCEMU_OP_OPEN_XRCD, "open-xrcd"},
    {ROCEMU_OP_ATTACH_MCAST, "attach-mcast"},
    {ROCEMU_OP_CREATE_FLOW, "create-flow"},
    {ROCEMU_OP_CREATE_COUNTERS, "create-counters"},
};

constexpr uint32_t kGiveUp[] = {
    ROCEMU_OP_DEALLOC_PD,      ROCEMU_OP_DEREG_MR,     ROCEMU_OP_DEALLOC_MW,
    ROCEMU_OP_FREE_DM,         ROCEMU_OP_DESTROY_QP,   ROCEMU_OP_DESTROY_CHANNEL,
    ROCEMU_OP_DESTROY_CQ,      ROCEMU_OP_DESTROY_AH,   ROCEMU_OP_DESTROY_SRQ,
    ROCEMU_OP_CLOSE_XRCD,      ROCEMU_OP_DETACH_MCAST, ROCEMU_OP_DESTROY_FLOW,
    ROCEMU_OP_DESTROY_COUNTERS};

}  // namespace

std::string_view call_name(uint32_t operation) {
  const auto* const found = std::ranges::find(kNames, operation, &Name::operation);
  return found == std::end(kNames) ? std::string_view() : found->call;
}

bool gives_up(uint32_t operation) {
  return std::ranges::find(kGiveUp, operation) != std::end(kGiveUp);
}

}  // namespace rocemu::daemon
