// GSO batches on their way through a port: what a hostile peer has the kernel hand out, in any
// order, with and without frames left in the pool; and batches that are made of frames to be sent,
// cut as the kernel cuts them and received again. Held against: a plain cutting of the same bytes,
// ICRCs that stay right, lengths that are, counters, and no frame lost.
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "dpdk_io/eal/eal.h"
#include "dpdk_io/kernel/gso_batch.h"
#include "dpdk_io/kernel/gso_receiver.h"
#include "dpdk_io/port/frame_pool.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/icrc.h"
#include "emulator/wire/icrc_identification.h"
#include "emulator/wire/packet.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/gso/datagrams.h"

namespace {

using namespace rocemu;
using namespace rocemu::fuzz;
using dpdk_io::DropReason;
using dpdk_io::FramePool;
using dpdk_io::GsoReceiver;
using dpdk_io::PortStats;

constexpr unsigned kPoolFrames = 320;
constexpr unsigned kFrameBytes = 4210;
constexpr unsigned kMaxArrivingFrames = 128;
constexpr unsigned kMaxSteps = 24;
constexpr unsigned kMaxBurst = 24;
constexpr unsigned kPrefixBytes = 10;
constexpr size_t kEthernetBytes = 14;
constexpr dpdk_io::IdentificationSeal kSeal{wire::set_identification, wire::icrc_matches};

FramePool& pool() {
  static const dpdk_io::Eal eal{{.memory_mb = 64}};
  static FramePool frames("gso", kPoolFrames, kFrameBytes);
  return frames;
}

unsigned longest_frame_bytes() {
  return rte_pktmbuf_data_room_size(pool().mempool()) - RTE_PKTMBUF_HEADROOM;
}

std::span<const std::byte> bytes_of(const rte_mbuf* frame) {
  return {rte_pktmbuf_mtod(frame, const std::byte*), frame->data_len};
}

// What was written behind the end of a frame stands in its neighbour.
void check_neighbour(rte_mempool* mempool, void*, void* object, unsigned) {
  const auto* const frame = static_cast<rte_mbuf*>(object);
  expect(frame->pool == mempool && frame->buf_addr == frame + 1 && frame->next == nullptr &&
             rte_mbuf_refcnt_read(frame) == 1,
         "frames are where they were");
}

// The frames that a packet must become, cut by hand.
std::vector<Bytes> cut(std::span<const std::byte> packet, const Bytes& own_headers,
                       bool headers_come, unsigned segment_bytes) {
  if (packet.size() > dpdk_io::kMaxGsoBytes + dpdk_io::kMaxHeadersBytes) return {};
  const Bytes whole(packet.begin(), packet.end());
  const size_t headers_bytes = headers_come ? dpdk_io::headers_bytes_of(whole) : own_headers.size();
  if (headers_bytes == 0) return {};
  const Bytes headers =
      headers_come
          ? Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(headers_bytes))
          : own_headers;
  const std::span payload = std::span(whole).subspan(headers_come ? headers_bytes : 0);
  const size_t step = segment_bytes != 0 ? segment_bytes : payload.size();
  if (headers_bytes + step > longest_frame_bytes()) return {};
  std::vector<Bytes> frames;
  size_t from = 0;
  do {
    Bytes frame = headers;
    const std::span part = payload.subspan(from, std::min(step, payload.size() - from));
    frame.insert(frame.end(), part.begin(), part.end());
    frames.push_back(std::move(frame));
    from += step;
  } while (from < payload.size() && frames.size() <= kMaxArrivingFrames);
  return frames.size() > kMaxArrivingFrames ? std::vector<Bytes>{} : frames;
}

