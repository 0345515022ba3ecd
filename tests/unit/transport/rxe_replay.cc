#include "tests/unit/transport/rxe_replay.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "emulator/sim/sim_memory.h"
#include "emulator/transport/endpoint.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/wire/build.h"
#include "tests/unit/data.h"

namespace rocemu::transport_test {

namespace {

using namespace rocemu::transport;
using wire::Operation;
using wire::Packet;
using wire::test::Frame;

constexpr PdHandle kPd = 1;
constexpr uint32_t kEveryAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;
constexpr uint8_t kTimeout = 14;  // 67 ms

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string_view name_of(Operation operation) {
  static constexpr std::string_view kNames[] = {
      "send first",         "send middle",         "send last",
      "send last imm",      "send only",           "send only imm",
      "write first",        "write middle",        "write last",
      "write last imm",     "write only",          "write only imm",
      "read request",       "read response first", "read response middle",
      "read response last", "read response only",  "acknowledge",
      "atomic acknowledge", "compare swap",        "fetch add"};
  return kNames[static_cast<size_t>(operation)];
}

bool is_answer(const Packet& packet) {
  return packet.operation() >= Operation::read_response_first &&
         packet.operation() <= Operation::atomic_acknowledge;
}

Packet parse(const Frame& frame) {
  Packet packet;
  REQUIRE(wire::parse_frame(frame, packet) == wire::ParseError::none);
  return packet;
}

Described describe(const Packet& packet) {
  Described frame;
  frame.operation = name_of(packet.operation());
  const wire::Bth& bth = packet.bth;
  const wire::OpcodeTraits& traits = packet.traits();
  const auto add = [&](const char* name, uint64_t value) {
    frame.fields.emplace_back(name, hex(value));
  };
  frame.fields.emplace_back("operation", frame.operation);
  add("psn", bth.psn.value());
  add("solicited", bth.solicited);
  add("mig_req", bth.mig_req);
  add("pad", bth.pad_bytes);
  add("pkey", bth.pkey);
  add("destination_qp", bth.destination_qp.value);
  add("ack_request", bth.ack_request);
  add("reserved", bth.fecn || bth.becn || bth.reserved6 != 0 || bth.reserved7 != 0);
  if (traits.reth) {
    add("address", packet.ext.reth.virtual_address);
    add("rkey", packet.ext.reth.rkey.value);
    add("length", packet.ext.reth.length_bytes);
  }
  if (traits.aeth) {
    add("syndrome", packet.ext.aeth.syndrome);
    add("msn", packet.ext.aeth.msn);
  }
  if (traits.atomic_eth) {
    add("address", packet.ext.atomic.virtual_address);
    add("rkey", packet.ext.atomic.rkey.value);
    add("swap_or_add", packet.ext.atomic.swap_or_add);
    add("compare", packet.ext.atomic.compare);
  }
  if (traits.atomic_ack_eth) add("original", packet.ext.atomic_original);
  if (traits.imm) add("immediate", packet.ext.immediate);
  uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte byte : packet.payload)
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  add("payload_bytes", packet.payload.size());
  add("payload_hash", hash);
  return frame;
}

// Memory at the captured address that goes by the captured rkey.
class CapturedMemory : public sim::SimMemory {
 public:
  CapturedMemory(uint64_t address, std::optional<wire::RKey> rkey)
      : SimMemory(address), rkey_(rkey) {}
  uint32_t region = 0;

  bool check_remote(PdHandle pd, wire::Qpn qpn, wire::RKey rkey, uint64_t address,
                    uint32_t length_bytes, uint32_t access, MemoryRange& range) noexcept override {
    return rkey == rkey_ && SimMemory::check_remote(pd, qpn, wire::RKey{region}, address,
                                                    length_bytes, access, range);
  }

