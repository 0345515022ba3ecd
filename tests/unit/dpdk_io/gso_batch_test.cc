#include "dpdk_io/kernel/gso_batch.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "base/byte_order.h"
#include "base/net/headers.h"
#include "dpdk_io/kernel/gso_receiver.h"
#include "tests/unit/dpdk_io/shared_eal.h"

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kPoolFrames = 512;
constexpr unsigned kIpv4HeadersBytes = 42;
constexpr unsigned kPrefixBytes = 10;

// Stands for an ICRC: the last byte of a datagram is the lowest byte of the identification it was
// made for.
void set(std::span<std::byte> l3, uint16_t identification) {
  l3[4] = static_cast<std::byte>(identification >> 8);
  l3[5] = static_cast<std::byte>(identification);
  l3.back() = l3[5];
}
bool fits(std::span<const std::byte> l3) { return l3.back() == l3[5]; }
constexpr IdentificationSeal kSeal{set, fits};

std::vector<std::byte> headers(bool ipv4, uint8_t source_port = 7) {
  std::vector<std::byte> bytes(ipv4 ? kIpv4HeadersBytes : kMaxHeadersBytes);
  bytes[12] = std::byte{ipv4 ? uint8_t{0x08} : uint8_t{0x86}};
  bytes[13] = std::byte{ipv4 ? uint8_t{0x00} : uint8_t{0xdd}};
  bytes[14] = std::byte{ipv4 ? uint8_t{0x45} : uint8_t{0x60}};
  bytes[ipv4 ? 23 : 20] = std::byte{17};
  bytes[bytes.size() - 7] = std::byte{source_port};
  return bytes;
}

std::vector<std::byte> payload(size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed);
  return bytes;
}

struct Frames {
  Frames() { need_eal(); }
  ~Frames() { CHECK(pool.available() == kPoolFrames); }

  rte_mbuf* frame(const std::vector<std::byte>& start, size_t payload_bytes, unsigned seed = 0) {
    rte_mbuf* const made = pool.allocate();
    std::vector<std::byte> bytes = start;
    const auto rest = payload(payload_bytes, seed);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    std::memcpy(rte_pktmbuf_append(made, static_cast<uint16_t>(bytes.size())), bytes.data(),
                bytes.size());
    write_lengths(rte_pktmbuf_mtod(made, std::byte*), static_cast<unsigned>(start.size()),
                  static_cast<unsigned>(payload_bytes));
    return made;
  }

  unsigned batch(std::vector<rte_mbuf*> burst) {
    const unsigned count = gso_batch_frames(burst);
    FramePool::free_bulk(burst);
    return count;
  }

  struct Started {
    Started() { need_eal(); }
  } started;
  FramePool pool{"gso", kPoolFrames, 4300};
};

// Does what the kernel does with what has come for a socket.
unsigned put(const mmsghdr& message, std::span<const std::byte> bytes) {
  size_t done = 0;
  for (size_t i = 0; i < message.msg_hdr.msg_iovlen; ++i) {
    const iovec& part = message.msg_hdr.msg_iov[i];
    const size_t here = std::min(part.iov_len, bytes.size() - done);
    if (here != 0) std::memcpy(part.iov_base, bytes.data() + done, here);
    done += here;
  }
  REQUIRE(done == bytes.size());
  return static_cast<unsigned>(done);
}

