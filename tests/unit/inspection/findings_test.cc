#include "emulator/inspection/findings.h"

#include <catch2/catch.hpp>

using namespace rocemu;
using namespace rocemu::inspection;

namespace {

Finding about(uint32_t qpn) {
  Finding finding;
  finding.qp = {0, wire::Qpn{qpn}};
  return finding;
}

}  // namespace

TEST_CASE("Findings are kept for their program until it takes them") {
  Findings findings;
  findings.add(1, about(10));
  findings.add(2, about(20));
  findings.add(1, about(11));
  findings.add(1, about(10));  // as before
  CHECK(findings.take(1, 1).at(0).qp.qpn.value == 10);
  CHECK(findings.take(1, 9).at(0).qp.qpn.value == 11);
  CHECK(findings.take(1, 9).empty());
  CHECK(findings.take(2, 9).size() == 1);
}

TEST_CASE(
    "A program that takes none has no more than its share, and all together no more than all") {
  Findings findings;
  for (uint32_t i = 0; i < 1000; ++i) findings.add(1, about(i));
  CHECK(findings.size() == Findings::kMaxOfOne);
  for (uint32_t program = 2; program < 100; ++program)
    for (uint32_t i = 0; i < 100; ++i) findings.add(program, about(i));
  CHECK(findings.size() == Findings::kMax);
}
