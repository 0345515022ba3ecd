#include "impairment/grammar.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/random.h"
#include "impairment/quantity.h"

namespace rocemu::impairment {
namespace {

Spec spec_of(const std::string& text) {
  const ParsedSpec parsed = parse_spec(text);
  INFO(text << ": " << parsed.error);
  REQUIRE(parsed.spec);
  return *parsed.spec;
}

}  // namespace

TEST_CASE("every impairment has a piece of the text") {
  const Spec spec = spec_of(
      "loss=1%,dup=0.1%,reorder=0.5%/70us,corrupt=100ppm,delay=20us,jitter=5us,rate=10gbit,"
      "queue=1mb,outage=5ms/1s,seed=7");
  CHECK(spec.impairments == Impairments{.delay_ns = 20'000,
                                        .jitter_ns = 5'000,
                                        .rate_bits_per_s = 10'000'000'000,
                                        .queue_limit_bytes = 1'000'000,
                                        .loss_ppm = 10'000,
                                        .duplicate_ppm = 1'000,
                                        .reorder_ppm = 5'000,
                                        .reorder_delay_ns = 70'000,
                                        .corrupt_ppm = 100,
                                        .outage_interval_ns = 1'000'000'000,
                                        .outage_length_ns = 5'000'000});
  CHECK(spec.seed == 7);
}

TEST_CASE("none, order, spaces and defaults") {
  CHECK(spec_of("none") == Spec{});
  CHECK(spec_of("  none ") == Spec{});
  CHECK(spec_of("delay=1ms,loss=2%") == spec_of(" loss=2% , delay=1ms "));
  CHECK(spec_of("loss=1%").seed == kDefaultSeed);
  CHECK(spec_of("reorder=1%").impairments.reorder_delay_ns == kDefaultReorderDelayNs);
  CHECK(spec_of("loss=0%") == Spec{});
  CHECK(spec_of("seed=18446744073709551615").seed == UINT64_MAX);
}

TEST_CASE("units are exact") {
  CHECK(spec_of("loss=100%").impairments.loss_ppm == 1'000'000);
  CHECK(spec_of("loss=0.0001%").impairments.loss_ppm == 1);
  CHECK(spec_of("loss=12.3400%").impairments.loss_ppm == 123'400);
  CHECK(spec_of("loss=1.000000%").impairments.loss_ppm == 10'000);
  CHECK(spec_of("loss=1000000ppm").impairments.loss_ppm == 1'000'000);
  CHECK(spec_of("delay=1.5us").impairments.delay_ns == 1'500);
  CHECK(spec_of("delay=0.000000001s").impairments.delay_ns == 1);
  CHECK(spec_of("delay=3600s").impairments.delay_ns == 3'600'000'000'000);
  CHECK(spec_of("rate=2.5gbit").impairments.rate_bits_per_s == 2'500'000'000);
  CHECK(spec_of("rate=9bit").impairments.rate_bits_per_s == 9);
  CHECK(spec_of("rate=1kbit,queue=1.5kb").impairments.queue_limit_bytes == 1'500);
}

TEST_CASE("nonsense names the piece and shows the right form") {
  struct Row {
    const char* text;
    const char* piece;  // in the message …
    const char* form;   // … and this as well
  };
  const Row row = GENERATE(
      Row{"", "no impairment is given", "loss=1%,delay=20us, or none"},
      Row{"   ", "no impairment is given", "none"}, Row{",", "missing between commas", "loss=1%"},
      Row{"loss=1%,", "missing between commas", "loss=1%"},
      Row{"loss=1%,,dup=1%", "missing between commas", "loss=1%"},
      Row{"loss", "'loss' has no value", "loss=1%"},
      Row{"loss=", "'' does not begin with a number", "loss=1%"},
      Row{"loss=1", "'1' has no unit", "% or ppm, like 1%"},
      Row{"loss=0.01", "'0.01' has no unit", "% or ppm, like 1%"},
      Row{"loss=1us", "has the unit 'us'", "% or ppm"},
      Row{"loss=101%", "'101%' is more than 100%", "loss=1%"},
      Row{"loss=100.0001%", "is more than 100%", "loss=1%"},
      Row{"loss=99999999999999999999%", "is more than 100%", "loss=1%"},
      Row{"loss=1000001ppm", "is more than 100%", "loss=1%"},
      Row{"loss=0.00001%", "finer than the steps of 1 ppm", "loss=1%"},
      Row{"loss=-1%", "'-1%' does not begin with a number", "like 1%"},
      Row{"loss=+1%", "does not begin with a number", "like 1%"},
      Row{"loss=1e-2%", "has the unit 'e-2%'", "% or ppm"},
      Row{"loss=.5%", "does not begin with a number", "like 1%"},
      Row{"loss=1.%", "does not begin with a number", "like 1%"},
      Row{"loss=1.2.3%", "does not begin with a number", "like 1%"},
      Row{"loss=1 %", "has the unit ' %'", "% or ppm"},
      Row{"loss=1%%", "has the unit '%%'", "% or ppm"},
      Row{"loss=1%=2", "has the unit '%=2'", "% or ppm"},
      Row{"loss=1%,loss=2%", "'loss=2%': loss is given twice", ""},
      Row{"los=1%", "'los=1%': there is no impairment 'los'", "there are loss, dup, reorder"},
      Row{"Loss=1%", "no impairment 'Loss'", "loss=1%"}, Row{"=1%", "no impairment ''", "loss=1%"},
      Row{"1%", "no impairment '1%'", "loss=1%"},
      Row{"loss=1%;delay=1us", "has the unit '%;delay=1us'", "% or ppm"},
      Row{"none,loss=1%", "'none' stands alone", ""},
      Row{"loss=1%,none", "'none' stands alone", ""},
      Row{"delay=20", "delay: '20' has no unit", "ns, us, ms or s, like 20us"},
      Row{"delay=20m", "has the unit 'm'", "ns, us, ms or s"},
      Row{"delay=1.5ns", "finer than the steps of 1 ns", "delay=20us"},
      Row{"delay=3601s", "is more than 3600s", "delay=20us"},
      Row{"jitter=fast", "jitter: 'fast' does not begin with a number", "jitter=5us"},
      Row{"rate=10", "rate: '10' has no unit", "bit, kbit, mbit or gbit, like 10gbit"},
      Row{"rate=10Gbit", "has the unit 'Gbit'", "gbit"},
      Row{"rate=10gbps", "has the unit 'gbps'", "gbit"},
      Row{"rate=0gbit", "lets nothing through", "rate=10gbit"},
      Row{"rate=20000gbit", "is more than 10000gbit", "rate=10gbit"},
      Row{"rate=1gbit,queue=0b", "holds no frame", "queue=1mb"},
      Row{"queue=1mb", "queue: nothing waits in a queue without a rate", "rate=10gbit,queue=1mb"},
      Row{"rate=1gbit,queue=1mbit", "has the unit 'mbit'", "b, kb or mb, like 1mb"},
      Row{"rate=1gbit,queue=10", "'10' has no unit", "b, kb or mb"},
      Row{"reorder=1%/", "reorder: '' does not begin with a number", "reorder=0.5%/50us"},
      Row{"reorder=1%/5", "reorder: '5' has no unit", "reorder=0.5%/50us"},
      Row{"outage=5ms", "'5ms' does not say how often", "LENGTH/EVERY, like 5ms/1s"},
      Row{"outage=5ms/0s", "leaves no time between outages", "loss=100%"},
      Row{"outage=5ms/1s/2s", "has the unit 's/2s'", "outage=5ms/1s"},
      Row{"seed=", "seed: ''", "write a seed like 7"},
      Row{"seed=x", "seed: 'x'", "write a seed like 7"},
      Row{"seed=-1", "seed: '-1'", "write a seed like 7"},
      Row{"seed=7x", "seed: '7x'", "write a seed like 7"},
      Row{"seed=18446744073709551616", "below 2^64", "write a seed like 7"});
  const ParsedSpec parsed = parse_spec(row.text);
  INFO(row.text);
  CHECK_FALSE(parsed.spec);
  CHECK_THAT(parsed.error, Catch::Contains(row.piece) && Catch::Contains(row.form));
  CHECK(parsed.error.find('\n') == std::string::npos);
}

TEST_CASE("what is printed is short and in the largest whole unit") {
  CHECK(to_text(Spec{}) == "none");
  CHECK(to_text(spec_of("loss=10000ppm,delay=20000ns,rate=25000mbit,queue=2000kb")) ==
        "loss=1%,delay=20us,rate=25gbit,queue=2mb");
  CHECK(to_text(spec_of("delay=1.5us,loss=0.05%,dup=12.34%,reorder=1ppm")) ==
        "loss=0.05%,dup=12.34%,reorder=0.0001%/50us,delay=1500ns");
  CHECK(to_text(spec_of("seed=7")) == "seed=7");
}

TEST_CASE("what is printed is read as the same") {
  Random random(2024);
  const auto draw = [&](uint64_t most) -> uint64_t {
    uint64_t scale = 1;
    for (uint64_t zeros = random.below(10); zeros > 0; --zeros) scale *= 10;
    return random.chance(300'000) ? 0 : random.below(most / scale + 1) * scale;
  };
  for (int i = 0; i < 20'000; ++i) {
    const auto ppm = [&] { return static_cast<uint32_t>(draw(1'000'000)); };
    const auto ns = [&] { return draw(3'600'000'000'000); };
    Spec spec;
    spec.impairments = {.delay_ns = ns(),
                        .jitter_ns = ns(),
                        .rate_bits_per_s = 1 + draw(9'999'999'999'999),
                        .queue_limit_bytes = draw(1'000'000'000'000),
                        .loss_ppm = ppm(),
                        .duplicate_ppm = ppm(),
                        .reorder_ppm = ppm(),
                        .reorder_delay_ns = ns(),
                        .corrupt_ppm = ppm(),
                        .outage_interval_ns = 1 + draw(3'599'999'999'999),
                        .outage_length_ns = ns()};
    spec.seed = random.next() >> random.below(64);
    const std::string text = to_text(spec);
    const ParsedSpec parsed = parse_spec(text);
    if (!parsed.spec || *parsed.spec != spec) FAIL(text << ": " << parsed.error);
  }
}

TEST_CASE("any bytes are answered with a spec or an error") {
  Random random(99);
  constexpr std::string_view kAlphabet =
      "lossdupreorderdelayqueueratenone0123456789.,=/%:- \tpmnsubitkg";
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (uint64_t length = random.below(24); length > 0; --length)
      text += kAlphabet[random.below(kAlphabet.size())];
    const ParsedSpec parsed = parse_spec(text);
    if (parsed.spec.has_value() == !parsed.error.empty()) FAIL(text);
    if (parsed.spec && parse_spec(to_text(*parsed.spec)).spec != parsed.spec) FAIL(text);
  }
}

}  // namespace rocemu::impairment