class World {
 public:
  explicit World(ByteSource& input)
      : input_(input),
        headers_come_(input.flag()),
        ipv4_(input.flag()),
        prefix_bytes_(headers_come_ ? kPrefixBytes : 0),
        receiver_(
            std::make_unique<GsoReceiver>(pool(), prefix_bytes_, headers_come_, headers_bytes())) {}
  ~World() {
    receiver_.reset();
    FramePool::free_bulk(held_);
    expect(pool().available() == kPoolFrames, "all frames are back");
    rte_mempool_obj_iter(pool().mempool(), check_neighbour, nullptr);
  }

  void step() {
    switch (input_.below(8)) {
      case 0:
        return hold();
      case 1:
        return send();
      default:
        return arrive();
    }
  }

 private:
  unsigned headers_bytes() const { return ipv4_ ? 42 : 62; }

  std::span<const std::byte> headers_in_front(const Bytes& headers) const {
    return headers_come_ ? std::span<const std::byte>{} : headers;
  }

  void hold() {
    FramePool::free_bulk(held_);
    held_.resize(input_.u16() % (kPoolFrames + 1));
    held_.resize(pool().allocate_bulk(held_));
  }

  // Several packets as one recvmmsg() gives them.
  void arrive() {
    const std::span<mmsghdr> messages = receiver_->prepare();
    if (messages.empty()) return;
    struct Arrived {
      Arriving what;
      unsigned bytes;
    };
    std::vector<Arrived> arrived;
    for (unsigned count = 1 + input_.below(4);
         arrived.size() < std::min<size_t>(count, messages.size());) {
      const bool ipv4 = headers_come_ ? input_.flag() : ipv4_;
      Arriving what = arbitrary(input_, prefix_bytes_, headers_come_, ipv4);
      const unsigned bytes = deliver(messages[arrived.size()], what.packet);
      arrived.push_back({std::move(what), bytes});
    }
    for (unsigned slot = 0; slot < arrived.size(); ++slot)
      take(slot, arrived[slot].what, arrived[slot].bytes);
  }

  void take(unsigned slot, const Arriving& what, unsigned bytes) {
    const PortStats before = stats_;
    const std::vector<rte_mbuf*> frames =
        frames_of({slot, bytes, what.segment_bytes, headers_in_front(what.headers)});
    const uint64_t lost =
        stats_.dropped(DropReason::queue_full) - before.dropped(DropReason::queue_full);
    const uint64_t malformed =
        stats_.dropped(DropReason::malformed) - before.dropped(DropReason::malformed);
    expect(stats_.rx_frames - before.rx_frames == frames.size(), "what comes out is counted");
    uint64_t total_bytes = 0;
    for (const rte_mbuf* frame : frames) total_bytes += frame->data_len;
    expect(stats_.rx_bytes - before.rx_bytes == total_bytes, "its bytes, too");

    const bool whole = bytes == what.packet.size() && bytes >= prefix_bytes_;
    const std::vector<Bytes> wanted = whole ? cut(std::span(what.packet).subspan(prefix_bytes_),
                                                  what.headers, headers_come_, what.segment_bytes)
                                            : std::vector<Bytes>{};
    expect(malformed == (wanted.empty() ? 1u : 0u), "what cannot be is counted once");
    expect(frames.size() + lost == wanted.size(), "a frame for each segment, or it is counted");
    for (size_t i = 0; i < frames.size(); ++i) {
      check_readable(bytes_of(frames[i]));
      if (lost == 0) check_frame(bytes_of(frames[i]), wanted[i], wanted.size() > 1);
    }
    if (what.sealed && lost == 0 && frames.size() > 1)
      for (const rte_mbuf* frame : frames)
        if (headers_come_ || !ipv4_ || what.counts_up) check_sealed(frame, what);
    FramePool::free_bulk({const_cast<rte_mbuf**>(frames.data()), frames.size()});
  }

