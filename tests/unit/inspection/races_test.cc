// Accesses by RDMA to the same bytes, with and without something that orders them.
#include <cstring>

#include "tests/unit/inspection/world.h"

using namespace rocemu;
using namespace rocemu::inspection;
using transport::WorkOpcode;

namespace {

constexpr TimeNs kMillisecond = 1'000'000;

// Two programs on one device that reach into the memory of a third.
struct Three {
  explicit Three(World& world) : first(world, 0), second(world, 0), target(world, 1) {
    for (Program* program : {&first, &second}) {
      const End end = program->make_qp();
      const End at_target = target.make_qp();
      program->connect(end, target, at_target);
      target.connect(at_target, *program, end);
      (program == &first ? at_first : at_second) = end;
    }
  }
  Program first;
  Program second;
  Program target;
  End at_first;
  End at_second;
};

}  // namespace

TEST_CASE("WRITEs of two programs to the same bytes at the same time: both hear of it") {
  World world;
  world.delay(kMillisecond);
  Three three(world);
  three.first.memory[0] = std::byte{1};
  three.first.post(three.at_first, reach(three.first, three.target, WorkOpcode::write, 11, 100));
  three.second.post(three.at_second,
                    reach(three.second, three.target, WorkOpcode::write, 22, 100, 90));
  world.run();
  const auto first = three.first.findings();
  const auto second = three.second.findings();
  REQUIRE(first.size() == 1);
  REQUIRE(second.size() == 1);
  CHECK(first[0].kind == FindingKind::race);
  CHECK(first[0].known);
  CHECK(first[0].wr_id == 11);
  CHECK(first[0].other_wr_id == 22);
  CHECK(first[0].opcode == WorkOpcode::write);
  CHECK(first[0].address == kBase + 90);
  CHECK(first[0].length_bytes == 10);
  CHECK_FALSE(first[0].other_is_mine);
  CHECK(second[0].wr_id == 22);
  CHECK(second[0].other == QpPlace{0, three.at_first.qpn});
  CHECK(three.target.findings().empty());
}

TEST_CASE("What was over before the other was posted is ordered") {
  World world;
  world.delay(kMillisecond);
  Three three(world);
  const WorkOpcode opcode = GENERATE(WorkOpcode::write, WorkOpcode::read);
  three.first.memory[0] = std::byte{1};
  three.first.post(three.at_first, reach(three.first, three.target, opcode, 11, 100));
  world.run();
  three.second.post(three.at_second, reach(three.second, three.target, WorkOpcode::write, 22, 100));
  world.run();
  CHECK(three.first.findings().empty());
  CHECK(three.second.findings().empty());
}

TEST_CASE("A WRITE that was posted when the other one was in place, though not acknowledged") {
  World world;
  world.delay(kMillisecond);
  Three three(world);
  three.first.memory[0] = std::byte{1};
  three.first.post(three.at_first, reach(three.first, three.target, WorkOpcode::write, 11, 100));
  // Its program may know: the target has seen it, and has said so.
  world.fabric.at(kMillisecond + kMillisecond / 2, [&] {
    three.second.post(three.at_second,
                      reach(three.second, three.target, WorkOpcode::write, 22, 100));
  });
  world.run();
  CHECK(three.first.findings().empty());
}

TEST_CASE("A READ is open until its answer has come") {
  World world;
  world.delay(kMillisecond);
  Three three(world);
  const uint32_t bytes = GENERATE(100u, 8u);
  three.first.post(three.at_first, reach(three.first, three.target, WorkOpcode::read, 11, bytes));
  world.fabric.at(kMillisecond + kMillisecond / 2, [&] {
    three.second.post(three.at_second,
                      reach(three.second, three.target, WorkOpcode::write, 22, bytes));
  });
  world.run();
  // A word is never torn.
  CHECK(three.first.findings().size() == (bytes == 100 ? 1 : 0));
  CHECK(three.second.findings().size() == (bytes == 100 ? 1 : 0));
}