struct Receiving : Frames {
  // A packet from a packet socket: what it gives.
  std::vector<rte_mbuf*> packet(bool ipv4, size_t payload_bytes, unsigned segment_bytes,
                                bool counts_up = true) {
    const std::span<mmsghdr> slots = receiver.prepare();
    REQUIRE_FALSE(slots.empty());
    std::vector<std::byte> bytes(kPrefixBytes);
    const auto start = headers(ipv4);
    bytes.insert(bytes.end(), start.begin(), start.end());
    const auto rest = payload(payload_bytes, 3);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    if (segment_bytes != 0) {
      for (size_t i = 1; i * segment_bytes <= payload_bytes; ++i)
        bytes[kPrefixBytes + start.size() + i * segment_bytes - 1] =
            static_cast<std::byte>(counts_up ? i - 1 : 0);
      bytes.back() = static_cast<std::byte>(counts_up ? (payload_bytes - 1) / segment_bytes : 0);
    }
    std::array<rte_mbuf*, 4> burst;
    const unsigned count =
        receiver.take({0, put(slots[0], bytes), segment_bytes, {}}, burst, 0, kSeal, stats);
    std::vector<rte_mbuf*> frames(burst.begin(), burst.begin() + count);
    while (const unsigned more = receiver.pop(burst))
      frames.insert(frames.end(), burst.begin(), burst.begin() + more);
    CHECK(receiver.empty());
    sent = {bytes.begin() + static_cast<std::ptrdiff_t>(kPrefixBytes + start.size()), bytes.end()};
    return frames;
  }

  // The frames are those of `sent`, `segment_bytes` in each; frees them.
  void expect(std::span<rte_mbuf* const> frames, bool ipv4, unsigned segment_bytes,
              bool counts_up = true) {
    REQUIRE(frames.size() == (sent.size() + segment_bytes - 1) / segment_bytes);
    const size_t header = headers(ipv4).size();
    for (size_t i = 0; i < frames.size(); ++i) {
      const auto* const start = rte_pktmbuf_mtod(frames[i], const std::byte*);
      const size_t length = std::min<size_t>(segment_bytes, sent.size() - i * segment_bytes);
      CHECK(frames[i]->data_len == header + length);
      CHECK(headers_bytes_of({start, frames[i]->data_len}) == header);
      CHECK(std::memcmp(start + header, &sent[i * segment_bytes], length) == 0);
      if (ipv4 && frames.size() > 1) CHECK(identification_of(start) == (counts_up ? i : 0));
    }
    FramePool::free_bulk({const_cast<rte_mbuf**>(frames.data()), frames.size()});
  }

  std::vector<std::byte> sent;
  PortStats stats;
  GsoReceiver receiver{pool, kPrefixBytes, true, kIpv4HeadersBytes};
};

}  // namespace

TEST_CASE_METHOD(Frames, "frames of a flow and of one length make a batch, the last may be short") {
  const auto flow = headers(true);
  CHECK(batch({frame(flow, 100), frame(flow, 100), frame(flow, 100)}) == 3);
  CHECK(batch({frame(flow, 100), frame(flow, 100), frame(flow, 60), frame(flow, 60)}) == 3);
  CHECK(batch({frame(flow, 100), frame(flow, 104)}) == 1);
  CHECK(batch({frame(headers(false), 100), frame(headers(false), 100)}) == 2);
}

TEST_CASE_METHOD(Frames, "frames of another flow, or in other hands, are in no batch") {
  const auto flow = headers(true);
  CHECK(batch({frame(flow, 100), frame(headers(true, 8), 100)}) == 1);
  CHECK(batch({frame(flow, 100), frame(headers(false), 80)}) == 1);
  auto marked = flow;
  marked[15] = std::byte{4};  // TOS
  CHECK(batch({frame(flow, 100), frame(marked, 100)}) == 1);
  auto fragment = flow;
  fragment[20] = std::byte{0x20};
  CHECK(batch({frame(fragment, 100), frame(fragment, 100)}) == 1);
  rte_mbuf* const shared = frame(flow, 100);
  rte_mbuf_refcnt_update(shared, 1);
  CHECK(batch({frame(flow, 100), shared}) == 1);
  FramePool::free(shared);
}