  std::vector<rte_mbuf*> frames_of(const GsoReceiver::Arrival& arrival) {
    std::array<rte_mbuf*, kMaxBurst> burst;
    const std::span room = std::span(burst).first(1 + input_.below(kMaxBurst));
    unsigned count = receiver_->take(arrival, room, 0, kSeal, stats_);
    std::vector<rte_mbuf*> frames;
    for (; count != 0; count = receiver_->pop(room))
      frames.insert(frames.end(), room.begin(), room.begin() + count);
    expect(receiver_->empty(), "nothing waits any more");
    return frames;
  }

  // All but identification, lengths and checksums is what came.
  void check_frame(std::span<const std::byte> frame, const Bytes& wanted, bool in_batch) {
    expect(frame.size() == wanted.size(), "a frame has its segment's length");
    const unsigned headers = dpdk_io::headers_bytes_of(wanted);
    expect(headers != 0 && dpdk_io::headers_bytes_of(frame) == headers, "the headers are headers");
    expect(std::ranges::equal(frame.subspan(headers), std::span(wanted).subspan(headers)),
           "the payload is the segment");
    expect(std::ranges::equal(frame.first(kEthernetBytes), std::span(wanted).first(kEthernetBytes)),
           "the Ethernet header stays");
    if (headers_come_ && !in_batch)
      expect(std::ranges::equal(frame, wanted), "a single frame stays as it is");
    else
      check_lengths(frame, headers);
  }

  static void check_lengths(std::span<const std::byte> frame, unsigned headers_bytes) {
    const std::byte* const ip = &frame[kEthernetBytes];
    const size_t l3_bytes = frame.size() - kEthernetBytes;
    const bool ipv4 = dpdk_io::is_ipv4(frame.data());
    expect(load_be16(ip + (ipv4 ? 2 : 4)) == l3_bytes - (ipv4 ? 0 : kIpv6Bytes),
           "the IP header has the length");
    expect(load_be16(&frame[headers_bytes - 4]) == frame.size() - headers_bytes + kUdpBytes,
           "the UDP header has the length");
    if (ipv4) expect(internet_checksum(ipv4_header_sum(ip)) == 0, "and its checksum");
  }

  // As the engine does.
  static void check_readable(std::span<const std::byte> frame) {
    const auto copy = std::make_unique<std::byte[]>(frame.size());
    std::ranges::copy(frame, copy.get());
    wire::Packet packet;
    if (wire::parse_frame({copy.get(), frame.size()}, packet) == wire::ParseError::none)
      wire::icrc_matches(packet.l3);
  }

  void check_sealed(const rte_mbuf* frame, const Arriving& what) {
    if (!headers_came_whole(what)) return;
    expect(wire::icrc_matches(bytes_of(frame).subspan(kEthernetBytes)), "its ICRC stays right");
  }
  bool headers_came_whole(const Arriving& what) const {
    return !headers_come_ ||
           std::ranges::equal(std::span(what.packet).subspan(prefix_bytes_, what.headers.size()),
                              what.headers);
  }

  // Frames as an endpoint makes them, in batches, by way of the kernel, to a receiver.
  void send() {
    std::vector<rte_mbuf*> burst;
    const uint16_t common_bytes = static_cast<uint16_t>(kMinSealedBytes + input_.u16() % 4097);
    for (uint32_t i = 0, count = 1 + input_.below(80); i < count; ++i) {
      rte_mbuf* const frame = make_frame(common_bytes, i);
      if (frame == nullptr) break;
      burst.push_back(frame);
    }
    for (std::span<rte_mbuf*> rest = burst; !rest.empty();) {
      const unsigned count = dpdk_io::gso_batch_frames(rest);
      expect(count >= 1 && count <= rest.size(), "a batch is of frames that are there");
      if (count > 1) through_the_kernel(rest.first(count));
      rest = rest.subspan(count);
    }
    FramePool::free_bulk(burst);
  }

