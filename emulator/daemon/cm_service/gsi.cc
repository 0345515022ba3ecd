#include "emulator/daemon/cm_service/gsi.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "emulator/device/attributes/path.h"
#include "emulator/wire/build.h"

namespace rocemu::daemon {
namespace {

constexpr size_t kMaxInbox = 8192;
constexpr uint8_t kHopLimit = 64;

}  // namespace

// Takes the MADs that come for one device's QP1, on the engine thread.
class Gsi::MadReceiver final : public transport::ManagementSink {
 public:
  MadReceiver(Gsi& gsi, uint32_t device) : gsi_(gsi), device_(device) {}

  void on_mad(const wire::Packet& packet) noexcept override {
    if (packet.ext.deth.source_qp != wire::kGsiQpn) return;
    Arrived arrived{{device_, packet.ip.destination, packet.ip.source}, {}};
    std::copy(packet.payload.begin(), packet.payload.end(), arrived.mad.begin());
    gsi_.arrived(arrived);
  }

 private:
  Gsi& gsi_;
  uint32_t device_;
};

Gsi::Gsi(boost::asio::io_context& io, Engine& engine, const std::vector<device::HcaConfig>& devices,
         device::AddressResolver& resolver, std::vector<PathFinder*> path_finders, Receive receive)
    : io_(io),
      engine_(engine),
      devices_(devices),
      resolver_(resolver),
      path_finders_(std::move(path_finders)),
      receive_(std::move(receive)),
      psns_(devices.size()) {
  inbox_.reserve(kMaxInbox);
  being_read_.reserve(kMaxInbox);
  for (uint32_t i = 0; i < devices.size(); ++i) {
    receivers_.push_back(std::make_unique<MadReceiver>(*this, i));
    engine.hca(i).endpoint().set_management(receivers_.back().get());
  }
}

Gsi::~Gsi() = default;

void Gsi::arrived(const Arrived& mad) {
  bool first;
  {
    const std::lock_guard lock(mutex_);
    if (inbox_.size() == kMaxInbox) return;
    first = inbox_.empty();
    inbox_.push_back(mad);
  }
  if (first) boost::asio::post(io_, [this] { hand_over(); });
}

void Gsi::hand_over() {
  {
    const std::lock_guard lock(mutex_);
    inbox_.swap(being_read_);
  }
  for (const Arrived& mad : being_read_) {
    if (watch_) watch_(mad.route, mad.mad, false);
    receive_(mad.route, mad.mad);
  }
  being_read_.clear();
}

std::vector<std::byte> Gsi::build(const cm::OutgoingMad& mad, const MacAddress& destination) {
  if (watch_) watch_(mad.route, mad.mad, true);
  const uint32_t device = mad.route.device;
  const device::PortConfig& port = devices_[device].port;
  wire::Ethernet ethernet;
  ethernet.source = port.mac;
  ethernet.destination = destination;
  wire::Ip ip;
  ip.source = mad.route.local;
  ip.destination = mad.route.remote;
  ip.hop_limit = kHopLimit;
  wire::Udp udp;
  udp.source_port = port.udp_source_port != 0
                        ? port.udp_source_port
                        : device::udp_source_port(0, wire::kGsiQpn, wire::kGsiQpn);
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(wire::Transport::ud, wire::Operation::send_only);
  bth.destination_qp = wire::kGsiQpn;
  bth.psn = psns_[device];
  ++psns_[device];
  wire::ExtendedHeaders ext;
  ext.deth = {.qkey = wire::kGsiQkey, .source_qp = wire::kGsiQpn};
  return wire::build_frame(ethernet, ip, udp, bth, ext, mad.mad);
}

void Gsi::send(std::vector<cm::OutgoingMad>& mads) {
  std::vector<Frame> frames;
  frames.reserve(mads.size());
  for (const cm::OutgoingMad& mad : mads) {
    MacAddress destination;
    if (path_finders_[mad.route.device] != nullptr) {
      find_and_send(*path_finders_[mad.route.device], mad);
    } else if (resolver_.resolve(mad.route.remote, destination)) {
      frames.push_back({mad.route.device, build(mad, destination)});
    }
  }
  mads.clear();
  send_frames(std::move(frames));
}

// A MAD that cannot be sent is lost. The connection manager sends it again when nobody answers.
void Gsi::find_and_send(PathFinder& finder, const cm::OutgoingMad& mad) {
  switch (pending_->add(mad)) {
    case PendingMads::Next::search:
      return search(finder, mad.route);
    case PendingMads::Next::no_more_searches:
      return send_if_known(finder, mad);
    case PendingMads::Next::wait:
    case PendingMads::Next::no_room:
      return;
  }
}

void Gsi::search(PathFinder& finder, const cm::Route& route) {
  finder.find(route.remote, [this, route, pending = std::weak_ptr(pending_)](
                                int error, const MacAddress& destination) {
    const auto alive = pending.lock();
    if (alive == nullptr) return;
    const std::vector<cm::OutgoingMad> mads = alive->take(route.device, route.remote);
    if (error == 0) send_to(destination, mads);
  });
}

// Searches for peers that are not there must not keep those from being answered that are.
void Gsi::send_if_known(PathFinder& finder, const cm::OutgoingMad& mad) {
  finder.look_once(mad.route.remote, [this, mad, pending = std::weak_ptr(pending_)](
                                         int error, const MacAddress& destination) {
    if (error == 0 && !pending.expired()) send_to(destination, {&mad, 1});
  });
}

void Gsi::send_to(const MacAddress& destination, std::span<const cm::OutgoingMad> mads) {
  std::vector<Frame> frames;
  frames.reserve(mads.size());
  for (const cm::OutgoingMad& mad : mads)
    frames.push_back({mad.route.device, build(mad, destination)});
  send_frames(std::move(frames));
}

void Gsi::send_frames(std::vector<Frame> frames) {
  if (frames.empty()) return;
  engine_.post(Task([&engine = engine_, frames = std::move(frames)]() mutable {
    for (Frame& frame : frames) engine.send_frame(frame.device, std::move(frame.bytes));
  }));
}

}  // namespace rocemu::daemon
