// Writes Ethernet frames to a pcap file with nanosecond time stamps, for tcpdump and Wireshark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "dpdk_io/port/frame_writer.h"

namespace rocemu::dpdk_io {

// Used by one thread. Frames are buffered (256 KiB) and reach the file when the buffer is full, at
// flush() and at destruction; each of these may wait for the disk. The path may be a FIFO: opening
// it waits for the reader, and the process must then ignore SIGPIPE.
class PcapWriter final : public FrameWriter {
 public:
  static constexpr unsigned kWholeFrames = 65535;

  static constexpr uint64_t kNoLimit = UINT64_MAX;

  // Is called once, when recording ends by the first error or at the limit, by whoever writes or
  // flushes at that time.
  using ErrorReport = std::function<void(const std::string& message)>;

  // Creates or truncates the file. At most `snaplen` bytes of a frame are kept, and of frames with
  // their headers `limit_bytes`: recording ends before the first frame that would be over that.
  // Throws std::runtime_error when the file cannot be opened or `snaplen` is 0.
  explicit PcapWriter(const std::filesystem::path& path, unsigned snaplen = kWholeFrames,
                      ErrorReport report = {}, uint64_t limit_bytes = kNoLimit);
  ~PcapWriter() override;

  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  // `realtime_ns` counts from the epoch. After a write error (disk full) nothing more is written,
  // so that the file ends where it broke, and so after the limit; further frames count as errors.
  void write(std::span<const std::byte> frame, uint64_t realtime_ns) noexcept override;
  void flush() noexcept override;

  // Frames put into the buffer; those that an error kept from the file are not taken back.
  uint64_t frames_written() const noexcept override { return frames_written_; }
  uint64_t errors() const noexcept { return errors_; }

 private:
  void fail(int error) noexcept;
  void end(const char* reason) noexcept;

  std::filesystem::path path_;
  unsigned snaplen_;
  ErrorReport report_;
  std::unique_ptr<char[]> buffer_;  // in use until the file is closed
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  uint64_t left_bytes_;
  bool ended_ = false;
  uint64_t frames_written_ = 0;
  uint64_t errors_ = 0;
};

}  // namespace rocemu::dpdk_io
