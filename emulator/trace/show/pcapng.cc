#include "emulator/trace/show/pcapng.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "base/net/text.h"
#include "emulator/trace/show/pcapng_blocks.h"
#include "emulator/trace/show/remarks.h"
#include "emulator/trace/show/vocabulary.h"
#include "emulator/wire/build.h"
#include "emulator/wire/opcode.h"

namespace rocemu::trace {

namespace {

class Pcapng {
 public:
  Pcapng(const Story& story, const Selection& selection, std::ostream& out)
      : story_(story), selection_(selection), out_(out) {}

  void write();

 private:
  struct Frame {
    uint64_t ns;
    At packet;
    bool is_arrival;
  };

  const Names& names() const { return story_.trace->names; }
  void write_section();
  uint32_t interface_of(uint16_t device);
  wire::Gid gid_of(uint16_t device) const;
  void write_frame(const Frame& frame);
  std::vector<std::byte> rebuild(const Packet& packet) const;
  std::string comment_on(const Packet& packet, bool is_arrival);
  bool is_shown(const Packet& packet) const;

  const Story& story_;
  const Selection& selection_;
  std::ostream& out_;
  std::map<uint16_t, uint32_t> interfaces_;
  std::vector<bool> introduced_;  // QPs whose programs a comment has named
};

void Pcapng::write_section() {
  out_ << pcapng::section(
      "Made again from a trace of rocemu: headers as they were, but for what a trace does not "
      "hold; "
      "payload is zeroes",
      story_.trace->header.creator);
}

// Described before its first frame.
uint32_t Pcapng::interface_of(uint16_t device) {
  const auto [place, is_new] =
      interfaces_.try_emplace(device, static_cast<uint32_t>(interfaces_.size()));
  if (is_new)
    out_ << pcapng::interface(device == kNoDevice ? "elsewhere"
                                                  : names().text(Table::device, device));
  return place->second;
}

// Where the trace names no address, this is one of those for documentation (RFC 5737).
wire::Gid Pcapng::gid_of(uint16_t device) const {
  for (const std::string& text : names().addresses(device))
    if (const auto address = parse_ip_address(text)) return wire::Gid{*address};
  const uint8_t bytes[4] = {192, 0, 2,
                            static_cast<uint8_t>(device == kNoDevice ? 254 : device + 1)};
  return wire::Gid{IpAddress::of_ipv4(bytes)};
}

MacAddress mac_of(uint16_t device) {
  return {0x02, 0x52, 0x4f, 0x43, static_cast<uint8_t>(device >> 8), static_cast<uint8_t>(device)};
}

bool Pcapng::is_shown(const Packet& packet) const {
  if (packet.connection == kNowhere) return false;
  if (!wire::traits_of(story_.record(packet.header()).opcode).known) return false;
  const Connection& connection = story_.connections[packet.connection];
  return selection_.takes(story_.qps[connection.ends[0]]) ||
         selection_.takes(story_.qps[connection.ends[1]]);
}

// Makes it as long as it was: Wireshark calls a packet malformed whose payload is cut off.
std::vector<std::byte> Pcapng::rebuild(const Packet& packet) const {
  const Record& record = story_.record(packet.header());
  const Connection& connection = story_.connections[packet.connection];
  const Qp& from = story_.qps[connection.ends[packet.from_first ? 0 : 1]];
  const Qp& to = story_.qps[connection.ends[packet.from_first ? 1 : 0]];
  const wire::OpcodeTraits& traits = wire::traits_of(record.opcode);
  const wire::Ethernet ethernet{
      .destination = mac_of(to.device), .source = mac_of(from.device), .vlan_tci = {}};
  wire::Ip ip{.source = gid_of(from.device), .destination = gid_of(to.device)};
  if (ip.source.is_ipv4() != ip.destination.is_ipv4()) ip.source = ip.destination;
  if ((record.flags & flag::kCongestion) != 0) ip.traffic_class = 3;
  wire::Udp udp;
  udp.source_port = static_cast<uint16_t>(0xc000 | (from.qpn & 0x3fff));
  const size_t payload_bytes =
      traits.payload ? std::min<size_t>(record.length_bytes, wire::kMaxMtuBytes) : 0;
  wire::Bth bth;
  bth.opcode = record.opcode;
  bth.solicited = (record.flags & flag::kSolicited) != 0;
  bth.ack_request = (record.flags & flag::kAckRequest) != 0;
  bth.destination_qp = wire::Qpn{to.qpn};
  bth.psn = wire::Psn(record.psn);
  bth.pad_bytes = static_cast<uint8_t>(-payload_bytes & 3);
  wire::ExtendedHeaders ext;
  if ((record.flags & flag::kHasAeth) != 0) ext.aeth = {record.code, record.count};
  const bool reads = traits.kind == wire::MessageKind::read;
  if ((record.flags & flag::kHasReth) != 0)
    ext.reth = {record.value, wire::RKey{record.detail},
                reads || traits.feth ? record.count : record.length_bytes};
  if (traits.feth)
    ext.feth = {.placement = static_cast<uint8_t>(record.code & 0xf),
                .selectivity = static_cast<uint8_t>(record.code >> 4)};
  if (traits.atomic_eth) {
    ext.atomic.virtual_address = record.value;
    ext.atomic.rkey = wire::RKey{record.detail};
  }
  ext.deth.source_qp = wire::Qpn{from.qpn};
  const std::vector<std::byte> payload(payload_bytes);
  return wire::build_frame(ethernet, ip, udp, bth, ext, payload);
}

std::string Pcapng::comment_on(const Packet& packet, bool is_arrival) {
  std::string comment;
  const auto say = [&](const std::string& text) {
    comment += (comment.empty() ? "" : "; ") + text;
  };
  for (const std::string& remark : remarks_on(story_, packet)) say(remark);
  const Connection& connection = story_.connections[packet.connection];
  const At end = connection.ends[packet.from_first != is_arrival ? 0 : 1];
  const Qp& qp = story_.qps[end];
  introduced_.resize(story_.qps.size());
  if (!introduced_[end] && qp.program != kNoProgram)
    say("QP " + hexadecimal(qp.qpn) + " is of " + program_text(names(), qp.program));
  introduced_[end] = true;
  return comment;
}

void Pcapng::write_frame(const Frame& frame) {
  const Packet& packet = story_.packets[frame.packet];
  const At at = frame.is_arrival ? packet.arrived : packet.header();
  const Header& header = story_.trace->header;
  const uint64_t since_ns = frame.ns - std::min(frame.ns, header.start_ns);
  const uint64_t unix_ns = header.start_unix_ns + since_ns;
  const std::vector<std::byte> bytes = rebuild(packet);
  const pcapng::PacketHead head{
      .interface = interface_of(story_.record(at).device),
      .unix_ns = unix_ns,
      .whole_bytes = bytes.size(),
      .direction = frame.is_arrival ? pcapng::Direction::inbound : pcapng::Direction::outbound};
  out_ << pcapng::packet(head, bytes, comment_on(packet, frame.is_arrival));
}

void Pcapng::write() {
  write_section();
  std::vector<Frame> frames;
  for (At at = 0; at < story_.packets.size(); ++at) {
    const Packet& packet = story_.packets[at];
    if (!is_shown(packet)) continue;
    // Once each: where it was sent, or else where it came.
    const bool is_arrival = packet.is_copy || (packet.sent == kNowhere && packet.lost == kNowhere);
    frames.push_back(
        {story_.time_ns(is_arrival ? packet.arrived : packet.header()), at, is_arrival});
  }
  std::ranges::stable_sort(frames, {}, &Frame::ns);
  for (const Frame& frame : frames) write_frame(frame);
}

}  // namespace

void show_pcapng(const Story& story, const Selection& selection, std::ostream& out) {
  Pcapng(story, selection, out).write();
}

}  // namespace rocemu::trace
