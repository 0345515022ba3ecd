#include "verbs_shim/checker/detectors/nic/open_accesses.h"

#include <catch2/catch.hpp>

namespace rocemu::check {
namespace {

constexpr uint64_t kAddress = 0x10000;

Request write_to(uint32_t rkey, uint64_t index) {
  Request request;
  request.is_send = true;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.index = index;
  request.remote_address = kAddress;
  request.rkey = rkey;
  request.sges = {{0, 64, 0}};
  return request;
}

}  // namespace

TEST_CASE(
    "Writes by two QPs to what thousands of keys stand for are compared, the last as the first") {
  const rocemu_check_call at = {"ibv_create_qp", nullptr, nullptr};
  const Call call(&at);
  QueuePair a(call, ROCEMU_CHECK_QP, nullptr, nullptr, 1);
  QueuePair b(call, ROCEMU_CHECK_QP, nullptr, nullptr, 2);
  OpenAccesses accesses;
  for (uint32_t key = 1; key <= 10'000; ++key) {
    CHECK_FALSE(accesses.on_posting(a, write_to(key, key)));
    CHECK(accesses.on_posting(b, write_to(key, key)));
    accesses.on_done(a, key, key);
    accesses.on_done(b, key, key);
  }
}

}  // namespace rocemu::check
