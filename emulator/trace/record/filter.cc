#include "emulator/trace/record/filter.h"

#include <algorithm>
#include <charconv>

namespace rocemu::trace {

namespace {

constexpr uint32_t kMax24Bits = 0xffffff;

bool read_qpn(std::string_view text, uint32_t& qpn) {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), qpn, is_hex ? 16 : 10);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size() && qpn <= kMax24Bits;
}

}  // namespace

bool lets_through(const Filter& filter, uint32_t qpn, std::string_view program, uint32_t pid) {
  if (!filter.qpns.empty() && std::ranges::find(filter.qpns, qpn) == filter.qpns.end())
    return false;
  if (filter.programs.empty()) return true;
  const std::string number = pid == 0 ? "" : std::to_string(pid);
  return std::ranges::any_of(filter.programs, [&](const std::string& wanted) {
    return (!program.empty() && wanted == program) || (!number.empty() && wanted == number);
  });
}

std::string parse_filter(std::string_view text, Filter& filter, std::vector<std::string>& devices) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : word.substr(equals + 1);
    uint32_t qpn = 0;
    if (value.empty()) return "'" + std::string(word) + "' is no KEY=VALUE";
    if (key == "device") {
      devices.emplace_back(value);
    } else if (key == "program") {
      filter.programs.emplace_back(value);
    } else if (key != "qp") {
      return "'" + std::string(key) + "' is none of device, qp, program";
    } else if (read_qpn(value, qpn)) {
      filter.qpns.push_back(qpn);
    } else {
      return "'" + std::string(value) + "' is no QPN; they are up to 0xffffff";
    }
  }
  return {};
}

}  // namespace rocemu::trace
