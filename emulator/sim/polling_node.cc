#include "emulator/sim/polling_node.h"

#include <algorithm>
#include <iterator>

#include "emulator/sim/fabric.h"
#include "emulator/wire/build.h"

namespace rocemu::sim {

namespace {

// fe80::N, or 10.N as an IPv4-mapped address, N being the last three bytes of the MAC.
wire::Gid gid_of(const Node& node, bool ipv6) {
  wire::Gid gid;
  if (ipv6) {
    gid.bytes = {0xfe, 0x80};
  } else {
    gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10};
  }
  const MacAddress mac = node.mac();
  std::copy(mac.begin() + 3, mac.end(), gid.bytes.begin() + 13);
  return gid;
}

}  // namespace

PollingNode::PollingNode(Fabric& fabric, uint32_t index, const NodeOptions& options, uint64_t seed)
    : Node(index),
      fabric_(fabric),
      options_(options),
      gid_(gid_of(*this, options.ipv6)),
      random_(seed) {}

transport::Path PollingNode::path_to(const PollingNode& peer) const {
  transport::Path path;
  path.headers = wire::HeaderTemplate(
      {peer.mac(), mac(), {}}, {.source = gid_, .destination = peer.gid_}, {.source_port = 0xc000});
  path.local_gid = gid_;
  path.remote_gid = peer.gid_;
  return path;
}

void PollingNode::wake() { poll_by(fabric_.now_ns()); }

void PollingNode::receive(network::SharedFrame frame) {
  if (arrival_due) [[unlikely]]
    return hold(std::move(frame));
  received_.push_back(std::move(frame));
  poll_by(fabric_.now_ns());
}

void PollingNode::take_lent() {
  for (network::SharedFrame& frame : received_) frame.take_lent();
}

void PollingNode::hold(network::SharedFrame frame) {
  const TimeNs due = arrival_due(fabric_.now_ns(), frame.bytes());
  held_.push(due, std::move(frame));
  see_held();
  if (due > fabric_.now_ns()) fabric_.at(due, [this] { see_held(); });
}

void PollingNode::see_held() {
  while (held_.next() <= fabric_.now_ns()) received_.push_back(held_.pop().item);
  if (!received_.empty()) poll_by(fabric_.now_ns());
}

// Turns of the loop are at least poll_interval_ns apart.
void PollingNode::poll_by(TimeNs at) {
  const TimeNs earliest =
      polled_at_ == 0 ? 0 : polled_at_ + std::max<uint64_t>(options_.poll_interval_ns, 1);
  at = std::max({at, earliest, fabric_.now_ns()});
  if (at >= poll_at_) return;
  poll_at_ = at;
  fabric_.schedule_poll(*this, at);
}

void PollingNode::poll(TimeNs now) {
  // A turn that was moved forward leaves its old event behind.
  if (poll_at_ != now) return;
  poll_at_ = kNever;
  polled_at_ = now;
  const auto end = received_.begin() +
                   static_cast<ptrdiff_t>(std::min<size_t>(received_.size(), options_.rx_burst));
  const std::vector<network::SharedFrame> burst(std::make_move_iterator(received_.begin()),
                                                std::make_move_iterator(end));
  received_.erase(received_.begin(), end);
  std::vector<std::span<const std::byte>> frames;
  std::vector<transport::ReceivedRun> runs;
  std::vector<std::unique_ptr<std::byte[]>> rooms;  // of payloads that are lent
  for (const network::SharedFrame& frame : burst) {
    frames.push_back(frame.bytes());
    std::byte* room = nullptr;
    if (frame.lent() != nullptr)
      room = rooms.emplace_back(std::make_unique<std::byte[]>(frame.bytes().size())).get();
    runs.push_back(
        {frame.segment_bytes(),
         frame.lent(),
         room,
         {frame.landing().at, frame.landing().epoch, wire::Qpn{frame.landing().requester}}});
  }
  in_turn_ = true;
  turn(now, frames, runs);
  in_turn_ = false;
  if (after_poll) after_poll();

  const TimeNs next = received_.empty() ? next_turn(now) : now;
  if (next != kNever) poll_by(next);
}

bool PollingNode::allocate(transport::FrameBuffer& buffer) noexcept {
  if (random_.chance(options_.no_buffer_ppm)) return false;
  if (free_buffers_.empty())
    free_buffers_.push_back(std::make_unique<std::byte[]>(
        options_.runs ? transport::kMaxRunFrameBytes : transport::kMaxFrameBytes));
  buffer.data = free_buffers_.back().release();
  buffer.handle = buffer.data;
  free_buffers_.pop_back();
  return true;
}

void PollingNode::send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept {
  fabric_.carry(*this,
                network::SharedFrame(
                    {buffer.data, length_bytes}, buffer.run.segment_bytes,
                    {buffer.lent.bytes, buffer.lent.length_bytes, buffer.lent.offset_bytes},
                    {buffer.landing.at, buffer.landing.epoch, buffer.landing.requester.value}));
  discard(buffer);
}

uint64_t PollingNode::landing_epoch() const noexcept { return fabric_.landing_epoch(); }

void PollingNode::discard(const transport::FrameBuffer& buffer) noexcept {
  free_buffers_.emplace_back(static_cast<std::byte*>(buffer.handle));
}

}  // namespace rocemu::sim
