// memory_floor: how fast a third process moves bytes from one program to another in packets, with
// nothing of a NIC around it. That is what bandwidth is measured against.
//
//   memory_floor [--icrc] [--mapped [--one-copy]] [--message-bytes N] [--region-bytes N] [--mtu N]
//   [--seconds S]
//
// A's region → 32 packet buffers (one process_vm_readv) → B's region (one process_vm_writev), as
// the NIC does it; --icrc computes the CRC-32 of each packet twice, once as its sender and once as
// its receiver. --mapped: the regions are mapped here, and plainly copied. The regions are walked
// through message by message: the default of one message is hot in cache, a region of 1 GiB is not.
// Prints gigabytes (10^9) a second.
#include <isa-l/crc.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "tests/bench/arguments.h"
#include "tests/bench/holder.h"

namespace {

constexpr size_t kPacketsPerBurst = 32;
constexpr size_t kBufferStride = 4608;  // of an mbuf: packets do not lie back to back
constexpr size_t kHeaderBytes = 58;     // Ethernet, IPv4, UDP, BTH, RETH

using rocemu::bench::Holder;
using rocemu::bench::make_region;
using Clock = std::chrono::steady_clock;

class PacketPath {
 public:
  PacketPath(size_t mtu, bool icrc, bool mapped, bool one_copy)
      : mtu_(mtu),
        icrc_(icrc),
        mapped_(mapped),
        one_copy_(one_copy),
        buffers_(make_region(kPacketsPerBurst * kBufferStride)) {}

  // Moves `bytes` from offset `offset` of one region to the same of the other.
  void move(const Holder& from, const Holder& to, size_t offset, size_t bytes) {
    if (one_copy_) {
      std::memcpy(to.at(offset), from.at(offset), bytes);
      return;
    }
    while (bytes > 0) {
      const size_t burst = std::min(bytes, mtu_ * kPacketsPerBurst);
      const size_t packets = describe(burst);
      fetch(from, offset, packets, burst);
      if (icrc_) checksum(packets);  // made
      if (icrc_) checksum(packets);  // checked
      scatter(to, offset, packets, burst);
      offset += burst;
      bytes -= burst;
    }
  }

  uint32_t checksums() const { return sum_; }

 private:
  void fetch(const Holder& from, size_t offset, size_t packets, size_t bytes) {
    const iovec source{from.at(offset), bytes};
    if (!mapped_) {
      expect(::process_vm_readv(from.pid(), local_.data(), packets, &source, 1, 0), bytes);
      return;
    }
    for (size_t i = 0; i < packets; ++i)
      std::memcpy(local_[i].iov_base, from.at(offset + i * mtu_), local_[i].iov_len);
  }

  void scatter(const Holder& to, size_t offset, size_t packets, size_t bytes) {
    const iovec target{to.at(offset), bytes};
    if (!mapped_) {
      expect(::process_vm_writev(to.pid(), local_.data(), packets, &target, 1, 0), bytes);
      return;
    }
    for (size_t i = 0; i < packets; ++i)
      std::memcpy(to.at(offset + i * mtu_), local_[i].iov_base, local_[i].iov_len);
  }

  size_t describe(size_t bytes) {
    size_t packets = 0;
    for (; bytes > 0; ++packets) {
      const size_t length = std::min(bytes, mtu_);
      local_[packets] = {buffers_ + packets * kBufferStride + kHeaderBytes, length};
      bytes -= length;
    }
    return packets;
  }

  void checksum(size_t packets) {
    for (size_t i = 0; i < packets; ++i) {
      auto* packet = static_cast<unsigned char*>(local_[i].iov_base) - kHeaderBytes;
      sum_ ^= ::crc32_gzip_refl(0, packet, local_[i].iov_len + kHeaderBytes);
    }
  }

  static void expect(ssize_t moved, size_t bytes) {
    if (moved < 0) throw std::system_error(errno, std::generic_category(), "process_vm");
    if (static_cast<size_t>(moved) != bytes) throw std::runtime_error("process_vm came short");
  }

  size_t mtu_;
  bool icrc_;
  bool mapped_;
  bool one_copy_;
  std::byte* buffers_;
  std::array<iovec, kPacketsPerBurst> local_{};
  uint32_t sum_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  size_t message_bytes = 65536, region_bytes = 0, mtu = 4096;
  double seconds = 1;
  bool icrc = false, mapped = false, one_copy = false;
  rocemu::bench::Arguments arguments(
      "Bytes from one program to another through packets, without a NIC");
  arguments.flag("--icrc", icrc, "Checksum each packet twice");
  arguments.flag("--mapped", mapped, "Regions that are mapped here, instead of system calls");
  arguments.flag("--one-copy", one_copy, "With --mapped: no packet buffers between them");
  arguments.count("--message-bytes", message_bytes, "One message");
  arguments.count("--region-bytes", region_bytes, "Memory walked through (one message)");
  arguments.count("--mtu", mtu, "Payload of a packet", 4096);
  arguments.seconds(seconds);
  if (const auto code = arguments.parse(argc, argv)) return *code;
  if (one_copy && (!mapped || icrc))
    throw std::invalid_argument("--one-copy wants --mapped, and no --icrc");
  region_bytes = std::max(region_bytes, message_bytes);

  const Holder from(region_bytes, mapped), to(region_bytes, mapped);
  PacketPath path(mtu, icrc, mapped, one_copy);
  const size_t messages = region_bytes / message_bytes;
  size_t next = 0;
  const auto run = [&](double for_seconds) {
    const auto start = Clock::now();
    uint64_t bytes = 0;
    for (;;) {
      for (int i = 0; i < 16; ++i) {
        path.move(from, to, next * message_bytes, message_bytes);
        next = (next + 1) % messages;
      }
      bytes += 16 * message_bytes;
      const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      if (elapsed >= for_seconds) return static_cast<double>(bytes) / elapsed;
    }
  };
  run(seconds / 10);
  std::printf("%.3f\n", run(seconds) / 1e9);
  // The sum is looked at so that no compiler leaves it out.
  return path.checksums() == 1 && icrc ? 3 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "memory_floor: %s\n", error.what());
  return 1;
}
