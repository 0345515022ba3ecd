#include "emulator/inspection/requests.h"

#include <catch2/catch.hpp>

using namespace rocemu;
using namespace rocemu::inspection;
using transport::SendWork;
using transport::WorkOpcode;

namespace {

SendWork work(WorkOpcode opcode, uint64_t wr_id, uint64_t address, uint32_t length_bytes = 8) {
  SendWork made;
  made.wr_id = wr_id;
  made.opcode = opcode;
  made.remote_address = address;
  made.rkey = wire::RKey{7};
  made.length_bytes = length_bytes;
  return made;
}

}  // namespace

TEST_CASE("The request that is carried out is the first that fits, behind the one before") {
  Requests requests;
  Requests::Room room;
  requests.on_taken(work(WorkOpcode::write, 1, 0x10), 1, room);
  requests.on_taken(work(WorkOpcode::send, 2, 0), 2, room);
  requests.on_taken(work(WorkOpcode::write, 3, 0x10), 3, room);
  requests.on_taken(work(WorkOpcode::read, 4, 0x10), 4, room);
  CHECK(requests.begin(WorkOpcode::write, 7, 0x10, 8)->wr_id == 1);
  CHECK(requests.begin(WorkOpcode::write, 7, 0x10, 8)->wr_id == 3);
  CHECK(requests.begin(WorkOpcode::write, 7, 0x10, 8) == nullptr);
  CHECK(requests.begin(WorkOpcode::read, 8, 0x10, 8) == nullptr);
  CHECK(requests.begin(WorkOpcode::read, 7, 0x10, 16) == nullptr);
  const Request* const read = requests.begin(WorkOpcode::read, 7, 0x10, 8);
  REQUIRE(read != nullptr);
  CHECK(read->over == 0);
  requests.on_released(3, 10);
  CHECK(requests.find(read->number)->over == 0);
  requests.on_released(1, 11);
  CHECK(requests.find(read->number)->over == 11);
}

TEST_CASE("The oldest requests are forgotten") {
  Requests requests;
  Requests::Room room;
  for (uint64_t i = 0; i < Requests::kKept + 10; ++i)
    requests.on_taken(work(WorkOpcode::write, i, 0x1000 + i), i + 1, room);
  CHECK(requests.begin(WorkOpcode::write, 7, 0x1000, 8) == nullptr);
  CHECK(requests.find(5) == nullptr);
  requests.on_released(Requests::kKept + 10, 999);
  const Request* const last = requests.find(Requests::kKept + 10);
  REQUIRE(last != nullptr);
  CHECK(last->over == 999);
}

TEST_CASE("The oldest request that is kept is over with the others") {
  Requests requests;
  Requests::Room room;
  for (uint64_t i = 0; i < Requests::kKept; ++i)
    requests.on_taken(work(WorkOpcode::read, i, 0x1000 + i), i + 1, room);
  requests.on_released(Requests::kKept, 999);
  REQUIRE(requests.find(1) != nullptr);
  CHECK(requests.find(1)->over == 999);
}

TEST_CASE("Requests are kept of as many queues as there is room for") {
  Requests::Room room{1};
  Requests first;
  Requests second;
  first.on_taken(work(WorkOpcode::write, 1, 0x10), 1, room);
  second.on_taken(work(WorkOpcode::write, 1, 0x10), 2, room);
  CHECK(second.begin(WorkOpcode::write, 7, 0x10, 8) == nullptr);
  first.give_back(room);
  second.on_taken(work(WorkOpcode::write, 2, 0x10), 3, room);
  CHECK(second.begin(WorkOpcode::write, 7, 0x10, 8)->wr_id == 2);
}
