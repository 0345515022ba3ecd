#include "tests/sim/bulk_pair.h"

namespace rocemu::sim {

using namespace transport;

namespace {

constexpr TimeNs kPatienceNs = 60'000'000'000;

NodeOptions node_options(const BulkOptions& options) {
  NodeOptions node;
  node.limits = options.limits;
  return node;
}

}  // namespace

BulkPair::Side::Side(EndpointNode& its_node, const BulkOptions& options)
    : node(its_node), send_queue(options.messages) {
  qpn = node.endpoint().create_rc({1, &send_queue, &receive_queue, &cq, &cq}).value();
  address = node.memory().allocate(options.message_bytes);
  key = node.memory().register_region(1, address, options.message_bytes,
                                      kLocalWrite | kRemoteWrite | kRemoteRead);
}

void BulkPair::Side::connect(const Side& peer, const BulkOptions& options) {
  QpAttributes attributes;
  attributes.path = node.path_to(peer.node);
  attributes.path_mtu_bytes = options.mtu_bytes;
  attributes.remote_qpn = peer.qpn;
  attributes.access = kRemoteWrite | kRemoteRead;
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 16;
  attributes.timeout = options.timeout;
  attributes.retry_count = attributes.rnr_retry = 7;
  for (QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
    node.endpoint().modify(qpn, state, attributes);
}

BulkPair::BulkPair(const BulkOptions& options)
    : options_(options),
      from(fabric.add_node<EndpointNode>(node_options(options)), options_),
      to(fabric.add_node<EndpointNode>(node_options(options)), options_) {
  fabric.set_link(from.node, to.node, options_.link);
  fabric.set_link(to.node, from.node, options_.link);
  from.connect(to, options_);
  to.connect(from, options_);
  from.cq.on_push = [this](const Completion& completion) {
    if (completion.status != WcStatus::success) return;
    ++completed_;
    end_ns_ = fabric.now_ns();
  };
}

bool BulkPair::run() {
  for (uint32_t i = 0; i < options_.messages; ++i)
    from.send_queue.post({.wr_id = i,
                          .opcode = options_.opcode,
                          .remote_address = to.address,
                          .rkey = to.key,
                          .sges = {{from.address, options_.message_bytes, wire::LKey{from.key}}}});
  from.node.ring(from.qpn);
  fabric.run(kPatienceNs);
  return completed_ == options_.messages;
}

double BulkPair::goodput_mbit_per_s() const {
  return 8000.0 * options_.message_bytes * options_.messages / static_cast<double>(end_ns_);
}

}  // namespace rocemu::sim
