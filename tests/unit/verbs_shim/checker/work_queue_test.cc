#include "verbs_shim/checker/model/work_queue.h"

#include <catch2/catch.hpp>

using namespace rocemu::check;

TEST_CASE("requests of a queue, in their order", "[checker]") {
  WorkQueue queue;
  for (uint64_t i = 0; i < 40; ++i) {
    Request& request = queue.push();
    request.wr_id = i;
    request.sges.push_back({i, 1, 2});
    if (i % 2 == 1) queue.pop_front();
  }
  REQUIRE(queue.size() == 20);
  CHECK(queue.posted() == 40);
  for (size_t i = 0; i < queue.size(); ++i) {
    CHECK(queue.at(i).wr_id == 20 + i);
    CHECK(queue.at(i).index == 20 + i);
    CHECK(queue.at(i).sges.size() == 1);
  }
  queue.drop_last();
  CHECK(queue.size() == 19);
  CHECK(queue.posted() == 39);
  Request& again = queue.push();
  CHECK(again.index == 39);
  CHECK(again.wr_id == 0);
  CHECK(again.sges.empty());
  queue.clear();
  CHECK(queue.empty());
}
