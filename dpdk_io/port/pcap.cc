#include "dpdk_io/port/pcap.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace rocemu::dpdk_io {
namespace {

constexpr size_t kBufferBytes = 256 * 1024;
constexpr uint64_t kNsPerSecond = 1'000'000'000;

// The headers of a file and of each frame in it: pcap-savefile(5), in the byte order of this
// machine.
struct FileHeader {
  uint32_t magic = 0xa1b23c4d;  // with time stamps in nanoseconds
  uint16_t major = 2;
  uint16_t minor = 4;
  uint32_t reserved[2] = {};
  uint32_t snaplen;
  uint32_t link_type = 1;  // Ethernet
};
static_assert(sizeof(FileHeader) == 24);

struct RecordHeader {
  uint32_t seconds;
  uint32_t nanoseconds;
  uint32_t captured_bytes;
  uint32_t frame_bytes;
};
static_assert(sizeof(RecordHeader) == 16);

std::string describe(const std::filesystem::path& path, const char* reason) {
  return "capture file " + path.string() + ": " + reason;
}

std::string describe(const std::filesystem::path& path, int error) {
  return describe(path, std::strerror(error));
}

}  // namespace

PcapWriter::PcapWriter(const std::filesystem::path& path, unsigned snaplen, ErrorReport report,
                       uint64_t limit_bytes)
    : path_(path),
      snaplen_(snaplen),
      report_(std::move(report)),
      buffer_(std::make_unique<char[]>(kBufferBytes)),
      file_(nullptr, std::fclose),
      left_bytes_(limit_bytes) {
  if (snaplen == 0) throw std::runtime_error(path.string() + ": a capture of 0 bytes per frame");
  file_.reset(std::fopen(path.c_str(), "we"));
  if (file_ == nullptr) throw std::runtime_error(describe(path, errno));
  std::setvbuf(file_.get(), buffer_.get(), _IOFBF, kBufferBytes);
  const FileHeader header{.snaplen = snaplen};
  std::fwrite(&header, sizeof header, 1, file_.get());
}

PcapWriter::~PcapWriter() { flush(); }

void PcapWriter::write(std::span<const std::byte> frame, uint64_t realtime_ns) noexcept {
  if (ended_) {
    ++errors_;
    return;
  }
  const auto frame_bytes = static_cast<uint32_t>(frame.size());
  const RecordHeader header{.seconds = static_cast<uint32_t>(realtime_ns / kNsPerSecond),
                            .nanoseconds = static_cast<uint32_t>(realtime_ns % kNsPerSecond),
                            .captured_bytes = std::min(frame_bytes, snaplen_),
                            .frame_bytes = frame_bytes};
  if (left_bytes_ < header.captured_bytes + sizeof header) {
    flush();
    return end("it has reached its limit");
  }
  left_bytes_ -= header.captured_bytes + sizeof header;
  std::fwrite(&header, sizeof header, 1, file_.get());
  std::fwrite(frame.data(), 1, header.captured_bytes, file_.get());
  if (std::ferror(file_.get()) != 0) return fail(errno);
  ++frames_written_;
}

void PcapWriter::flush() noexcept {
  if (!ended_ && std::fflush(file_.get()) != 0) fail(errno);
}

void PcapWriter::fail(int error) noexcept { end(std::strerror(error)); }

void PcapWriter::end(const char* reason) noexcept {
  if (ended_) return;
  ended_ = true;
  ++errors_;
  if (!report_) return;
  try {
    report_(describe(path_, reason) + "; recording has ended");
  } catch (...) {
    // A report that throws must not take the data path down with it.
  }
}

}  // namespace rocemu::dpdk_io
