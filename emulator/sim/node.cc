#include "emulator/sim/node.h"

#include <algorithm>
#include <span>

#include "emulator/sim/fabric.h"
#include "emulator/wire/build.h"

namespace rocemu::sim {

namespace {

constexpr uint64_t kBaseAddress = 0x10'0000'0000;

wire::Gid gid_of(uint32_t index, bool ipv6) {
  wire::Gid gid;
  const auto number = static_cast<uint8_t>(index + 1);
  if (ipv6) {
    gid.bytes = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number};
  } else {
    gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, number};
  }
  return gid;
}

wire::MacAddress mac_of(uint32_t index) { return {2, 0, 0, 0, 0, static_cast<uint8_t>(index + 1)}; }

}  // namespace

Node::Node(Fabric& fabric, uint32_t index, const NodeOptions& options, uint64_t seed)
    : fabric_(fabric),
      index_(index),
      options_(options),
      gid_(gid_of(index, options.ipv6)),
      memory_(kBaseAddress * (index + 1)),
      endpoint_(memory_, *this, options.limits, options.max_qps),
      random_(seed) {}

transport::Path Node::path_to(const Node& peer) const {
  transport::Path path;
  path.headers =
      wire::HeaderTemplate({mac_of(peer.index_), mac_of(index_), {}},
                           {.source = gid_, .destination = peer.gid_}, {.source_port = 0xc000});
  path.local_gid = gid_;
  path.remote_gid = peer.gid_;
  return path;
}

void Node::ring(wire::Qpn qpn) {
  endpoint_.on_doorbell(qpn);
  wake();
}

void Node::wake() { poll_by(fabric_.now_ns()); }

void Node::receive(std::vector<std::byte> frame) {
  received_.push_back(std::move(frame));
  poll_by(fabric_.now_ns());
}

// Turns of the loop are at least poll_interval_ns apart.
void Node::poll_by(uint64_t at_ns) {
  const uint64_t earliest_ns =
      polled_at_ns_ == 0 ? 0 : polled_at_ns_ + std::max<uint64_t>(options_.poll_interval_ns, 1);
  at_ns = std::max({at_ns, earliest_ns, fabric_.now_ns()});
  if (at_ns >= poll_at_ns_) return;
  poll_at_ns_ = at_ns;
  fabric_.schedule_poll(*this, at_ns);
}

void Node::poll(uint64_t now_ns) {
  poll_at_ns_ = kNever;
  polled_at_ns_ = now_ns;
  const size_t count = std::min<size_t>(received_.size(), options_.rx_burst);
  if (count > 0) {
    std::vector<std::vector<std::byte>> burst(
        std::make_move_iterator(received_.begin()),
        std::make_move_iterator(received_.begin() + static_cast<ptrdiff_t>(count)));
    received_.erase(received_.begin(), received_.begin() + static_cast<ptrdiff_t>(count));
    std::vector<std::span<const std::byte>> frames(burst.begin(), burst.end());
    endpoint_.on_frames(now_ns, frames);
  }
  if (endpoint_.next_deadline() <= now_ns) endpoint_.on_timeout(now_ns);
  endpoint_.transmit(now_ns, *this, options_.tx_burst);
  if (after_poll) after_poll();

  if (!received_.empty() || endpoint_.wants_transmit()) {
    poll_by(now_ns);
  } else if (endpoint_.next_deadline() != kNever) {
    poll_by(endpoint_.next_deadline());
  }
}

void Node::on_qp_event(wire::Qpn qpn, transport::QpEvent event) noexcept {
  events.push_back({qpn, false, event});
}

void Node::on_qp_error(wire::Qpn qpn) noexcept { events.push_back({qpn, true, {}}); }

bool Node::allocate(transport::FrameBuffer& buffer) noexcept {
  if (random_.chance(options_.no_buffer_ppm)) return false;
  if (free_buffers_.empty())
    free_buffers_.push_back(std::make_unique<std::byte[]>(transport::kMaxFrameBytes));
  buffer.data = free_buffers_.back().release();
  buffer.handle = buffer.data;
  free_buffers_.pop_back();
  return true;
}

void Node::send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept {
  fabric_.carry(*this, {buffer.data, length_bytes});
  discard(buffer);
}

void Node::discard(const transport::FrameBuffer& buffer) noexcept {
  free_buffers_.emplace_back(static_cast<std::byte*>(buffer.handle));
}

}  // namespace rocemu::sim
