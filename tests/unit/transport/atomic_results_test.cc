#include "emulator/transport/responder/atomic_results.h"

#include <catch2/catch.hpp>

namespace rocemu::transport {

TEST_CASE("The newest results of atomics are kept, as many as may be unanswered") {
  AtomicResults results;
  CHECK_FALSE(results.find(wire::Psn(5)));
  for (uint32_t i = 0; i < 4; ++i) results.keep(wire::Psn(0xfffffe) + i, 100 + i, 3);
  CHECK(results.size() == 3);
  CHECK_FALSE(results.find(wire::Psn(0xfffffe)));
  CHECK(results.find(wire::Psn(0xffffff)) == 101);
  CHECK(results.find(wire::Psn(0)) == 102);
  CHECK(results.find(wire::Psn(1)) == 103);
  results.keep(wire::Psn(0), 200, 3);  // all PSNs later
  CHECK(results.find(wire::Psn(0)) == 200);
  results.release();
  CHECK(results.size() == 0);
}

}  // namespace rocemu::transport
