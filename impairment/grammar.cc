#include "impairment/grammar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "impairment/quantity.h"

namespace rocemu::impairment {
namespace {

constexpr std::string_view kNone = "none";

// Empty, or what is wrong with the value.
using Apply = std::string (*)(Spec& spec, std::string_view value);

std::string take(const Kind& kind, std::string_view text, uint64_t& into) {
  ParsedQuantity parsed = parse_quantity(kind, text);
  if (!parsed.value) return std::move(parsed.error);
  into = *parsed.value;
  return {};
}

std::string take(std::string_view text, uint32_t& into_ppm) {
  uint64_t ppm = 0;
  std::string error = take(kProbability, text, ppm);
  into_ppm = static_cast<uint32_t>(ppm);
  return error;
}

template <uint32_t Impairments::*Member>
std::string apply_probability(Spec& spec, std::string_view value) {
  return take(value, spec.impairments.*Member);
}

template <uint64_t Impairments::*Member>
std::string apply_duration(Spec& spec, std::string_view value) {
  return take(kDuration, value, spec.impairments.*Member);
}

std::string apply_reorder(Spec& spec, std::string_view value) {
  const size_t slash = value.find('/');
  spec.impairments.reorder_delay_ns = kDefaultReorderDelayNs;
  std::string error = take(value.substr(0, slash), spec.impairments.reorder_ppm);
  if (!error.empty() || slash == std::string_view::npos) return error;
  return take(kDuration, value.substr(slash + 1), spec.impairments.reorder_delay_ns);
}

std::string apply_rate(Spec& spec, std::string_view value) {
  std::string error = take(kRate, value, spec.impairments.rate_bits_per_s);
  if (error.empty() && spec.impairments.rate_bits_per_s == 0)
    return "'" + std::string(value) + "' lets nothing through; leave rate out for no limit";
  return error;
}

std::string apply_queue(Spec& spec, std::string_view value) {
  std::string error = take(kSize, value, spec.impairments.queue_limit_bytes);
  if (error.empty() && spec.impairments.queue_limit_bytes == 0)
    return "'" + std::string(value) + "' holds no frame; leave queue out for no limit";
  return error;
}

std::string apply_outage(Spec& spec, std::string_view value) {
  const size_t slash = value.find('/');
  if (slash == std::string_view::npos)
    return "'" + std::string(value) + "' does not say how often; write LENGTH/EVERY, like 5ms/1s";
  std::string error = take(kDuration, value.substr(0, slash), spec.impairments.outage_length_ns);
  if (!error.empty()) return error;
  error = take(kDuration, value.substr(slash + 1), spec.impairments.outage_interval_ns);
  if (error.empty() && spec.impairments.outage_interval_ns == 0)
    return "'" + std::string(value) + "' leaves no time between outages; write loss=100% instead";
  return error;
}

std::string apply_seed(Spec& spec, std::string_view value) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), spec.seed);
  if (!value.empty() && error == std::errc{} && end == value.data() + value.size()) return {};
  return "'" + std::string(value) + "' is no whole number below 2^64; write a seed like 7";
}

struct Key {
  std::string_view name;
  std::string_view example;
  Apply apply;
};

constexpr Key kKeys[] = {
    {"loss", "1%", apply_probability<&Impairments::loss_ppm>},
    {"dup", "0.1%", apply_probability<&Impairments::duplicate_ppm>},
    {"reorder", "0.5%/50us", apply_reorder},
    {"corrupt", "0.01%", apply_probability<&Impairments::corrupt_ppm>},
    {"delay", "20us", apply_duration<&Impairments::delay_ns>},
    {"jitter", "5us", apply_duration<&Impairments::jitter_ns>},
    {"rate", "10gbit", apply_rate},
    {"queue", "1mb", apply_queue},
    {"outage", "5ms/1s", apply_outage},
    {"seed", "7", apply_seed},
};

std::string key_names() {
  std::string names;
  for (const Key& key : kKeys) names += (names.empty() ? "" : ", ") + std::string(key.name);
  return names;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// Takes one piece, KEY=VALUE. Empty, or what is wrong.
std::string apply_piece(Spec& spec, std::string_view piece,
                        std::array<bool, std::size(kKeys)>& seen) {
  if (piece.empty()) return "an impairment is missing between commas; write one like loss=1%";
  const size_t equals = piece.find('=');
  const std::string_view name = piece.substr(0, equals);
  const Key* const key = std::ranges::find(kKeys, name, &Key::name);
  if (key == std::end(kKeys)) {
    if (name == kNone) return "'none' stands alone";
    return quoted(piece) + ": there is no impairment " + quoted(name) + "; there are " +
           key_names() + ", written like loss=1%,delay=20us";
  }
  const std::string like = std::string(key->name) + "=" + std::string(key->example);
  if (equals == std::string_view::npos)
    return quoted(piece) + " has no value; write it like " + like;
  if (std::exchange(seen[static_cast<size_t>(key - kKeys)], true))
    return quoted(piece) + ": " + std::string(name) + " is given twice";
  const std::string error = key->apply(spec, piece.substr(equals + 1));
  if (error.empty()) return {};
  return std::string(name) + ": " + error + " (as in " + like + ")";
}

}  // namespace

ParsedSpec parse_spec(std::string_view text) {
  text = trimmed(text);
  if (text.empty())
    return {std::nullopt, "no impairment is given; write some like loss=1%,delay=20us, or none"};
  Spec spec;
  if (text == kNone) return {spec, {}};
  std::array<bool, std::size(kKeys)> seen{};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    std::string error = apply_piece(spec, trimmed(text.substr(begin, comma - begin)), seen);
    if (!error.empty()) return {std::nullopt, std::move(error)};
    begin = comma + 1;
  }
  if (spec.impairments.queue_limit_bytes > 0 && spec.impairments.rate_bits_per_s == 0)
    return {
        std::nullopt,
        "queue: nothing waits in a queue without a rate; write both, like rate=10gbit,queue=1mb"};
  return {spec, {}};
}

std::string to_text(const Spec& spec) {
  std::string text;
  const auto add = [&text](std::string_view name, const std::string& value) {
    if (!text.empty()) text += ',';
    text += std::string(name) + '=' + value;
  };
  const Impairments& i = spec.impairments;
  if (i.loss_ppm > 0) add("loss", to_text(kProbability, i.loss_ppm));
  if (i.duplicate_ppm > 0) add("dup", to_text(kProbability, i.duplicate_ppm));
  if (i.reorder_ppm > 0 || i.reorder_delay_ns > 0)
    add("reorder",
        to_text(kProbability, i.reorder_ppm) + "/" + to_text(kDuration, i.reorder_delay_ns));
  if (i.corrupt_ppm > 0) add("corrupt", to_text(kProbability, i.corrupt_ppm));
  if (i.delay_ns > 0) add("delay", to_text(kDuration, i.delay_ns));
  if (i.jitter_ns > 0) add("jitter", to_text(kDuration, i.jitter_ns));
  if (i.rate_bits_per_s > 0) add("rate", to_text(kRate, i.rate_bits_per_s));
  if (i.queue_limit_bytes > 0) add("queue", to_text(kSize, i.queue_limit_bytes));
  if (i.outage_interval_ns > 0 || i.outage_length_ns > 0)
    add("outage",
        to_text(kDuration, i.outage_length_ns) + "/" + to_text(kDuration, i.outage_interval_ns));
  if (spec.seed != kDefaultSeed) add("seed", std::to_string(spec.seed));
  return text.empty() ? std::string(kNone) : text;
}

}  // namespace rocemu::impairment