  rte_mbuf* make_frame(uint16_t common_bytes, uint32_t seed) {
    rte_mbuf* const frame = pool().allocate();
    if (frame == nullptr) return nullptr;
    const uint32_t kind = input_.below(16);
    const size_t payload_bytes =
        kind == 0 ? kMinSealedBytes + input_.u16() % (common_bytes - kMinSealedBytes + 1)
                  : common_bytes;
    const bool ipv4 = kind == 1 ? !ipv4_ : ipv4_;
    const uint16_t identification = input_.u8();
    Bytes headers = make_headers(ipv4, identification, payload_bytes);
    if (kind == 2) headers[headers.size() - 7] ^= std::byte{1};  // another source port
    const Bytes payload = sealed_payload(headers, identification, payload_bytes, seed);
    headers.insert(headers.end(), payload.begin(), payload.end());
    std::memcpy(rte_pktmbuf_append(frame, static_cast<uint16_t>(headers.size())), headers.data(),
                headers.size());
    return frame;
  }

  void through_the_kernel(std::span<rte_mbuf*> batch) {
    const auto first_bytes = bytes_of(batch[0]);
    const unsigned headers_bytes = dpdk_io::headers_bytes_of(first_bytes);
    const bool ipv4 = dpdk_io::is_ipv4(first_bytes.data());
    const uint16_t first =
        headers_come_ && ipv4 ? dpdk_io::identification_of(first_bytes.data()) : 0;
    dpdk_io::number_gso_batch(batch, first, kSeal);
    const size_t step = first_bytes.size() - headers_bytes;
    Bytes headers(first_bytes.begin(), first_bytes.begin() + headers_bytes);
    Bytes packet(prefix_bytes_);
    if (headers_come_) packet.insert(packet.end(), headers.begin(), headers.end());
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto frame = bytes_of(batch[i]);
      expect(wire::icrc_matches(frame.subspan(kEthernetBytes)), "a numbered frame has its ICRC");
      expect(frame.size() - headers_bytes == step ||
                 (i + 1 == batch.size() && frame.size() - headers_bytes < step),
             "all but the last frame of a batch have one length");
      packet.insert(packet.end(), frame.begin() + headers_bytes, frame.end());
    }
    const size_t payload_bytes =
        packet.size() - prefix_bytes_ - (headers_come_ ? headers_bytes : 0);
    expect(headers_bytes - kEthernetBytes + payload_bytes <= dpdk_io::kMaxGsoBytes,
           "a batch fits into an IP packet");
    expect(payload_bytes > (batch.size() - 1) * step, "no frame of it is empty");
    if (headers_come_) {
      dpdk_io::write_gso_lengths(&packet[prefix_bytes_], headers_bytes,
                                 static_cast<unsigned>(payload_bytes));
    } else if (ipv4 != ipv4_) {
      return;  // another socket's
    }
    const std::span<mmsghdr> messages = receiver_->prepare();
    if (messages.empty()) return;
    const unsigned bytes = deliver(messages[0], packet);
    expect(bytes == packet.size(), "a batch fits into a slot");
    const uint64_t lost_before = stats_.dropped(DropReason::queue_full);
    const std::vector<rte_mbuf*> frames =
        frames_of({0, bytes, static_cast<unsigned>(step), headers_in_front(headers)});
    if (stats_.dropped(DropReason::queue_full) == lost_before) {
      expect(frames.size() == batch.size(), "as many frames come as were sent");
      for (size_t i = 0; i < frames.size(); ++i)
        expect(std::ranges::equal(bytes_of(frames[i]), bytes_of(batch[i])), "each as it was sent");
    }
    FramePool::free_bulk({const_cast<rte_mbuf**>(frames.data()), frames.size()});
  }

  ByteSource& input_;
  const bool headers_come_;
  const bool ipv4_;
  const unsigned prefix_bytes_;
  std::unique_ptr<GsoReceiver> receiver_;
  std::vector<rte_mbuf*> held_;
  PortStats stats_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  ByteSource input(data, size_bytes);
  World world(input);
  for (unsigned step = 0; step < kMaxSteps && !input.empty(); ++step) world.step();
  return 0;
}
