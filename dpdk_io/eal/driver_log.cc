#include "dpdk_io/eal/driver_log.h"

#include <rte_log.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace rocemu::dpdk_io {

DriverLog::DriverLog() : stream_(open_memstream(&text_, &length_bytes_)) {
  if (stream_ == nullptr) throw std::runtime_error("out of memory for the log of DPDK");
  rte_openlog_stream(stream_);
}

DriverLog::~DriverLog() {
  show_on_stderr();
  std::fclose(stream_);
  std::free(text_);
}

void DriverLog::show_on_stderr() noexcept { rte_openlog_stream(stderr); }

std::string DriverLog::summary(std::initializer_list<std::string_view> harmless) {
  std::fflush(stream_);
  std::istringstream lines(std::string(text_, length_bytes_));
  std::string joined;
  for (std::string line; std::getline(lines, line);) {
    const bool skip = line.empty() || std::ranges::any_of(harmless, [&](std::string_view part) {
                        return line.find(part) != std::string::npos;
                      });
    if (skip) continue;
    if (!joined.empty()) joined += "; ";
    joined += line;
  }
  return joined;
}

}  // namespace rocemu::dpdk_io
