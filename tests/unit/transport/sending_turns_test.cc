#include "emulator/transport/sending_turns.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

namespace rocemu::transport {
namespace {

struct FakeQp {
  bool active = false;
  uint32_t share_left = 0;
  int has = 0;  // pieces of weight 1 that it could send
};

constexpr uint32_t kShare = 4;

// Lets the first one send what its share allows; which one that was.
FakeQp* serve(SendingTurns<FakeQp>& turns) {
  FakeQp& qp = turns.first();
  const auto sent = std::min<int>(qp.has, static_cast<int>(qp.share_left));
  qp.has -= sent;
  qp.share_left -= static_cast<uint32_t>(sent);
  if (qp.has > 0) {
    turns.first_goes_on();
  } else {
    turns.remove_first();
  }
  return &qp;
}

}  // namespace

TEST_CASE("what has used up its share waits in line, and each in line has its share in turn") {
  SendingTurns<FakeQp> turns(kShare);
  FakeQp a{.has = 100}, b{.has = 100};
  turns.add(a);
  turns.add(b);
  turns.add(a);  // is there already
  for (int round = 0; round < 5; ++round) {
    CHECK(serve(turns) == &a);
    CHECK(serve(turns) == &b);
  }
  CHECK(a.has == 100 - 5 * int{kShare});
  CHECK(b.has == a.has);
}

TEST_CASE("who sends little comes before the line, as long as its share lasts") {
  SendingTurns<FakeQp> turns(kShare);
  std::vector<FakeQp> bulk(8);
  FakeQp little{.share_left = kShare};
  for (FakeQp& qp : bulk) {
    qp.has = 1000;
    turns.add(qp);
  }
  for (uint32_t message = 0; message < kShare; ++message) {
    serve(turns);
    little.has = 1;
    turns.add(little);
    CHECK(serve(turns) == &little);
  }
  // Its share is used up, and a new one is had in line: nobody waits for ever.
  little.has = 1;
  turns.add(little);
  for (size_t i = 0; i < bulk.size(); ++i) CHECK(serve(turns) != &little);
  CHECK(serve(turns) == &little);
  CHECK(little.share_left == kShare - 1);
}

TEST_CASE("who always has something little does not keep the others waiting") {
  SendingTurns<FakeQp> turns(kShare);
  FakeQp bulk{.has = 1000}, greedy{.share_left = kShare};
  turns.add(bulk);
  int sent_by_greedy = 0;
  for (int i = 0; i < 100; ++i) {
    greedy.has = 1;
    turns.add(greedy);
    sent_by_greedy += serve(turns) == &greedy;
  }
  CHECK(1000 - bulk.has >= sent_by_greedy - int{kShare});
}

TEST_CASE("who is removed is not served, whichever list it was in") {
  SendingTurns<FakeQp> turns(kShare);
  FakeQp sparse{.share_left = 1, .has = 1}, in_line{.has = 1};
  turns.add(sparse);
  turns.add(in_line);
  turns.remove(sparse);
  CHECK(&turns.first() == &in_line);
  turns.remove(in_line);
  turns.remove(in_line);
  CHECK(turns.empty());
}

}  // namespace rocemu::transport
