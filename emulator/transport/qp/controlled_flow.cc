#include "emulator/transport/qp/controlled_flow.h"

namespace rocemu::transport {

namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

}  // namespace

std::unique_ptr<ControlledFlow> ControlledFlow::make(const TransportLimits& limits,
                                                     const QpAttributes& attributes,
                                                     wire::Qpn qpn) {
  const congestion::Settings& settings = limits.congestion;
  if (settings.kind == nullptr) return nullptr;
  congestion::Needs needs = settings.kind->needs;
  if (!limits.port_carries_telemetry) needs.telemetry = needs.hop_count = false;
  const congestion::Flow flow{
      .line_rate_bps = settings.line_rate_bps != 0 ? settings.line_rate_bps : limits.line_rate_bps,
      .max_frame_bytes =
          static_cast<uint32_t>(attributes.path.headers.size_bytes() + wire::kBthBytes +
                                wire::kRethBytes + attributes.path_mtu_bytes + wire::kIcrcBytes) +
          TelemetryOffer::bytes_for(needs),
      .seed = qpn.value};
  std::unique_ptr<congestion::Algorithm> algorithm = settings.make(flow);
  if (algorithm == nullptr) return nullptr;
  return std::make_unique<ControlledFlow>(std::move(algorithm), needs, flow);
}

TimeNs ControlledFlow::time_of(uint32_t bytes) {
  const uint64_t rate_bps = algorithm_->rate_bps();
  if (rate_bps >= flow_.line_rate_bps) return 0;
  const uint64_t rate = std::max<uint64_t>(rate_bps, 1);
  const uint64_t bits_ns = uint64_t{bytes} * 8 * kNsPerSecond + std::min(unpaced_bits_ns_, rate);
  unpaced_bits_ns_ = bits_ns % rate;
  return std::max<TimeNs>(1, bits_ns / rate);
}

uint32_t ControlledFlow::packets_allowed(uint32_t limit) const {
  const uint64_t packets = algorithm_->window_bytes() / flow_.max_frame_bytes;
  return static_cast<uint32_t>(std::clamp<uint64_t>(packets, 1, limit));
}

uint32_t ControlledFlow::packets_to_acknowledge(uint32_t window) const {
  if (needs_.every_answer) return 1;
  const uint64_t packets = rate_bps() / 8 * kAckWithinNs / kNsPerSecond / flow_.max_frame_bytes;
  return static_cast<uint32_t>(std::clamp<uint64_t>(packets, 1, window));
}

void ControlledFlow::on_request_sent(TimeNs now, wire::Psn psn, uint32_t packets, bool again,
                                     uint32_t bytes) {
  const wire::Psn end = psn + packets;
  if (again) {
    if (!sent_again_ || end.after(sent_again_end_)) sent_again_end_ = end;
    sent_again_ = true;
    return;
  }
  in_flight_.push_back() = {packets == 1 ? now : kNever, end, bytes};
  in_flight_bytes_ += bytes;
}

void ControlledFlow::on_acknowledged(TimeNs now, wire::Psn una) {
  congestion::Acknowledgement heard{.now = now, .ecn_echo = ecn_echo_};
  while (!in_flight_.empty() && !in_flight_.front().end.after(una)) {
    const SentPacket& packet = in_flight_.front();
    ++heard.packets;
    heard.bytes += packet.bytes;
    const bool measures =
        packet.at != kNever && !(sent_again_ && !packet.end.after(sent_again_end_));
    heard.rtt_ns = measures ? std::optional(now - packet.at) : std::nullopt;
    in_flight_.pop_front();
  }
  if (sent_again_ && !una.before(sent_again_end_)) sent_again_ = false;
  if (heard.packets == 0) return;
  telemetry_.tell(heard);
  in_flight_bytes_ -= heard.bytes;
  heard.in_flight_bytes = in_flight_bytes_;
  algorithm_->on_acknowledged(heard);
}

}  // namespace rocemu::transport
