#include "network/links.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "impairment/grammar.h"
#include "network/shared_frame.h"

namespace rocemu::network {
namespace {

using impairment::Direction;
using impairment::Loss;

struct Port {
  PortLinks links;
};

// Two ports whose frames come and go nowhere else; what has come is told as text.
struct Stage {
  void set(Port& port, Direction direction, const std::string& text) {
    links.set(port, direction, impairment::parse_spec(text).spec.value());
  }
  void send(Port& port, Direction direction, TimeNs now, char what) {
    const std::vector<std::byte> bytes(8, static_cast<std::byte>(what));
    links.cross(port, direction, now, SharedFrame(bytes));
  }

  void arrive(Port& port, Direction direction, TimeNs at, const SharedFrame& frame) {
    came.push_back(
        {&port, direction, at,
         std::string(reinterpret_cast<const char*>(frame.bytes().data()), frame.bytes().size())});
  }
  void lose(Port&, Direction, Loss loss, const SharedFrame&) { lost.push_back(loss); }

  struct Came {
    Port* port;
    Direction direction;
    TimeNs at;
    std::string bytes;
  };
  std::vector<Came> came;
  std::vector<Loss> lost;
  Port a{PortLinks(0)};
  Port b{PortLinks(1)};
  Links<SharedFrames, Port, Stage> links{*this, 3};
};

}  // namespace

TEST_CASE("a perfect link takes no time, and each direction has its own impairments") {
  Stage stage;
  CHECK_FALSE(stage.links.impaired());
  stage.set(stage.a, Direction::transmit, "delay=1us");
  CHECK(stage.links.impaired());
  stage.send(stage.a, Direction::transmit, 10, 'x');
  stage.send(stage.a, Direction::receive, 20, 'y');
  stage.send(stage.b, Direction::transmit, 30, 'z');
  REQUIRE(stage.came.size() == 2);
  CHECK(stage.came[0].at == 20);
  CHECK(stage.came[1].port == &stage.b);
  CHECK(stage.links.next_arrival() == 1010);
  stage.links.advance(1009);
  CHECK(stage.came.size() == 2);
  // Late, but at its own time.
  stage.links.advance(5000);
  REQUIRE(stage.came.size() == 3);
  CHECK(stage.came[2].at == 1010);
  CHECK(stage.came[2].bytes == "xxxxxxxx");
  CHECK(stage.links.next_arrival() == kNever);
  stage.set(stage.a, Direction::transmit, "none");
  CHECK_FALSE(stage.links.impaired());
}

TEST_CASE("losses say why, and the counters of the link say how many") {
  Stage stage;
  stage.set(stage.a, Direction::transmit, "loss=100%");
  for (int i = 0; i < 4; ++i) stage.send(stage.a, Direction::transmit, 0, 'x');
  CHECK(stage.lost == std::vector<Loss>(4, Loss::random));
  const LinkReport report = stage.a.links.report(Direction::transmit);
  CHECK(report.stats.frames == 4);
  CHECK(report.stats.lost == 4);
  CHECK(to_text(report.spec) == "loss=100%");
}

TEST_CASE("what is under way is bounded") {
  Stage stage;
  stage.set(stage.a, Direction::transmit, "delay=1us");
  for (int i = 0; i < 5; ++i) stage.send(stage.a, Direction::transmit, 0, 'x');
  CHECK(stage.lost == std::vector<Loss>(2, Loss::queue_full));
  CHECK(stage.a.links.report(Direction::transmit).stats.lost_in_queue == 2);
  stage.links.advance(1000);
  CHECK(stage.came.size() == 3);
}

TEST_CASE("a corrupted frame is changed for the one that gets it, and its duplicate is not") {
  Stage stage;
  stage.set(stage.a, Direction::transmit, "corrupt=50%,dup=100%,seed=3");
  const std::string whole(8, 'x');
  size_t changed = 0;
  for (int i = 0; i < 100; ++i) stage.send(stage.a, Direction::transmit, 0, 'x');
  REQUIRE(stage.came.size() == 200);
  for (const auto& came : stage.came) changed += came.bytes != whole;
  CHECK(changed == stage.a.links.report(Direction::transmit).stats.corrupted);
  CHECK(changed > 60);
  CHECK(changed < 140);
}

TEST_CASE("ports of one spec do not lose the same frames, and a seed does again") {
  Stage stage;
  const auto losses = [&](Port& port) {
    stage.set(port, Direction::transmit, "loss=50%,seed=9");
    std::string pattern;
    for (int i = 0; i < 64; ++i) {
      const size_t before = stage.lost.size();
      stage.send(port, Direction::transmit, 0, 'x');
      pattern += stage.lost.size() > before ? '-' : 'x';
    }
    return pattern;
  };
  const std::string first = losses(stage.a);
  CHECK(losses(stage.a) == first);
  CHECK(losses(stage.b) != first);
}

}  // namespace rocemu::network