TEST_CASE_METHOD(Frames, "frames with more in them than their datagram are in no batch") {
  for (const bool ipv4 : {true, false}) {
    const auto start = headers(ipv4);
    const auto with_surplus = [&] {
      rte_mbuf* const made = frame(start, 100);
      std::byte* const udp = rte_pktmbuf_mtod(made, std::byte*) + start.size() - kUdpBytes;
      store_be16(udp + 4, 100 + kUdpBytes - 12);
      return made;
    };
    CHECK(batch({with_surplus(), with_surplus()}) == 1);
    CHECK(batch({frame(start, 100), frame(start, 100), with_surplus()}) == 2);
  }
}

TEST_CASE_METHOD(Frames, "a batch has a length that fits into an IP header, and 64 frames") {
  const auto flow = headers(true);
  std::vector<rte_mbuf*> large, small;
  for (unsigned i = 0; i < 20; ++i) large.push_back(frame(flow, 4112));
  for (unsigned i = 0; i < 80; ++i) small.push_back(frame(flow, 24));
  CHECK(batch(large) == 15);
  CHECK(batch(small) == 64);
}

TEST_CASE_METHOD(Frames, "identifications of a batch count up, whatever they were") {
  std::vector<rte_mbuf*> frames = {frame(headers(true), 100), frame(headers(true), 100),
                                   frame(headers(true), 50)};
  for (const uint16_t first : {0, 7, 0}) {
    number_gso_batch(frames, first, kSeal);
    for (unsigned i = 0; i < frames.size(); ++i) {
      const auto* const start = rte_pktmbuf_mtod(frames[i], const std::byte*);
      CHECK(identification_of(start) == first + i);
      if (i != 0) CHECK(fits({start + 14, frames[i]->data_len - size_t{14}}));
    }
  }
  FramePool::free_bulk(frames);
}

TEST_CASE_METHOD(Receiving, "what arrives becomes frames, of any layout and after any other") {
  for (const bool ipv4 : {true, false, false, true}) {
    for (const unsigned segment : {4112u, 1040u, 272u, 4112u, 4112u}) {
      INFO("IPv" << (ipv4 ? 4 : 6) << ", " << segment);
      expect(packet(ipv4, 4128, 0), ipv4, 4128);
      expect(packet(ipv4, 20, 0), ipv4, 20);
      expect(packet(ipv4, 14 * segment + 100, segment), ipv4, segment);
      expect(packet(ipv4, 3 * segment, segment), ipv4, segment);
      expect(packet(ipv4, 60 * 272, 272), ipv4, 272);
    }
  }
  CHECK(stats.rx_frames > 0);
  CHECK(stats.dropped(DropReason::malformed) == 0);
}

TEST_CASE_METHOD(Receiving, "a batch of frames that all had one identification stays that way") {
  expect(packet(true, 3 * 1000, 1000, false), true, 1000, false);
}

TEST_CASE_METHOD(Receiving, "what cannot be is dropped, and counted") {
  CHECK(packet(true, 5000, 0).empty());      // longer than a frame
  CHECK(packet(true, 20000, 5000).empty());  // and so are its parts
  CHECK(packet(true, 4000, 1).empty());      // of too many frames
  CHECK(stats.dropped(DropReason::malformed) == 3);
  const std::span<mmsghdr> slots = receiver.prepare();
  const std::vector<std::byte> noise(kPrefixBytes + 20);
  std::array<rte_mbuf*, 4> burst;
  CHECK(receiver.take({0, put(slots[0], noise), 0, {}}, burst, 0, kSeal, stats) == 0);
  CHECK(receiver.take({1, 3, 0, {}}, burst, 0, kSeal, stats) == 0);
  CHECK(stats.dropped(DropReason::malformed) == 5);
}

TEST_CASE_METHOD(Receiving, "without frames in the pool nothing is received") {
  std::vector<rte_mbuf*> all(kPoolFrames);
  all.resize(pool.allocate_bulk(all));
  CHECK(receiver.prepare().empty());
  FramePool::free_bulk(all);
  CHECK_FALSE(receiver.prepare().empty());
}

}  // namespace rocemu::dpdk_io
