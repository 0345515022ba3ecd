// The one NAK of a responder alone: which packets ahead draw it, and when it is renewed.
#include "emulator/transport/responder/nak_state.h"

#include <catch2/catch.hpp>

namespace rocemu::transport {

namespace {

using wire::Psn;

}  // namespace

TEST_CASE("The first packet ahead draws a NAK, those that follow it do not") {
  NakState nak;
  CHECK_FALSE(nak.outstanding());
  CHECK(nak.on_ahead(Psn(7)));
  CHECK(nak.outstanding());
  CHECK_FALSE(nak.on_ahead(Psn(8)));
  CHECK_FALSE(nak.on_ahead(Psn(9)));
}

TEST_CASE("A packet ahead that is not behind the trigger shows that the requester has gone back") {
  NakState nak;
  nak.on_ahead(Psn(0xffffff));
  CHECK_FALSE(nak.on_ahead(Psn(0)));
  const uint32_t psn = GENERATE(0xfffffeu, 0xffffffu);
  CHECK(nak.on_ahead(Psn(psn)));
  CHECK_FALSE(nak.on_ahead(Psn(psn + 1)));
  CHECK(nak.on_ahead(Psn(psn)));
}

TEST_CASE("The expected packet ends a NAK that has left") {
  NakState nak;
  nak.on_ahead(Psn(7));
  nak.on_executed(false);
  CHECK_FALSE(nak.outstanding());
  CHECK_FALSE(nak.renew(Psn(6)));
  CHECK(nak.on_ahead(Psn(9)));
}

TEST_CASE("A NAK that was taken back is renewed while its trigger is missing") {
  NakState nak;
  nak.on_ahead(Psn(7));
  nak.on_executed(true);
  CHECK_FALSE(nak.outstanding());
  SECTION("the trigger is not executed yet") {
    const uint32_t expected = GENERATE(6u, 7u);
    CHECK(nak.renew(Psn(expected)));
    CHECK(nak.outstanding());
    CHECK_FALSE(nak.renew(Psn(expected)));
  }
  SECTION("the packet at hand went beyond the trigger") {
    CHECK_FALSE(nak.renew(Psn(8)));
    CHECK_FALSE(nak.outstanding());
  }
}

TEST_CASE("Behind an RNR NAK the first packet ahead is the trigger and draws nothing") {
  NakState nak;
  nak.on_not_ready();
  CHECK(nak.outstanding());
  CHECK_FALSE(nak.on_ahead(Psn(4)));
  CHECK_FALSE(nak.on_ahead(Psn(5)));
  SECTION("when it comes again, it draws a NAK for a sequence error") {
    CHECK(nak.on_ahead(Psn(4)));
    CHECK_FALSE(nak.on_ahead(Psn(5)));
  }
  SECTION("another RNR NAK forgets it") {
    nak.on_not_ready();
    CHECK_FALSE(nak.on_ahead(Psn(4)));
  }
  SECTION("an RNR NAK that was taken back is renewed for its sake") {
    nak.on_executed(true);
    CHECK(nak.renew(Psn(4)));
  }
}

TEST_CASE("An RNR NAK that was taken back with nothing behind it is not renewed") {
  NakState nak;
  nak.on_not_ready();
  nak.on_executed(true);
  CHECK_FALSE(nak.renew(Psn(4)));
}

TEST_CASE("A new connection has no NAK outstanding") {
  NakState nak;
  nak.on_ahead(Psn(7));
  nak.reset();
  CHECK_FALSE(nak.outstanding());
  CHECK(nak.on_ahead(Psn(8)));
}

}  // namespace rocemu::transport
