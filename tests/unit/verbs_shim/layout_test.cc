// The structures that the provider declares in place of rdma-core's private headers, against the
// offsets that the debug information of the version at hand shows.
#include <catch2/catch.hpp>

#include "verbs_shim/provider/private_abi.h"

#define ROCEMU_TEXT_(x) #x
#define ROCEMU_TEXT(x) ROCEMU_TEXT_(x)

using namespace rocemu::provider::ROCEMU_PABI_JOIN(pabi, ROCEMU_PABI);

namespace {

struct Expected {
  size_t ops_size;
  size_t alloc_pd, create_cq, create_cq_ex, create_qp, create_qp_ex, dealloc_pd, dereg_mr;
  size_t destroy_cq, destroy_qp, free_context, modify_qp, poll_cq, post_recv, post_send;
  size_t query_device_ex, query_port, query_qp, reg_mr, req_notify_cq;
  size_t context_offset;
};

#if ROCEMU_PABI == 34 || ROCEMU_PABI == 57
constexpr Expected kExpected = {608, 40,  120, 128, 152, 160, 208, 224, 248, 272, 312,
                                376, 424, 432, 440, 464, 480, 488, 544, 552, 320};
#elif ROCEMU_PABI == 59
constexpr Expected kExpected = {632, 48,  128, 136, 160, 168, 224, 240, 264, 288, 328,
                                392, 440, 448, 456, 480, 496, 504, 560, 576, 344};
#elif ROCEMU_PABI == 64
constexpr Expected kExpected = {664, 56,  136, 144, 168, 176, 232, 248, 272, 296, 352,
                                416, 464, 472, 480, 504, 520, 536, 592, 608, 368};
#else
constexpr Expected kExpected = {744, 56,  144, 152, 176, 184, 240, 256, 288, 312, 368,
                                448, 496, 504, 512, 552, 568, 584, 656, 672, 368};
#endif

}  // namespace

TEST_CASE("private ABI " ROCEMU_TEXT(ROCEMU_PABI) " is laid out as rdma-core has it") {
  CHECK(sizeof(VerbsContextOps) == kExpected.ops_size);
#define ROCEMU_OP(op) CHECK(offsetof(VerbsContextOps, op) == kExpected.op);
#define ROCEMU_NO_OP(op)
#include "verbs_shim/provider/op_table.inc"
#undef ROCEMU_OP
#undef ROCEMU_NO_OP
  CHECK(kContextOffset == kExpected.context_offset);
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
