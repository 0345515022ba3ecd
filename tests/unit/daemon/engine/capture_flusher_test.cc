#include "emulator/daemon/engine/capture_flusher.h"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "dpdk_io/port/pcap.h"

namespace rocemu::daemon {

TEST_CASE("a capture is flushed when frames have come, and not more often than it has to be") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("rocemu-flusher-" + std::to_string(::getpid()) + ".pcap");
  constexpr TimeNs kPeriodNs = 100'000'000;
  {
    dpdk_io::PcapWriter writer(path);
    const auto size = [&] { return std::filesystem::file_size(path); };
    CaptureFlusher flusher;
    CHECK(flusher.next_flush_ns() == kNever);
    flusher.flush_if_due(1);  // there is no writer yet

    flusher.set_writer(&writer);
    CHECK(flusher.next_flush_ns() == kNever);
    writer.write(std::array<std::byte, 60>{}, 1);
    CHECK(flusher.next_flush_ns() == 0);
    flusher.flush_if_due(1000);
    const auto with_one = size();
    CHECK(with_one > 60);
    CHECK(flusher.next_flush_ns() == kNever);

    writer.write(std::array<std::byte, 60>{}, 2);
    CHECK(flusher.next_flush_ns() == 1000 + kPeriodNs);
    flusher.flush_if_due(999 + kPeriodNs);
    CHECK(size() == with_one);
    flusher.flush_if_due(1000 + kPeriodNs);
    CHECK(size() > with_one);
  }
  std::filesystem::remove(path);
}

}  // namespace rocemu::daemon
