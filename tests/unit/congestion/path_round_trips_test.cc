// What QPs on one path know of it together, and what is left when they go.
#include "emulator/congestion/path_round_trips.h"

#include <catch2/catch.hpp>

namespace rocemu::congestion {

TEST_CASE("A path has the shortest round trip of all and the mean of each one's shortest") {
  const auto path = std::make_shared<PathRoundTrips>();
  CHECK(path->shortest_ns() == kNever);
  PathShare one(path), other(path), silent(path);
  one.note(100);
  CHECK(path->shortest_ns() == 100);
  CHECK(path->mean_ns() == 100);
  other.note(400);
  CHECK(path->shortest_ns() == 100);
  CHECK(path->mean_ns() == 250);
  other.note(60);
  CHECK(path->shortest_ns() == 60);
  CHECK(path->mean_ns() == 80);
}

TEST_CASE("A QP's part goes with it, and what the path was when none is left") {
  const auto path = std::make_shared<PathRoundTrips>();
  PathShare stays(path);
  stays.note(300);
  {
    PathShare goes(path);
    goes.note(100);
    PathShare moved(std::move(goes));
    CHECK(path->mean_ns() == 200);
  }
  CHECK(path->mean_ns() == 300);
  CHECK(path->shortest_ns() == 100);
  stays = PathShare();
  CHECK(path->shortest_ns() == kNever);
  PathShare next(path);
  next.note(500);
  CHECK(path->shortest_ns() == 500);
}

TEST_CASE("A share of no path notes nothing") {
  PathShare none;
  none.note(100);
  CHECK(none.path() == nullptr);
}

}  // namespace rocemu::congestion
