#include "tests/unit/transport/pair.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "emulator/wire/build.h"
#include "emulator/wire/icrc.h"

namespace rocemu::transport_test {

namespace {

constexpr size_t kSendDepth = 4096;

Sent digest(const sim::FrameRecord& record) {
  wire::Packet packet;
  REQUIRE(wire::parse_frame(record.frame, packet, wire::kMaxRunBytes) == wire::ParseError::none);
  return {record.now_ns,
          record.from == 0,
          packet.operation(),
          packet.bth.psn.value(),
          static_cast<uint32_t>(packet.payload.size()),
          packet.bth.ack_request,
          packet.bth.solicited,
          packet.ext,
          packet.bth.mig_req,
          packet.ip.destination,
          packet.bth.reserved7,
          packet.udp.source_port};
}

}  // namespace

Buffer Host::buffer(uint32_t length_bytes, uint8_t seed, uint32_t access) {
  Buffer buffer{node_.memory().allocate(length_bytes), length_bytes, 0};
  buffer.key = node_.memory().register_region(1, buffer.address, length_bytes, access);
  if (seed != 0) {
    Random random(seed);
    for (std::byte& byte : node_.memory().at(buffer.address, length_bytes))
      byte = static_cast<std::byte>(random.next());
  }
  return buffer;
}

std::vector<std::byte> Host::bytes(const Buffer& buffer) {
  const auto view = node_.memory().at(buffer.address, buffer.length_bytes);
  return {view.begin(), view.end()};
}

uint64_t Host::word(const Buffer& buffer, uint32_t offset) {
  uint64_t value;
  std::memcpy(&value, node_.memory().at(buffer.address + offset, sizeof value).data(),
              sizeof value);
  return value;
}

void Host::set_word(const Buffer& buffer, uint64_t value, uint32_t offset) {
  std::memcpy(node_.memory().at(buffer.address + offset, sizeof value).data(), &value,
              sizeof value);
}

void Host::post(SendRequest request) {
  REQUIRE(send_queue.post(std::move(request)));
  node_.ring(qpn);
}

void Host::receive(uint64_t wr_id, const std::vector<Sge>& sges) {
  receive_queue.post({.wr_id = wr_id, .sges = sges});
  if (state() == QpState::error) node_.ring(qpn);
}

void Host::modify(QpState state) {
  node_.endpoint().modify(qpn, state, attributes);
  node_.wake();
}

std::vector<QpEvent> Host::events() const {
  std::vector<QpEvent> events;
  for (const sim::NodeEvent& seen : node_.events)
    if (!seen.own_error) events.push_back(seen.event);
  return events;
}

bool Host::had_event(QpEvent event) const {
  const std::vector<QpEvent> seen = events();
  return std::ranges::find(seen, event) != seen.end();
}

Pair::Pair(const PairOptions& options)
    : a(fabric.add_node<sim::EndpointNode>(options.node), kSendDepth),
      b(fabric.add_node<sim::EndpointNode>(options.b_node.value_or(options.node)), kSendDepth) {
  create(a, options.a_service, options.a_shares_receives);
  create(b, options.b_service, false, options.equip_b);
  connect(a, options, options.a_psn, options.b_psn);
  connect(b, options, options.b_psn, options.a_psn);
  fabric.observer = [this](const sim::FrameRecord& record) {
    if (record.kind != sim::FrameRecord::Kind::sent) return true;
    sent.push_back(digest(record));
    return !lose || !lose(sent.back());
  };
}

void Pair::create(Host& host, Service service, bool shares_receives,
                  const std::function<void(Host&, QpResources&)>& equip) {
  host.addresses.peer = host.node().path_to(peer_of(host).node());
  QpResources resources{1, &host.send_queue, &host.receive_queue, &host.send_cq, &host.receive_cq};
  resources.addresses = &host.addresses;
  resources.receives_are_shared = shares_receives;
  switch (service) {
    case Service::rc:
      break;
    case Service::uc:
      transport = wire::Transport::uc;
      break;
    case Service::ud:
    case Service::raw_packet:
      transport = wire::Transport::ud;
      break;
    case Service::xrc_send:
      transport = wire::Transport::xrc;
      resources.send_only = true;
      break;
    case Service::xrc_receive:
      transport = wire::Transport::xrc;
      host.domain.receiver = {1, &host.receive_queue, &host.receive_cq};
      resources = {0, &host.send_queue, &host.receive_queue};
      resources.receives_are_shared = true;
      resources.xrc_domain = &host.domain;
      break;
  }
  if (equip) equip(host, resources);
  const auto qpn = host.endpoint().create(service, resources);
  REQUIRE(qpn);
  host.qpn = *qpn;
}

void Pair::connect(Host& host, const PairOptions& options, uint32_t psn, uint32_t peer_psn) {
  Host& peer = peer_of(host);
  QpAttributes& attributes = host.attributes;
  attributes.path = host.node().path_to(peer.node());
  attributes.path_mtu_bytes = options.mtu_bytes;
  attributes.remote_qpn = peer.qpn;
  attributes.send_psn = Psn(psn);
  attributes.receive_psn = Psn(peer_psn);
  attributes.access = options.access;
  attributes.qkey = 0x1234;
  attributes.max_rd_atomic = options.max_rd_atomic;
  attributes.max_dest_rd_atomic = options.max_rd_atomic;
  attributes.min_rnr_timer = options.min_rnr_timer;
  attributes.timeout = options.timeout;
  attributes.retry_count = options.retry_count;
  attributes.rnr_retry = options.rnr_retry;
  for (QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
    host.modify(state);
}

void Pair::drive() { REQUIRE(fabric.run(fabric.now_ns() + 10'000 * kMs, 10'000'000)); }

std::vector<std::byte> Pair::frame_for(Host& to, wire::Bth bth, const wire::ExtendedHeaders& ext,
                                       std::span<const std::byte> payload) {
  const Host& from = peer_of(to);
  bth.pkey = wire::kDefaultPkey;
  bth.destination_qp = to.qpn;
  bth.pad_bytes = static_cast<uint8_t>(-payload.size() & 3);
  return wire::build_frame(
      {}, {.source = from.attributes.path.local_gid, .destination = to.attributes.path.local_gid},
      {.source_port = 0xc000}, bth, ext, payload);
}

void Pair::inject(Host& to, Operation operation, uint32_t psn, const wire::ExtendedHeaders& ext,
                  std::span<const std::byte> payload, bool ack_request) {
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(transport, operation);
  bth.psn = Psn(psn);
  bth.ack_request = ack_request;
  to.node().receive(network::SharedFrame(frame_for(to, bth, ext, payload)));
}

std::vector<Sent> Pair::sent_by(const Host& host, Operation operation) const {
  std::vector<Sent> found;
  for (const Sent& frame : sent)
    if (frame.from_a == (&host == &a) && frame.operation == operation) found.push_back(frame);
  return found;
}

SendRequest send(const Buffer& from, uint64_t wr_id) {
  return {.wr_id = wr_id, .opcode = WorkOpcode::send, .sges = {from.sge()}};
}

namespace {

SendRequest remote(WorkOpcode opcode, const Buffer& local, const Buffer& far, uint64_t wr_id) {
  return {.wr_id = wr_id,
          .opcode = opcode,
          .remote_address = far.address,
          .rkey = far.key,
          .sges = {local.sge()}};
}

}  // namespace

SendRequest write(const Buffer& from, const Buffer& to, uint64_t wr_id) {
  return remote(WorkOpcode::write, from, to, wr_id);
}

SendRequest read(const Buffer& into, const Buffer& from, uint64_t wr_id) {
  return remote(WorkOpcode::read, into, from, wr_id);
}

SendRequest compare_swap(const Buffer& into, const Buffer& cell, uint64_t compare, uint64_t swap,
                         uint64_t wr_id) {
  SendRequest request = remote(WorkOpcode::compare_swap, into, cell, wr_id);
  request.compare_add = compare;
  request.swap = swap;
  return request;
}

SendRequest fetch_add(const Buffer& into, const Buffer& cell, uint64_t add, uint64_t wr_id) {
  SendRequest request = remote(WorkOpcode::fetch_add, into, cell, wr_id);
  request.compare_add = add;
  return request;
}

SendRequest atomic_write(const Buffer& from, const Buffer& cell, uint64_t wr_id) {
  return remote(WorkOpcode::atomic_write, from, cell, wr_id);
}

SendRequest datagram(const Buffer& from, const Host& to, uint64_t wr_id) {
  SendRequest request = send(from, wr_id);
  request.address_handle = kPeer;
  request.remote_qpn = to.qpn;
  request.remote_qkey = 0x1234;
  return request;
}

SendRequest with_immediate(SendRequest request, uint32_t immediate) {
  request.opcode =
      request.opcode == WorkOpcode::send ? WorkOpcode::send_imm : WorkOpcode::write_imm;
  request.immediate = immediate;
  return request;
}

SendRequest fenced(SendRequest request) {
  request.fence = true;
  return request;
}

SendRequest unsignaled(SendRequest request) {
  request.signaled = false;
  return request;
}

std::vector<WcStatus> statuses(const sim::SimCompletionQueue& cq) {
  std::vector<WcStatus> result;
  for (const Completion& completion : cq.completions) result.push_back(completion.status);
  return result;
}

std::vector<uint64_t> wr_ids(const sim::SimCompletionQueue& cq) {
  std::vector<uint64_t> result;
  for (const Completion& completion : cq.completions) result.push_back(completion.wr_id);
  return result;
}

void expect_nak(Pair& pair, WcStatus status, uint8_t syndrome, std::optional<QpEvent> event) {
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{status});
  const std::vector<Sent> answers = pair.sent_by(pair.b, Operation::acknowledge);
  REQUIRE_FALSE(answers.empty());
  CHECK(answers.back().ext.aeth.syndrome == syndrome);
  CHECK(pair.a.state() == QpState::error);
  CHECK(pair.b.state() == QpState::error);
  CHECK(pair.b.events() == (event ? std::vector{*event} : std::vector<QpEvent>{}));
}

}  // namespace rocemu::transport_test
