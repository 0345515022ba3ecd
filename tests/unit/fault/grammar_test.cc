#include "emulator/fault/grammar.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

#include "base/random.h"
#include "emulator/fault/kinds.h"
#include "emulator/fault/quirks.h"

namespace rocemu::fault {
namespace {

Spec spec_of(const std::string& text) {
  const ParsedFaults parsed = parse_faults(text);
  INFO(text << ": " << parsed.error);
  REQUIRE(parsed.error.empty());
  REQUIRE(parsed.faults.size() == 1);
  return parsed.faults.front();
}

std::string error_of(const std::string& text) {
  const ParsedFaults parsed = parse_faults(text);
  INFO(text);
  CHECK(parsed.faults.empty());
  REQUIRE_FALSE(parsed.error.empty());
  CHECK(parsed.error.find('\n') == std::string::npos);
  CHECK(parsed.error.back() != '.');
  return parsed.error;
}

bool says(const std::string& text, const std::string& part) {
  const std::string error = error_of(text);
  INFO(error);
  return error.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a fault has a device, a kind, and keys of what, whom and when") {
  const Spec spec = spec_of(
      "rocemu0 qp-error status=rem-access-err qp=17 pid=42 program=ib_write_bw peer=10.77.0.2 "
      "after=2s times=3 request=1000 p=50% seed=9");
  CHECK(spec.device == "rocemu0");
  CHECK(spec.what.kind == Kind::qp_error);
  CHECK(spec.what.status == 10);
  CHECK(spec.whom.qpn == 17u);
  CHECK(spec.whom.pid == 42u);
  CHECK(spec.whom.program == "ib_write_bw");
  const uint8_t peer[] = {10, 77, 0, 2};
  CHECK(spec.whom.peer == IpAddress::of_ipv4(peer));
  CHECK(spec.when.after_ns == 2'000'000'000);
  CHECK(spec.when.times == 3u);
  CHECK(spec.when.counted == Counted::requests);
  CHECK(spec.when.count == 1000);
  CHECK(spec.when.probability_ppm == 500'000);
  CHECK(spec.when.seed == 9);
}

TEST_CASE("every example of the table is a fault, and its text is the same fault") {
  for (const KindRow& row : kinds()) {
    const Spec spec = spec_of("all " + std::string(row.example));
    CHECK(spec.what.kind == row.kind);
    CHECK(spec_of(to_text(spec)) == spec);
  }
}

TEST_CASE("spaces and commas are the same, and defaults are filled in") {
  CHECK(spec_of("rocemu0,port-down,for=1s,every=5s") ==
        spec_of(" rocemu0 port-down every=5s  for=1s"));
  CHECK(spec_of("all qp-error").what.status == 12);
  CHECK(spec_of("all call-fails call=reg-mr").what.error == ENOMEM);
  CHECK(spec_of("all post-fails").what.queue == "any");
  CHECK(to_text(spec_of("all qp-error status=retry-exc-err")) == "all qp-error");
  CHECK(to_text(spec_of("all no-traffic direction=rx p=1% for=2000ms")) ==
        "all no-traffic direction=rx for=2s p=1%");
  CHECK(to_text(spec_of("all gid-changed index=1 to=10.77.9.9")) ==
        "all gid-changed index=1 to=10.77.9.9");
  CHECK(to_text(spec_of("all completion-status from=success status=loc-prot-err nth=2")) ==
        "all completion-status status=loc-prot-err from=success nth=2");
}

TEST_CASE("errors name the word and show the right form") {
  CHECK(says("rocemu0", "like: rocemu0 port-down"));
  CHECK(says("", "a device and a fault are wanted"));
  CHECK(says("port-down=1 for=1s", "is no device"));
  CHECK(says("rocemu0 explode", "there is no fault 'explode'; there are qp-error"));
  CHECK(says("rocemu0 port-down status=rem-op-err", "port-down takes qp pid"));
  CHECK(says("rocemu0 port-down for", "'for' has no value; write it like for=100ms"));
  CHECK(says("rocemu0 port-down for=1", "has no unit"));
  CHECK(says("rocemu0 port-down for=0s", "no time at all"));
  CHECK(says("rocemu0 port-down for=1us every=2us", "less than 1ms"));
  CHECK(says("rocemu0 pause program=a\nb", "control characters"));
  CHECK(says("rocemu0 port-down for=1s for=2s", "given twice"));
  CHECK(says("rocemu0 port-down frequency=3", "'frequency=3'"));
  CHECK(says("rocemu0 qp-error status=bad", "none of success, loc-len-err"));
  CHECK(says("rocemu0 qp-error qp=zero", "no whole number"));
  CHECK(says("rocemu0 call-fails errno=ENOMEM", "call-fails needs call="));
  CHECK(says("rocemu0 call-fails call=create-qp errno=12", "is no errno"));
  CHECK(says("rocemu0 call-fails call=destroy-qp", "none of open, alloc-pd"));
  CHECK(says("rocemu0 slow rate=0bit", "lets nothing through"));
  CHECK(says("rocemu0 gid-changed index=1 to=nowhere", "is no address"));
}

TEST_CASE("what does not go together is refused") {
  CHECK(says("rocemu0 port-down qp=3", "about the whole device"));
  CHECK(says("rocemu0 call-fails call=create-qp qp=3", "write program="));
  CHECK(says("rocemu0 port-down nth=3", "write request= or packet="));
  CHECK(says("rocemu0 call-fails call=create-qp request=3", "write nth="));
  CHECK(says("rocemu0 qp-error for=1s", "there is no for="));
  CHECK(says("rocemu0 port-down every=1s", "write for= as well"));
  CHECK(says("rocemu0 port-down for=2s every=1s", "never ends"));
  CHECK(says("rocemu0 qp-error every=1s packet=3", "times= says how often"));
  CHECK(says("rocemu0 qp-error nth=3 packet=3", "one of nth, request and packet"));
  CHECK(says("rocemu0 qp-error at=1s after=1s", "one of at and after"));
  CHECK(spec_of("rocemu0 port-down request=3 program=x").whom.program == "x");
}

TEST_CASE("a family's quirks are faults") {
  for (const std::string_view family : quirk_families()) {
    const ParsedFaults parsed = parse_faults("rocemu1 quirks=" + std::string(family));
    INFO(parsed.error);
    REQUIRE(parsed.faults.size() == quirk_texts(family).size());
    for (const Spec& spec : parsed.faults) {
      CHECK(spec.device == "rocemu1");
      CHECK(spec.quirks == family);
    }
  }
  CHECK(says("rocemu0 quirks=abacus", "none of mlx5, bnxt, irdma, rxe"));
  CHECK(says("rocemu0 quirks=rxe for=1s", "stands alone"));
}

TEST_CASE("a table of a configuration file is the same text") {
  CHECK(text_of_table({{"device", "rocemu0"}, {"what", "port-down"}, {"for", "1s"}}) ==
        "rocemu0 port-down for=1s");
  CHECK(text_of_table({{"for", "1s"}, {"what", "port-down"}}) == "all port-down for=1s");
  CHECK(text_of_table({{"quirks", "rxe"}}) == "all quirks=rxe");
  CHECK(says(text_of_table({{"device", "rocemu0"}}), "a device and a fault are wanted"));
}

TEST_CASE("any text is a fault or an error") {
  const std::string pieces[] = {"rocemu0", "all",        "qp-error", "port-down", "status=", "=",
                                "for=1s",  "every=",     "nth=1",    ",",         " ",       "qp=1",
                                "p=1%",    "quirks=rxe", "to=::1",   "index=0",   "\xff"};
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (uint64_t n = random.below(8); n > 0; --n)
      text += pieces[random.below(std::size(pieces))] + (random.below(2) == 0 ? " " : "");
    const ParsedFaults parsed = parse_faults(text);
    CHECK(parsed.faults.empty() != parsed.error.empty());
    for (const Spec& spec : parsed.faults) {
      Spec plain = spec_of(to_text(spec));
      plain.quirks = spec.quirks;
      CHECK(plain == spec);
    }
  }
}

}  // namespace rocemu::fault
