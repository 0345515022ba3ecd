// Keys and addresses that the peer's NIC refuses, and who hears why.
#include "tests/unit/inspection/world.h"

using namespace rocemu;
using namespace rocemu::inspection;
using transport::WorkOpcode;

namespace {

// What each program hears of a WRITE with this key and address.
struct Heard {
  std::vector<Finding> at_a;
  std::vector<Finding> at_b;
};

Heard write_with(Pair& pair, uint32_t key, uint64_t address) {
  pair.connect();
  sim::SendRequest request = reach(pair.a, pair.b, WorkOpcode::write, 1, 64);
  request.rkey = key;
  request.remote_address = address;
  pair.a.post(pair.at_a, std::move(request));
  pair.a.world.run();
  return {pair.a.findings(), pair.b.findings()};
}

}  // namespace

TEST_CASE("A key whose region was deregistered: both hear of it") {
  World world;
  Pair pair(world);
  REQUIRE(pair.b.hca.dereg_mr(pair.b.context, pair.b.keys.mr) == 0);
  const Heard heard = write_with(pair, pair.b.keys.rkey.value, kBase);
  REQUIRE(heard.at_a.size() == 1);
  CHECK(heard.at_a[0].kind == FindingKind::key_gone);
  CHECK(heard.at_a[0].role == Role::requester);
  CHECK(heard.at_a[0].qp == QpPlace{0, pair.at_a.qpn});
  CHECK(heard.at_a[0].other == QpPlace{1, pair.at_b.qpn});
  CHECK(heard.at_a[0].key == pair.b.keys.rkey.value);
  REQUIRE(heard.at_b.size() == 1);
  CHECK(heard.at_b[0].kind == FindingKind::key_gone);
  CHECK(heard.at_b[0].role == Role::owner);
  CHECK(pair.a.findings().empty());
}

TEST_CASE("A key with its bytes swapped") {
  World world;
  Pair pair(world);
  const uint32_t key = pair.b.keys.rkey.value;
  const uint32_t swapped = GENERATE_COPY(__builtin_bswap32(key), key << 16 | key >> 16);
  const Heard heard = write_with(pair, swapped, kBase);
  REQUIRE(heard.at_a.size() == 1);
  CHECK(heard.at_a[0].kind == FindingKind::key_swapped);
  CHECK(heard.at_b.empty());
}

TEST_CASE("A key with its bytes swapped of a FLUSH of the region as a whole") {
  World world;
  Pair pair(world);
  pair.connect();
  sim::SendRequest request = reach(pair.a, pair.b, WorkOpcode::flush, 1, 0);
  request.sges.clear();
  request.rkey = __builtin_bswap32(pair.b.keys.rkey.value);
  request.remote_address = 0x1234;
  request.feth = {verbs::placement::kGlobal, static_cast<uint8_t>(verbs::Selectivity::region)};
  pair.a.post(pair.at_a, std::move(request));
  pair.a.world.run();
  const std::vector<Finding> heard = pair.a.findings();
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].kind == FindingKind::key_swapped);
  CHECK(heard[0].address == 0x1234);
  CHECK(heard[0].length_bytes == 0);
}

TEST_CASE("An address with its bytes or halves swapped") {
  World world;
  Pair pair(world);
  const uint64_t swapped = GENERATE(__builtin_bswap64(kBase), kBase << 32);
  const Heard heard = write_with(pair, pair.b.keys.rkey.value, swapped);
  REQUIRE(heard.at_a.size() == 1);
  CHECK(heard.at_a[0].kind == FindingKind::address_swapped);
  CHECK(heard.at_a[0].address == swapped);
}

TEST_CASE("A key of the requester's own memory, and one that nobody was given") {
  World world;
  Pair pair(world);
  const auto own = pair.a.hca.reg_mr(pair.a.context, {pair.a.pd, 15, kBase, 4096, kBase});
  REQUIRE(own);
  const bool is_own = GENERATE(true, false);
  const Heard heard = write_with(pair, is_own ? own->rkey.value : 0x12345678, kBase);
  REQUIRE(heard.at_a.size() == 1);
  CHECK(heard.at_a[0].kind == (is_own ? FindingKind::own_key : FindingKind::key_never_given));
  CHECK(heard.at_b.empty());
}

TEST_CASE("A range that is too long is the program's mistake, and no guess") {
  World world;
  Pair pair(world);
  const Heard heard = write_with(pair, pair.b.keys.rkey.value, kBase + kBytes);
  CHECK(heard.at_a.empty());
  CHECK(heard.at_b.empty());
}

TEST_CASE("A region that goes while a peer READs it") {
  World world;
  world.delay(1'000'000);
  Pair pair(world);
  pair.connect();
  pair.a.post(pair.at_a, reach(pair.a, pair.b, WorkOpcode::read, 1, kBytes));
  // Its request has come, and some of the answers have left.
  bool gone = false;
  pair.b.node.after_poll = [&] {
    const auto counters = *pair.b.hca.qp_counters(pair.b.context, pair.at_b.qp);
    if (gone || counters[transport::TraceEvent::payload_sent] == 0) return;
    gone = pair.b.hca.dereg_mr(pair.b.context, pair.b.keys.mr) == 0;
  };
  world.run();
  CHECK(gone);
  const std::vector<Finding> found = pair.a.findings();
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == FindingKind::key_gone);
}
