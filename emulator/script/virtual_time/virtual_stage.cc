#include "emulator/script/virtual_time/virtual_stage.h"

#include <algorithm>

#include "emulator/script/language/vocabulary.h"

namespace rocemu::script {

namespace {

constexpr TimeNs kWaitNs = 1'000'000;
constexpr TimeNs kQuietNs = 10'000;
constexpr TimeNs kFrameNs = 1'000;

}  // namespace

// The script's end of the link.
class VirtualStage::Wire final : public sim::Node {
 public:
  Wire(sim::Fabric& fabric, uint32_t index, const sim::NodeOptions&, uint64_t)
      : Node(index), fabric_(fabric) {}

  void receive(network::SharedFrame frame) override {
    const std::span<const std::byte> bytes = frame.bytes();
    frames.push_back({fabric_.now_ns(), {bytes.begin(), bytes.end()}});
  }
  void poll(TimeNs) override {}

  std::deque<SeenFrame> frames;

 private:
  sim::Fabric& fabric_;
};

VirtualStage::VirtualStage()
    : nic_(fabric_.add_node<sim::HcaNode>(sim::NodeOptions{})),
      wire_(fabric_.add_node<Wire>(sim::NodeOptions{})) {
  ends_.ethernet = {nic_.mac(), wire_.mac(), {}};
  ends_.ip.destination = ends_.ip.source = nic_.gid();
  // The last bytes of an address are those of the MAC (polling_node.h).
  const MacAddress mac = wire_.mac();
  std::copy(mac.begin() + 3, mac.end(), ends_.ip.source.bytes.begin() + 13);
  program_ = std::make_unique<HcaProgram>(nic_, ends_.ip.source);
}

VirtualStage::~VirtualStage() = default;

Patience VirtualStage::patience() const {
  return {.wait_ns = kWaitNs, .late_ns = 0, .quiet_ns = kQuietNs, .settle_ns = kQuietNs};
}

void VirtualStage::advance(TimeNs until_ns) {
  // An event of its own, so that time goes on to there when nothing else happens.
  if (awaited_ns_ != until_ns) fabric_.at(until_ns, [] {});
  awaited_ns_ = until_ns;
  fabric_.run(until_ns, 1);
}

Fields VirtualStage::call(const Call& call) {
  Fields result = program_->call(call);
  // A call that only looks at something gives the NIC nothing to do.
  if (!shows_state(call.verb) && !takes_off(call.verb)) nic_.wake();
  return result;
}

void VirtualStage::send(std::span<const std::byte> frame) {
  fabric_.carry(wire_, network::SharedFrame(frame));
  const TimeNs until_ns = fabric_.now_ns() + kFrameNs;
  while (fabric_.now_ns() < until_ns) advance(until_ns);
}

std::optional<SeenFrame> VirtualStage::take_frame() {
  if (wire_.frames.empty()) return std::nullopt;
  SeenFrame frame = std::move(wire_.frames.front());
  wire_.frames.pop_front();
  return frame;
}

}  // namespace rocemu::script