TEST_CASE("READs of the same bytes, and WRITEs of others, are no races") {
  World world;
  world.delay(kMillisecond);
  Three three(world);
  const bool reads = GENERATE(true, false);
  const WorkOpcode opcode = reads ? WorkOpcode::read : WorkOpcode::write;
  three.first.post(three.at_first, reach(three.first, three.target, opcode, 11, 5000));
  three.second.post(three.at_second,
                    reach(three.second, three.target, opcode, 22, 5000, reads ? 0 : 5000));
  world.run();
  CHECK(three.first.findings().empty());
  CHECK(three.second.findings().empty());
}

TEST_CASE("Long WRITEs race where their packets meet") {
  World world;
  world.delay(kMillisecond);
  Three three(world);
  three.first.post(three.at_first, reach(three.first, three.target, WorkOpcode::write, 11, 30000));
  three.second.post(three.at_second,
                    reach(three.second, three.target, WorkOpcode::write, 22, 30000, 29000));
  world.run();
  const auto found = three.first.findings();
  REQUIRE(found.size() == 1);
  CHECK(found[0].wr_id == 11);
  CHECK(found[0].address >= kBase + 29000);
}

TEST_CASE("A QP's own WRITE overtakes its READ unless it is fenced") {
  World world;
  world.delay(kMillisecond);
  Pair pair(world);
  pair.connect();
  const bool fenced = GENERATE(false, true);
  pair.a.post(pair.at_a, reach(pair.a, pair.b, WorkOpcode::read, 1, 100));
  sim::SendRequest write = reach(pair.a, pair.b, WorkOpcode::write, 2, 100);
  write.fence = fenced;
  pair.a.post(pair.at_a, std::move(write));
  world.run();
  const auto found = pair.a.findings();
  REQUIRE(found.size() == (fenced ? 0 : 1));
  if (fenced) return;
  CHECK(found[0].wr_id == 2);
  CHECK(found[0].other_wr_id == 1);
  CHECK(found[0].other_is_mine);
}

TEST_CASE("A QP's WRITEs, and a READ behind them, are in order") {
  World world;
  world.delay(kMillisecond);
  Pair pair(world);
  pair.connect();
  for (uint64_t i = 0; i < 8; ++i)
    pair.a.post(pair.at_a, reach(pair.a, pair.b, WorkOpcode::write, i, 3000));
  pair.a.post(pair.at_a, reach(pair.a, pair.b, WorkOpcode::read, 9, 3000));
  world.run();
  CHECK(pair.a.findings().empty());
}

TEST_CASE("Atomics are atomic among each other, but a WRITE to their word is not") {
  World world;
  world.delay(kMillisecond);
  Three three(world);
  const bool writes = GENERATE(false, true);
  sim::SendRequest add = reach(three.first, three.target, WorkOpcode::fetch_add, 11, 8);
  add.compare_add = 5;
  three.first.post(three.at_first, add);
  add.wr_id = 22;
  if (writes) add.opcode = WorkOpcode::write;
  add.sges = {three.second.sge(8)};
  three.second.post(three.at_second, add);
  world.run();
  CHECK(three.first.findings().size() == (writes ? 1 : 0));
}

TEST_CASE("The processor changes a word that an atomic is on its way to") {
  World world;
  world.delay(kMillisecond);
  Three three(world);
  sim::SendRequest add = reach(three.first, three.target, WorkOpcode::fetch_add, 11, 8);
  add.compare_add = 5;
  three.first.post(three.at_first, add);
  const bool under_way = GENERATE(true, false);
  const auto add_again = [&] {
    add.wr_id = 22;
    add.sges = {three.second.sge(8)};
    three.second.post(three.at_second, add);
  };
  // The second one is posted before the first arrives, or when the program has read what that did.
  world.fabric.at(under_way ? kMillisecond / 2 : 2 * kMillisecond, add_again);
  world.fabric.at(kMillisecond + kMillisecond / 4, [&] {
    const uint64_t value = 77;
    std::memcpy(three.target.memory.data(), &value, sizeof(value));
  });
  world.run();
  const auto found = three.second.findings();
  REQUIRE(found.size() == (under_way ? 1 : 0));
  if (!under_way) return;
  CHECK(found[0].kind == FindingKind::processor_race);
  CHECK(found[0].wr_id == 22);
  CHECK(found[0].left == 5);
  CHECK(found[0].found == 77);
}