 private:
  std::optional<wire::RKey> rkey_;
};

// A capture, and what can be read from it.
struct Capture {
  explicit Capture(const RxeStory& story) {
    frames = wire::test::read_pcap(test::data_folder() / "rxe-pcaps" /
                                   (std::string(story.file) + ".pcap"));
    const Packet first = parse(frames.front());
    first_psn = first.bth.psn;
    responder_qpn = first.bth.destination_qp;
    requester_gid = first.ip.source;
    responder_gid = first.ip.destination;
    if (first.traits().atomic_eth) {
      address = first.ext.atomic.virtual_address;
      rkey = first.ext.atomic.rkey;
    } else {
      address = first.ext.reth.virtual_address;
      rkey = first.ext.reth.rkey;
    }
    for (const Frame& frame : frames) {
      const Packet packet = parse(frame);
      if (is_answer(packet) && packet.ip.destination == requester_gid)
        requester_qpn = packet.bth.destination_qp;
    }
  }

  // Requests of the end that spoke first, and answers to them.
  bool is_request(const Packet& packet) const {
    return !is_answer(packet) && packet.ip.source == requester_gid;
  }
  bool is_answer_to_it(const Packet& packet) const {
    return is_answer(packet) && packet.ip.destination == requester_gid;
  }

  std::vector<Frame> frames;
  wire::Psn first_psn;
  wire::Qpn requester_qpn{};
  wire::Qpn responder_qpn{};
  wire::Gid requester_gid;
  wire::Gid responder_gid;
  uint64_t address = 0;
  wire::RKey rkey{};
};

// One end with its QP. Its time moves only when it is told.
class End : public EventSink, public FrameSink {
 public:
  End(const RxeStory& story, const Capture& capture, Side side)
      : memory(side == Side::responder && capture.address != 0 ? capture.address : 0x1000,
               story.key_granted ? std::optional(capture.rkey) : std::nullopt),
        send_queue(64),
        endpoint_(memory, *this, TransportLimits{}, 4) {
    const bool requester = side == Side::requester;
    qpn_ = endpoint_.create_rc({kPd, &send_queue, &receive_queue, &send_cq, &receive_cq}).value();
    QpAttributes attributes;
    attributes.path.local_gid = requester ? capture.requester_gid : capture.responder_gid;
    attributes.path.remote_gid = requester ? capture.responder_gid : capture.requester_gid;
    attributes.path.headers = wire::HeaderTemplate(
        {}, {.source = attributes.path.local_gid, .destination = attributes.path.remote_gid}, {});
    attributes.path_mtu_bytes = story.mtu_bytes;
    attributes.remote_qpn = requester ? capture.responder_qpn : capture.requester_qpn;
    attributes.send_psn = attributes.receive_psn = capture.first_psn;
    attributes.access = story.access;
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4;
    attributes.min_rnr_timer = story.min_rnr_timer;
    attributes.timeout = kTimeout;
    attributes.retry_count = story.retry_count;
    attributes.rnr_retry = story.rnr_retry;
    for (QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
      endpoint_.modify(qpn_, state, attributes);
  }

  // The frame as captured, but for the QP number, which is ours.
  void receive(const Packet& packet) {
    wire::Bth bth = packet.bth;
    bth.destination_qp = qpn_;
    const Frame frame =
        wire::build_frame(packet.ethernet, packet.ip, packet.udp, bth, packet.ext, packet.payload);
    const std::span<const std::byte> frames[] = {frame};
    endpoint_.on_frames(now_, frames);
  }
  void post(sim::SendRequest request) {
    REQUIRE(send_queue.post(std::move(request)));
    endpoint_.on_doorbell(qpn_);
  }
  void transmit() {
    while (endpoint_.wants_transmit()) endpoint_.transmit(now_, *this, 32);
  }
  // False when nothing waits for time to pass.
  bool wait() {
    if (endpoint_.next_deadline() == kNever) return false;
    now_ = std::max(now_, endpoint_.next_deadline());
    endpoint_.on_timeout(now_);
    transmit();
    return true;
  }

  void on_qp_event(wire::Qpn, QpEvent) noexcept override {}
  void on_qp_error(wire::Qpn) noexcept override {}
  bool allocate(FrameBuffer& buffer) noexcept override {
    buffers_.push_back(std::make_unique<std::byte[]>(kMaxFrameBytes));
    buffer = {buffers_.back().get(), nullptr};
    return true;
  }
  void send(const FrameBuffer& buffer, uint32_t length_bytes) noexcept override {
    Packet packet;
    if (wire::parse_frame({buffer.data, length_bytes}, packet) == wire::ParseError::none)
      sent.push_back(describe(packet));
  }
  void discard(const FrameBuffer&) noexcept override {}

  CapturedMemory memory;
  sim::SimSendQueue send_queue;
  sim::SimReceiveQueue receive_queue;
  sim::SimCompletionQueue send_cq;
  sim::SimCompletionQueue receive_cq;
  std::vector<Described> sent;

 private:
  Endpoint endpoint_;
  std::vector<std::unique_ptr<std::byte[]>> buffers_;
  wire::Qpn qpn_{};
  TimeNs now_ = 0;
};

bool contains(const std::vector<size_t>& numbers, size_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// Where in its message a packet stands, by its PSN.
struct Place {
  Place(const RxeStory& story, const Capture& capture, const Packet& packet) {
    const uint32_t packets =
        story.opcode == WorkOpcode::compare_swap || story.opcode == WorkOpcode::fetch_add
            ? 1
            : packets_of(story.length_bytes, story.mtu_bytes);
    const auto distance = static_cast<uint32_t>(packet.bth.psn.distance_from(capture.first_psn));
    message = distance / packets;
    offset_bytes = distance % packets * story.mtu_bytes;
  }
  uint32_t message;
  uint32_t offset_bytes;
};

void copy(sim::SimMemory& memory, uint64_t address, std::span<const std::byte> bytes) {
  if (!bytes.empty())
    std::memcpy(memory.at(address, bytes.size()).data(), bytes.data(), bytes.size());
}

}  // namespace

std::string Described::text() const {
  std::string line;
  for (const auto& [name, value] : fields) line += name + "=" + value + " ";
  return line;
}

Replay replay_responder(const RxeStory& story) {
  const Capture capture(story);
  End end(story, capture, Side::responder);
  const uint32_t bytes = std::max(story.length_bytes, 8u);
  const uint64_t target = end.memory.allocate(bytes);
  end.memory.region = end.memory.register_region(kPd, target, bytes, kEveryAccess);
  // What rxe read was there before.
  for (const Frame& frame : capture.frames) {
    const Packet packet = parse(frame);
    if (capture.is_answer_to_it(packet) && !packet.payload.empty())
      copy(end.memory, target + Place(story, capture, packet).offset_bytes, packet.payload);
  }
  const uint64_t inbox = end.memory.allocate(story.receive_bytes);
  const uint32_t inbox_key =
      end.memory.register_region(kPd, inbox, story.receive_bytes, kLocalWrite);

  Replay replay;
  size_t requests = 0;
  for (const Frame& frame : capture.frames) {
    const Packet packet = parse(frame);
    if (capture.is_answer_to_it(packet)) {
      replay.rxe.push_back(describe(packet));
    } else if (capture.is_request(packet)) {
      if (requests == story.receives_from) {
        for (uint32_t i = 0; i < story.messages; ++i)
          end.receive_queue.post(
              {.wr_id = i, .sges = {{inbox, story.receive_bytes, wire::LKey{inbox_key}}}});
      }
      if (!contains(story.lost_requests, requests++)) end.receive(packet);
      end.transmit();
    }
  }
  replay.ours = end.sent;
  return replay;
}

Replay replay_requester(const RxeStory& story) {
  const Capture capture(story);
  End end(story, capture, Side::requester);
  const uint32_t bytes = std::max(is_atomic(story.opcode) ? 8u : story.length_bytes, 8u);
  std::vector<sim::SendRequest> work;
  for (uint32_t i = 0; i < story.messages; ++i) {
    const uint64_t address = end.memory.allocate(bytes);
    const uint32_t key = end.memory.register_region(kPd, address, bytes, kEveryAccess);
    work.push_back({.wr_id = i,
                    .opcode = story.opcode,
                    .remote_address = capture.address,
                    .rkey = capture.rkey.value});
    if (story.length_bytes > 0) work.back().sges = {{address, story.length_bytes, wire::LKey{key}}};
  }
  for (const Frame& frame : capture.frames) {
    const Packet packet = parse(frame);
    if (!capture.is_request(packet)) continue;
    const Place place(story, capture, packet);
    sim::SendRequest& request = work.at(place.message);
    if (!packet.payload.empty())
      copy(end.memory, request.sges.front().address + place.offset_bytes, packet.payload);
    if (packet.traits().imm) request.immediate = packet.ext.immediate;
    if (packet.operation() == Operation::fetch_add)
      request.compare_add = packet.ext.atomic.swap_or_add;
    if (packet.operation() == Operation::compare_swap) {
      request.compare_add = packet.ext.atomic.compare;
      request.swap = packet.ext.atomic.swap_or_add;
    }
    request.solicited |= packet.bth.solicited;
  }

  size_t posted = 0;
  const auto post_next = [&] {
    while (posted < work.size() &&
           (!story.one_at_a_time || posted == end.send_cq.completions.size()))
      end.post(work[posted++]);
    end.transmit();
  };
  post_next();

  Replay replay;
  size_t answers = 0;
  for (const Frame& frame : capture.frames) {
    const Packet packet = parse(frame);
    if (capture.is_request(packet)) {
      // Our clock is our own: it moves when rxe sent something for which we had no cause yet.
      while (end.sent.size() <= replay.rxe.size() && end.wait()) {
      }
      replay.rxe.push_back(describe(packet));
    } else if (capture.is_answer_to_it(packet)) {
      if (!contains(story.lost_answers, answers++)) end.receive(packet);
      end.transmit();
      post_next();
    }
  }
  for (int i = 0; i < 100 && end.wait(); ++i) {
  }
  replay.ours = end.sent;
  for (const Completion& completion : end.send_cq.completions)
    replay.statuses.push_back(completion.status);
  return replay;
}

namespace {

// True when the frame differs as `difference` says; it is then made ours.
bool apply(const RxeDifference& difference, Described& frame, bool& dropped) {
  const auto find = [&](std::string_view name) {
    return std::find_if(frame.fields.begin(), frame.fields.end(),
                        [&](const auto& field) { return field.first == name; });
  };
  if (difference.field == "frame") return dropped = find("syndrome")->second == difference.rxe;
  const auto field = find(difference.field);
  if (difference.rxe == "none") {
    if (field != frame.fields.end()) return false;
    frame.fields.emplace(find("payload_bytes"), difference.field, difference.ours);
    return true;
  }
  if (field == frame.fields.end() || field->second != difference.rxe) return false;
  field->second = difference.ours;
  return true;
}

}  // namespace

std::vector<Described> with_differences(const std::vector<Described>& rxe, Side side,
                                        std::string_view file, std::vector<size_t>& used) {
  std::vector<Described> result;
  for (size_t number = 0; number < rxe.size(); ++number) {
    Described frame = rxe[number];
    bool dropped = false;
    for (size_t i = 0; i < kRxeDifferences.size() && !dropped; ++i) {
      const RxeDifference& difference = kRxeDifferences[i];
      if (difference.side == side && (difference.file == "*" || difference.file == file) &&
          (difference.frame == -1 || static_cast<size_t>(difference.frame) == number) &&
          (difference.operation == "*" || difference.operation == frame.operation))
        used[i] += apply(difference, frame, dropped) ? 1 : 0;
    }
    if (!dropped) result.push_back(std::move(frame));
  }
  return result;
}

}  // namespace rocemu::transport_test
