#include <catch2/catch.hpp>
#include <optional>
#include <utility>

#include "tests/unit/transport/pair.h"

using namespace rocemu::transport_test;
using namespace rocemu;

namespace {

constexpr wire::Feth kRange{verbs::placement::kGlobal, 0};
constexpr wire::Feth kRegion{verbs::placement::kGlobal, 1};

PairOptions granting(uint32_t access = kFlushGlobal) {
  PairOptions options;
  options.access = kRemoteWrite | kRemoteRead | access;
  return options;
}

Buffer flushable(Host& host, uint32_t bytes = 4096) {
  return host.buffer(bytes, 0, kLocalWrite | kRemoteWrite | kRemoteRead | kFlushGlobal);
}

SendRequest flush(const Buffer& memory, wire::Feth feth = kRange, uint64_t wr_id = 1) {
  return {.wr_id = wr_id,
          .opcode = WorkOpcode::flush,
          .remote_address = memory.address,
          .rkey = memory.key,
          .feth = feth,
          .flush_bytes = memory.length_bytes};
}

}  // namespace

TEST_CASE("A FLUSH is one packet, answered by a READ response without data") {
  Pair pair(granting());
  const Buffer memory = flushable(pair.b);
  pair.a.post(flush(memory));
  pair.drive();
  REQUIRE(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.a.send_cq.completions[0].opcode == WcOpcode::flush);
  const std::vector<Sent> requests = pair.sent_by(pair.a, Operation::flush);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].ext.feth.placement == verbs::placement::kGlobal);
  CHECK(requests[0].ext.feth.selectivity == 0);
  CHECK(requests[0].ext.reth.virtual_address == memory.address);
  CHECK(requests[0].ext.reth.length_bytes == 4096);
  CHECK(pair.count(pair.b, Operation::read_response_only) == 1);
  CHECK(pair.count(pair.b, Operation::acknowledge) == 0);
}

TEST_CASE("What was written before a FLUSH is in place when its answer leaves") {
  Pair pair(granting());
  const Buffer memory = flushable(pair.b);
  std::optional<uint64_t> seen;
  pair.lose = [&](const Sent& frame) {
    if (frame.operation == Operation::read_response_only) seen = pair.b.word(memory);
    return false;
  };
  const Buffer from = pair.a.buffer(8);
  pair.a.set_word(from, 77);
  pair.a.post(write(from, memory));
  pair.a.post(flush(memory, kRange, 2));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector(2, WcStatus::success));
  CHECK(seen == 77);
}

TEST_CASE("A FLUSH fails when what was written before it could not be put in place") {
  Pair pair(granting());
  const Buffer memory = flushable(pair.b);
  pair.b.node().memory().break_region(memory.key);
  pair.a.post(write(pair.a.buffer(8), memory));
  pair.a.post(flush(memory, kRange, 2));
  pair.drive();
  const auto all = statuses(pair.a.send_cq);
  REQUIRE(all.size() == 2);
  CHECK(all[0] != WcStatus::success);
  CHECK(all[1] == WcStatus::flush_error);
}

TEST_CASE("A FLUSH whose answer is lost is answered again") {
  Pair pair(granting());
  pair.lose = [lost = false](const Sent& frame) mutable {
    return frame.operation == Operation::read_response_only && !std::exchange(lost, true);
  };
  pair.a.post(flush(flushable(pair.b)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.count(pair.b, Operation::read_response_only) == 2);
}

TEST_CASE("Of a whole region neither the address nor the length of a FLUSH counts") {
  Pair pair(granting());
  Buffer memory = flushable(pair.b);
  memory.address += 1u << 20;
  SECTION("as with a range they do") {
    pair.a.post(flush(memory));
    expect_nak(pair, WcStatus::remote_access_error, wire::syndrome::kNakRemoteAccess,
               QpEvent::access_error);
  }
  SECTION("whatever they are") {
    pair.a.post(flush(memory, kRegion));
    pair.drive();
    CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  }
  SECTION("but the key") {
    memory.key ^= 1;
    pair.a.post(flush(memory, kRegion));
    expect_nak(pair, WcStatus::remote_access_error, wire::syndrome::kNakRemoteAccess,
               QpEvent::access_error);
  }
}

TEST_CASE("A FLUSH needs the right of the region and of the QP, of each placement it names") {
  SECTION("the region has none") {
    Pair pair(granting());
    pair.a.post(flush(pair.b.buffer(8)));
    expect_nak(pair, WcStatus::remote_access_error, wire::syndrome::kNakRemoteAccess,
               QpEvent::access_error);
  }
  SECTION("the region has the other one") {
    Pair pair(granting(kFlushGlobal | kFlushPersistent));
    const uint8_t both = verbs::placement::kGlobal | verbs::placement::kPersistent;
    pair.a.post(flush(flushable(pair.b), {both, 1}));
    expect_nak(pair, WcStatus::remote_access_error, wire::syndrome::kNakRemoteAccess,
               QpEvent::access_error);
  }
  SECTION("the QP has none") {
    Pair pair(granting(0));
    pair.a.post(flush(flushable(pair.b)));
    expect_nak(pair, WcStatus::remote_invalid_request_error, wire::syndrome::kNakInvalidRequest,
               QpEvent::request_error);
  }
}

TEST_CASE("Only as many FLUSHes are under way as the peer takes, and none over XRC") {
  PairOptions options = granting();
  SECTION("one at a time") {
    options.max_rd_atomic = 1;
    Pair pair(options);
    const Buffer memory = flushable(pair.b);
    for (uint64_t i = 1; i <= 4; ++i) pair.a.post(flush(memory, kRange, i));
    pair.drive();
    CHECK(statuses(pair.a.send_cq) == std::vector(4, WcStatus::success));
  }
  SECTION("XRC") {
    options.a_service = Service::xrc_send;
    options.b_service = Service::xrc_receive;
    Pair pair(options);
    pair.a.post(flush(flushable(pair.b)));
    pair.drive();
    CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::local_qp_operation_error});
    CHECK(pair.sent.empty());
  }
}

TEST_CASE("A FLUSH that is too long, or beyond what the responder takes at once, is refused") {
  Pair pair(granting());
  uint32_t bytes = 4096;
  SECTION("too long") { bytes = 0x80000001; }
  SECTION("too many") {
    pair.b.attributes.max_dest_rd_atomic = 0;
    pair.b.modify(QpState::ready_to_send);
  }
  const Buffer memory = flushable(pair.b);
  wire::ExtendedHeaders ext;
  ext.feth = kRange;
  ext.reth = {memory.address, wire::RKey{memory.key}, bytes};
  pair.inject(pair.b, Operation::flush, kPsn, ext);
  pair.drive();
  CHECK(pair.sent_by(pair.b, Operation::acknowledge).back().ext.aeth.syndrome ==
        wire::syndrome::kNakInvalidRequest);
}
