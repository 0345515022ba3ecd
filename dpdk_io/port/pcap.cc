#include "dpdk_io/port/pcap.h"

#include <pcap/pcap.h>

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

constexpr uint64_t kRecordHeaderBytes = 16;  // pcap-savefile(5)

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
      format_(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, static_cast<int>(snaplen),
                                                   PCAP_TSTAMP_PRECISION_NANO),
              pcap_close),
      buffer_(std::make_unique<char[]>(kBufferBytes)),
      dumper_(nullptr, pcap_dump_close),
      left_bytes_(limit_bytes) {
  if (snaplen == 0) throw std::runtime_error(path.string() + ": a capture of 0 bytes per frame");
  if (format_ == nullptr) throw std::runtime_error(describe(path, ENOMEM));
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) throw std::runtime_error(describe(path, errno));
  std::setvbuf(file, buffer_.get(), _IOFBF, kBufferBytes);
  dumper_.reset(pcap_dump_fopen(format_.get(), file));
  if (dumper_ == nullptr) {
    const int error = errno;
    std::fclose(file);
    throw std::runtime_error(describe(path, error));
  }
}

PcapWriter::~PcapWriter() { flush(); }

void PcapWriter::write(std::span<const std::byte> frame, uint64_t realtime_ns) noexcept {
  if (ended_) {
    ++errors_;
    return;
  }
  pcap_pkthdr header{};
  header.ts.tv_sec = static_cast<time_t>(realtime_ns / kNsPerSecond);
  header.ts.tv_usec = static_cast<suseconds_t>(realtime_ns % kNsPerSecond);  // ns, by precision
  header.len = static_cast<bpf_u_int32>(frame.size());
  header.caplen = std::min(header.len, snaplen_);
  if (left_bytes_ < header.caplen + kRecordHeaderBytes) {
    flush();
    return end("it has reached its limit");
  }
  left_bytes_ -= header.caplen + kRecordHeaderBytes;
  pcap_dump(reinterpret_cast<u_char*>(dumper_.get()), &header,
            reinterpret_cast<const u_char*>(frame.data()));
  if (std::ferror(pcap_dump_file(dumper_.get())) != 0) return fail(errno);
  ++frames_written_;
}

void PcapWriter::flush() noexcept {
  if (!ended_ && pcap_dump_flush(dumper_.get()) != 0) fail(errno);
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
