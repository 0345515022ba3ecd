#include "impairment/quantity.h"

#include <algorithm>

namespace rocemu::impairment {
namespace {

constexpr uint64_t kPpmPerPercent = 10'000;
constexpr Unit kProbabilityUnits[] = {{"%", kPpmPerPercent}, {"ppm", 1}};
constexpr Unit kDurationUnits[] = {
    {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
constexpr Unit kRateUnits[] = {
    {"bit", 1}, {"kbit", 1'000}, {"mbit", 1'000'000}, {"gbit", 1'000'000'000}};
constexpr Unit kSizeUnits[] = {{"b", 1}, {"kb", 1'000}, {"mb", 1'000'000}};

constexpr char kDigits[] = "0123456789";

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// "ns, us, ms or s"
std::string names_of(std::span<const Unit> units) {
  std::string names;
  for (size_t i = 0; i < units.size(); ++i) {
    if (i > 0) names += i + 1 == units.size() ? " or " : ", ";
    names += units[i].name;
  }
  return names;
}

// Multiplies by 10 and adds; false when that is over `most`.
bool append_digit(uint64_t& value, char digit, uint64_t most) {
  const auto add = static_cast<uint64_t>(digit - '0');
  if (value > (most - std::min(add, most)) / 10) return false;
  value = value * 10 + add;
  return true;
}

}  // namespace

constexpr Kind kProbability{"a probability", kProbabilityUnits, 1'000'000, "100%", "1%"};
constexpr Kind kDuration{"a time", kDurationUnits, 3'600'000'000'000, "3600s", "20us"};
constexpr Kind kRate{"a rate", kRateUnits, 10'000'000'000'000, "10000gbit", "10gbit"};
constexpr Kind kSize{"a size", kSizeUnits, 1'000'000'000'000, "1000000mb", "1mb"};

ParsedQuantity parse_quantity(const Kind& kind, std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return ParsedQuantity{std::nullopt, quoted(text) + " " + why};
  };
  const size_t number_length = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, number_length);
  const std::string_view unit_name = text.substr(number_length);
  const size_t whole_length = std::min(number.find('.'), number.size());
  const std::string_view whole = number.substr(0, whole_length);
  std::string_view fraction =
      whole_length < number.size() ? number.substr(whole_length + 1) : std::string_view();
  const bool dangling_point = whole_length < number.size() && fraction.empty();
  if (whole.empty() || dangling_point || fraction.find('.') != std::string_view::npos)
    return wrong("does not begin with a number; write " + std::string(kind.name) + " like " +
                 std::string(kind.example));

  const auto unit = std::ranges::find(kind.units, unit_name, &Unit::name);
  if (unit == kind.units.end())
    return wrong((unit_name.empty() ? "has no unit" : "has the unit " + quoted(unit_name)) +
                 "; write " + std::string(kind.name) + " with " + names_of(kind.units) + ", like " +
                 std::string(kind.example));

  const auto too_much = [&] { return wrong("is more than " + std::string(kind.most_text)); };
  uint64_t value = 0;
  for (const char digit : whole)
    if (!append_digit(value, digit, kind.most / unit->size)) return too_much();
  value *= unit->size;
  uint64_t place = unit->size;
  fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  for (const char digit : fraction) {
    if (place % 10 != 0)
      return wrong("is finer than the steps of 1 " +
                   std::string(std::ranges::find(kind.units, uint64_t{1}, &Unit::size)->name));
    place /= 10;
    value += static_cast<uint64_t>(digit - '0') * place;
  }
  if (value > kind.most) return too_much();
  return {value, {}};
}

std::string to_text(const Kind& kind, uint64_t value) {
  if (kind.units.data() == kProbabilityUnits) {
    std::string text = std::to_string(value / kPpmPerPercent);
    if (const uint64_t rest = value % kPpmPerPercent; rest != 0) {
      std::string decimals = std::to_string(kPpmPerPercent + rest).substr(1);
      text += "." + decimals.substr(0, decimals.find_last_not_of('0') + 1);
    }
    return text + "%";
  }
  const Unit* best = nullptr;
  for (const Unit& unit : kind.units)
    if (value % unit.size == 0 && (value != 0 || unit.size == 1) &&
        (best == nullptr || unit.size > best->size))
      best = &unit;
  return std::to_string(value / best->size) + std::string(best->name);
}

}  // namespace rocemu::impairment
