#include "network/description/ns3_topology.h"

#include <charconv>
#include <stdexcept>
#include <string_view>

#include "impairment/quantity.h"

namespace rocemu::network {
namespace {

using impairment::Kind;
using impairment::Unit;

constexpr uint32_t kMaxNodes = 100'000;
constexpr uint32_t kMaxLinks = 1'000'000;

constexpr Unit kRateUnits[] = {
    {"bps", 1}, {"Kbps", 1'000}, {"Mbps", 1'000'000}, {"Gbps", 1'000'000'000}};
constexpr Kind kRate{"a rate", kRateUnits, 10'000'000'000'000, "10000Gbps", "100Gbps"};
constexpr Unit kErrorUnits[] = {{"", 1'000'000}};
constexpr Kind kErrors{"a probability", kErrorUnits, 1'000'000, "1", "0.001"};

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::string_view next(const char* what) {
    constexpr std::string_view kSpace = " \t\r\n";
    skip(std::min(text_.find_first_not_of(kSpace), text_.size()));
    const std::string_view word = text_.substr(0, text_.find_first_of(kSpace));
    if (word.empty()) throw Wrong("it ends where " + std::string(what) + " should be");
    skip(word.size());
    return word;
  }
  uint32_t number(const char* what, uint32_t most) {
    const std::string_view word = next(what);
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || value > most)
      throw Wrong("'" + std::string(word) + "' is not " + what + ", a number up to " +
                  std::to_string(most));
    return value;
  }
  uint64_t quantity(const Kind& kind, const char* what) {
    const impairment::ParsedQuantity parsed = impairment::parse_quantity(kind, next(what));
    if (!parsed.value) throw Wrong(parsed.error);
    return *parsed.value;
  }
  size_t line() const { return line_; }

 private:
  void skip(size_t count) {
    for (const char c : text_.substr(0, count)) line_ += c == '\n';
    text_.remove_prefix(count);
  }

  std::string_view text_;
  size_t line_ = 1;
};

Topology parse(Words& words) {
  const uint32_t nodes = words.number("the number of nodes", kMaxNodes);
  const uint32_t switches = words.number("the number of switches", nodes);
  const uint32_t links = words.number("the number of links", kMaxLinks);
  if (nodes == 0) throw Wrong("there is no node");
  Topology topology;
  for (uint32_t i = 0; i < nodes; ++i) topology.add_host(std::to_string(i));
  for (uint32_t i = 0; i < switches; ++i)
    topology.nodes[words.number("a switch", nodes - 1)].is_switch = true;
  for (uint32_t i = 0; i < links; ++i) {
    const uint32_t a = words.number("a node", nodes - 1);
    const uint32_t b = words.number("a node", nodes - 1);
    LinkSettings link;
    link.rate_bits_per_s = words.quantity(kRate, "a rate");
    link.delay_ns = words.quantity(impairment::kDuration, "a delay");
    link.loss_ppm = static_cast<uint32_t>(words.quantity(kErrors, "a probability of errors"));
    topology.connect(a, b, link);
  }
  return topology;
}

}  // namespace

ParsedTopology parse_ns3_topology(const std::string& text) {
  Words words(text);
  try {
    Topology topology = parse(words);
    if (std::string wrong = problem(topology); !wrong.empty())
      return {std::nullopt, std::move(wrong)};
    return {std::move(topology), {}};
  } catch (const Wrong& wrong) {
    return {std::nullopt, "line " + std::to_string(words.line()) + ": " + wrong.what()};
  }
}

}  // namespace rocemu::network
