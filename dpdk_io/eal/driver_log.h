// DriverLog collects what DPDK and its drivers log while something is set up, so that the user sees
// it when that fails.
#pragma once

#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

namespace rocemu::dpdk_io {

// There is one at a time, used by one thread. Between its construction and show_on_stderr() the log
// is collected. DPDK may go on using the stream it was given during its start, so the object that
// saw that lives as long as DPDK runs.
class DriverLog {
 public:
  DriverLog();  // throws std::runtime_error
  ~DriverLog();
  DriverLog(const DriverLog&) = delete;
  DriverLog& operator=(const DriverLog&) = delete;

  // From now on the log goes there.
  void show_on_stderr() noexcept;

  // The lines collected so far, joined by "; ", without those that contain one of `harmless`.
  std::string summary(std::initializer_list<std::string_view> harmless = {});

 private:
  char* text_ = nullptr;
  size_t length_bytes_ = 0;
  FILE* stream_;
};

}  // namespace rocemu::dpdk_io
