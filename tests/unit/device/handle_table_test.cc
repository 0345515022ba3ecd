// Handles: no number is ever another object's.
#include "emulator/device/objects/handle_table.h"

#include <catch2/catch.hpp>
#include <set>

using namespace rocemu::device;

namespace {

std::unique_ptr<int> make(int value) { return std::make_unique<int>(value); }

}  // namespace

TEST_CASE("A handle finds its object as long as that is there") {
  HandleNumbers numbers(0);
  HandleTable<int> table(numbers);
  CHECK(table.find(0) == nullptr);
  CHECK(table.find(1) == nullptr);
  std::vector<uint32_t> handles;
  for (int i = 0; i < 1000; ++i) handles.push_back(table.insert(make(i)));
  CHECK(table.size() == 1000);
  for (int i = 0; i < 1000; ++i) CHECK(*table.find(handles[static_cast<size_t>(i)]) == i);
  for (size_t i = 0; i < 1000; i += 2) table.erase(handles[i]);
  CHECK(table.size() == 500);
  for (size_t i = 0; i < 1000; ++i) CHECK((table.find(handles[i]) == nullptr) == (i % 2 == 0));
  int seen = 0;
  table.for_each([&](int value) { seen += value % 2; });
  CHECK(seen == 500);
}

TEST_CASE("A handle is given out once, however few objects there are") {
  HandleNumbers numbers(0);
  HandleTable<int> table(numbers);
  const uint32_t kept = table.insert(make(7));
  std::set<uint32_t> given{kept};
  for (int i = 0; i < 1000; ++i) {
    const uint32_t handle = table.insert(make(i));
    CHECK(given.insert(handle).second);
    table.erase(handle);
    CHECK(table.find(handle) == nullptr);
  }
  CHECK(*table.find(kept) == 7);
}

TEST_CASE("Handles of different tables and devices are different ones") {
  HandleNumbers numbers(0), others(1);
  HandleTable<int> first(numbers), second(numbers), third(others);
  for (int i = 0; i < 100; ++i) {
    const uint32_t handle = first.insert(make(i));
    CHECK(second.find(handle) == nullptr);
    CHECK(third.find(handle) == nullptr);
    CHECK(first.find(second.insert(make(i))) == nullptr);
    CHECK(first.find(third.insert(make(i))) == nullptr);
  }
}

TEST_CASE("Numbers begin anew behind the last one, but for 0") {
  HandleNumbers numbers(255);
  for (uint32_t i = 1; i < 1u << 24; ++i) numbers.next();
  CHECK(numbers.next() == 1);
}
