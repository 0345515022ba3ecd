// The structures that the provider declares in place of rdma-core's private headers, against the
// offsets that the debug information of the version at hand shows.
#include <catch2/catch.hpp>
#include <string_view>

#include "tests/unit/verbs_shim/op_offsets.h"
#include "verbs_shim/provider/private_abi.h"

#define ROCEMU_TEXT_(x) #x
#define ROCEMU_TEXT(x) ROCEMU_TEXT_(x)

using namespace rocemu::provider::ROCEMU_PABI_JOIN(pabi, ROCEMU_PABI);

namespace {

using rocemu::provider::kOpOffsets;
using rocemu::provider::OpOffset;

#if ROCEMU_PABI == 34 || ROCEMU_PABI == 57
constexpr size_t kOpsSize = 608;
constexpr size_t kExpectedContextOffset = 320;
constexpr auto kColumn = &OpOffset::pabi_34;
#elif ROCEMU_PABI == 59
constexpr size_t kOpsSize = 632;
constexpr size_t kExpectedContextOffset = 344;
constexpr auto kColumn = &OpOffset::pabi_59;
#elif ROCEMU_PABI == 64
constexpr size_t kOpsSize = 664;
constexpr size_t kExpectedContextOffset = 368;
constexpr auto kColumn = &OpOffset::pabi_64;
#else
constexpr size_t kOpsSize = 744;
constexpr size_t kExpectedContextOffset = 368;
constexpr auto kColumn = &OpOffset::pabi_65;
#endif

size_t expected_offset(std::string_view op) {
  for (const OpOffset& entry : kOpOffsets)
    if (entry.op == op) return static_cast<size_t>(entry.*kColumn);
  return SIZE_MAX;
}

}  // namespace

TEST_CASE("private ABI " ROCEMU_TEXT(ROCEMU_PABI) " is laid out as rdma-core has it") {
  CHECK(sizeof(VerbsContextOps) == kOpsSize);
#define ROCEMU_OP(op) CHECK(offsetof(VerbsContextOps, op) == expected_offset(#op));
#define ROCEMU_DATA_OP(op) ROCEMU_OP(op)
#define ROCEMU_EVENT_OP(op) ROCEMU_OP(op)
#define ROCEMU_NO_OP(op) ROCEMU_OP(op)
#include "verbs_shim/provider/op_table.inc"
#undef ROCEMU_OP
#undef ROCEMU_DATA_OP
#undef ROCEMU_EVENT_OP
#undef ROCEMU_NO_OP
  CHECK(kContextOffset == kExpectedContextOffset);
}

TEST_CASE("private ABI " ROCEMU_TEXT(ROCEMU_PABI) " finds verbs_qp.comp_mask") {
#if ROCEMU_PABI == 34
  CHECK(qp_comp_mask_offset(36) == 344);
  CHECK(qp_comp_mask_offset(43) == 344);
  CHECK(qp_comp_mask_offset(44) == 352);
  CHECK(qp_comp_mask_offset(45) == 360);
  CHECK(qp_comp_mask_offset(56) == 360);
#else
  CHECK(qp_comp_mask_offset(ROCEMU_PABI) == 360);
  CHECK(qp_comp_mask_offset(0) == 360);
#endif
}
