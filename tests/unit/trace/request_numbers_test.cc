#include "emulator/trace/record/request_numbers.h"

#include <catch2/catch.hpp>

namespace rocemu::trace {

using wire::Psn;

TEST_CASE("trace requests: packets are their request's, by their PSNs") {
  RequestNumbers requests;
  CHECK(requests.on_taken(true) == 1);
  CHECK(requests.on_taken(true) == 2);
  CHECK(requests.on_sent(Psn{0xfffffe}, true) == 1);
  CHECK(requests.on_sent(Psn{0xffffff}, false) == 1);
  CHECK(requests.on_sent(Psn{0}, true) == 2);
  CHECK(requests.on_sent(Psn{1}, false) == 2);
  CHECK(requests.find(Psn{0xfffffd}) == 0);
  CHECK(requests.find(Psn{0xffffff}) == 1);
  CHECK(requests.find(Psn{1}) == 2);
  CHECK(requests.on_over() == 1);
  CHECK(requests.find(Psn{0}) == 2);
  CHECK(requests.on_over() == 2);
  CHECK(requests.on_over() == 0);
  CHECK(requests.find(Psn{1}) == 2);
}

TEST_CASE("trace requests: those without packets are passed over") {
  RequestNumbers requests;
  requests.on_taken(false);
  requests.on_taken(true);
  CHECK(requests.on_sent(Psn{5}, true) == 2);
  CHECK(requests.on_over() == 1);
  CHECK(requests.on_over() == 2);
}

TEST_CASE("trace requests: one that is over before it was sent has no packets") {
  RequestNumbers requests;
  requests.on_taken(true);
  CHECK(requests.on_over() == 1);
  requests.on_taken(true);
  CHECK(requests.on_sent(Psn{5}, true) == 2);
}

TEST_CASE("trace requests: those under way when the trace began are the first ones") {
  RequestNumbers requests(2);
  CHECK(requests.on_taken(true) == 3);
  CHECK(requests.on_over() == 1);
  CHECK(requests.on_over() == 2);
  CHECK(requests.on_sent(Psn{9}, true) == 3);
  requests.forget();
  CHECK(requests.on_over() == 0);
  CHECK(requests.find(Psn{9}) == 0);
}

}  // namespace rocemu::trace
