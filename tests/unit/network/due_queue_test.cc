#include "network/due_queue.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

namespace rocemu::network {

TEST_CASE("what is due comes in the order of its time, and of its coming when that is the same") {
  DueQueue<int> queue;
  CHECK(queue.next() == kNever);
  for (int i = 0; i < 100; ++i) queue.push(static_cast<TimeNs>(i % 3), int{i});
  CHECK(queue.next() == 0);
  std::vector<int> order;
  TimeNs last = 0;
  while (!queue.empty()) {
    const auto entry = queue.pop();
    CHECK(entry.at >= last);
    last = entry.at;
    CHECK(entry.at == static_cast<TimeNs>(entry.item % 3));
    if (!order.empty() && order.back() % 3 == entry.item % 3) CHECK(order.back() < entry.item);
    order.push_back(entry.item);
  }
  CHECK(order.size() == 100);
}

TEST_CASE("a full queue leaves the item with the caller") {
  DueQueue<std::unique_ptr<int>> queue(1);
  queue.reserve();
  CHECK(queue.push(5, std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  CHECK_FALSE(queue.push(4, std::move(second)));
  CHECK(second != nullptr);
  CHECK(*queue.pop().item == 1);
  CHECK(queue.push(4, std::move(second)));
}

}  // namespace rocemu::network
