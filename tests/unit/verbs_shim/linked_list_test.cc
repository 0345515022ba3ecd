// Lists that an object leaves without a walk.
#include "verbs_shim/provider/common/linked_list.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace rocemu::provider;

namespace {

struct Thing {
  int number;
  ListLinks<Thing> links{};
};

std::vector<int> numbers_in(const LinkedList<Thing>& list) {
  std::vector<int> numbers;
  for (auto* links = list.first(); links != nullptr; links = links->next)
    numbers.push_back(links->object->number);
  return numbers;
}

}  // namespace

TEST_CASE("What leaves a list leaves the others in it, wherever it stood") {
  LinkedList<Thing> list;
  Thing things[] = {{0}, {1}, {2}, {3}};
  CHECK(list.first() == nullptr);
  for (Thing& thing : things) list.add(thing, thing.links);
  CHECK(numbers_in(list) == std::vector{3, 2, 1, 0});
  list.remove(things[1].links);
  CHECK(numbers_in(list) == std::vector{3, 2, 0});
  list.remove(things[3].links);
  list.remove(things[0].links);
  CHECK(numbers_in(list) == std::vector{2});
  list.add(things[0], things[0].links);
  CHECK(numbers_in(list) == std::vector{0, 2});
  for (int number : {2, 0}) list.remove(things[number].links);
  CHECK(list.first() == nullptr);
}
