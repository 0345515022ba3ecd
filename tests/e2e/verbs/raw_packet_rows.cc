// Raw packet QPs and flows: which frames go where (ibv_create_flow(3)), what is counted of them,
// what may not be sent, and receive queues that share a flow (ibv_create_rwq_ind_table(3)).
#include <arpa/inet.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr uint32_t kPacketBytes = 100;
constexpr uint32_t kSlotBytes = 256;  // of each receive
constexpr uint8_t kGroup[6] = {0x01, 0x50, 0x56, 0x19, 0x20, 0xa7};

// A frame of UDP over IPv4. What a row is about differs.
struct Frame {
  uint8_t destination[6];
  uint8_t source[6] = {0x02, 1, 2, 3, 4, 5};
  bool tagged = false;
  uint16_t vlan = 0;
  uint16_t ether_type = 0x0800;
  uint8_t protocol = 17;
  uint32_t source_ip = 0x01010101;
  uint32_t destination_ip = 0x02020202;
  uint16_t source_port = 1234;
  uint16_t destination_port = 5678;

  explicit Frame(const uint8_t (&to)[6] = kGroup) { std::memcpy(destination, to, 6); }

  std::array<uint8_t, kPacketBytes> bytes() const {
    std::array<uint8_t, kPacketBytes> all{};
    size_t at = 0;
    const auto put = [&](const void* data, size_t size) {
      std::memcpy(all.data() + at, data, size);
      at += size;
    };
    const auto put16 = [&](uint16_t value) { put(std::array{htons(value)}.data(), 2); };
    const auto put32 = [&](uint32_t value) { put(std::array{htonl(value)}.data(), 4); };
    put(destination, 6);
    put(source, 6);
    if (tagged) put16(0x8100);
    if (tagged) put16(vlan);
    put16(ether_type);
    put16(0x4500);
    put16(static_cast<uint16_t>(kPacketBytes - at + 2));
    put32(0x4000);
    put16(static_cast<uint16_t>(64 << 8 | protocol));
    put16(0);
    put32(source_ip);
    put32(destination_ip);
    put16(source_port);
    put16(destination_port);
    return all;
  }
};

// Specs of a flow in the form in which verbs takes them.
class FlowRequest {
 public:
  explicit FlowRequest(ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL, uint16_t priority = 0) {
    attr_.type = type;
    attr_.priority = priority;
    attr_.port = kPort;
  }
  template <class Spec>
  FlowRequest& add(int type, Spec spec) {
    spec.type = static_cast<ibv_flow_spec_type>(type);
    spec.size = sizeof spec;
    const size_t at = specs_.size();
    specs_.resize(at + sizeof spec);
    std::memcpy(specs_.data() + at, &spec, sizeof spec);
    ++attr_.num_of_specs;
    return *this;
  }
  FlowRequest& to_group() {
    ibv_flow_spec_eth eth{};
    std::memcpy(eth.val.dst_mac, kGroup, 6);
    std::memset(eth.mask.dst_mac, 0xff, 6);
    return add(IBV_FLOW_SPEC_ETH, eth);
  }
  ibv_flow* make(ibv_qp* qp) {
    const size_t bytes = sizeof attr_ + specs_.size();
    attr_.size = static_cast<uint16_t>(bytes - cut_bytes);
    std::vector<uint64_t> all(bytes / 8 + 1);
    std::memcpy(all.data(), &attr_, sizeof attr_);
    if (!specs_.empty())
      std::memcpy(reinterpret_cast<uint8_t*>(all.data()) + sizeof attr_, specs_.data(),
                  specs_.size());
    return ibv_create_flow(qp, reinterpret_cast<ibv_flow_attr*>(all.data()));
  }
  FlowPtr must_make(const End& end) { return FlowPtr(must(make(end.qp.get()), "ibv_create_flow")); }
  ibv_flow_attr& attr() { return attr_; }

  size_t cut_bytes = 0;  // that the flow's size lacks

 private:
  ibv_flow_attr attr_{};
  std::vector<uint8_t> specs_;
};

ibv_flow_spec_tcp_udp to_port(uint16_t port) {
  ibv_flow_spec_tcp_udp udp{};
  udp.val.dst_port = htons(port);
  udp.mask.dst_port = 0xffff;
  return udp;
}

End make_raw_end(const Device& device, uint16_t max_tso_header = 0) {
  EndOptions options;
  options.type = IBV_QPT_RAW_PACKET;
  options.max_tso_header = max_tso_header;
  options.send_ops = IBV_QP_EX_WITH_SEND;
  if (max_tso_header != 0) options.send_ops |= IBV_QP_EX_WITH_TSO;
  End end = make_end(device, options);
  QpChange init = change_to(IBV_QPS_INIT);
  init.attr.port_num = kPort;
  init.mask |= IBV_QP_PORT;
  must(init.apply(end.qp.get()), "ibv_modify_qp to INIT");
  must(change_to(IBV_QPS_RTR).apply(end.qp.get()), "ibv_modify_qp to RTR");
  must(change_to(IBV_QPS_RTS).apply(end.qp.get()), "ibv_modify_qp to RTS");
  return end;
}

void send(End& from, const Frame& frame, uint64_t wr_id = 10) {
  const auto bytes = frame.bytes();
  std::memcpy(from.memory.data(), bytes.data(), bytes.size());
  SendRequest request(IBV_WR_SEND, wr_id, from.sge(0, kPacketBytes));
  post_ok(from.qp.get(), request);
  expect_completion(from.send_cq.get(), wr_id, {IBV_WC_SUCCESS});
}

void receive_one(End& end, const Frame& frame, uint64_t wr_id) {
  const ibv_wc wc = expect_completion(end.recv_cq.get(), wr_id, {IBV_WC_SUCCESS});
  expect_equal(wc.byte_len, kPacketBytes, "byte_len");
  expect_equal(wc.qp_num, end.qp->qp_num, "qp_num");
  const auto bytes = frame.bytes();
  if (std::memcmp(end.memory.data() + wr_id * kSlotBytes, bytes.data(), kPacketBytes) != 0)
    fail("the frame is another");
}

void post_receives(End& end, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    post_recv_ok(end.qp.get(), i, end.sge(i * kSlotBytes, kSlotBytes));
}

// Frames of six kinds, and the QP that each of them is for.
void by_each_field(Lab& lab) {
  End from = make_raw_end(lab.a());
  std::vector<End> to;
  std::vector<FlowPtr> flows;
  std::vector<Frame> frames;
  const auto add = [&](const Frame& frame, FlowRequest request) {
    to.push_back(make_raw_end(lab.b()));
    flows.push_back(request.must_make(to.back()));
    post_receives(to.back(), 2);
    frames.push_back(frame);
  };
  const auto eth = [](auto change) {
    ibv_flow_spec_eth spec{};
    change(spec);
    return FlowRequest().add(IBV_FLOW_SPEC_ETH, spec);
  };
  Frame frame;
  frame.source[5] = 77;
  frame.destination_port = 1;
  add(frame, eth([&](auto& spec) {
        std::memcpy(spec.val.src_mac, frame.source, 6);
        std::memset(spec.mask.src_mac, 0xff, 6);
      }));
  frame = Frame();
  frame.tagged = true;
  frame.vlan = 0xa123;
  add(frame, eth([](auto& spec) {
        spec.val.vlan_tag = htons(0x0123);
        spec.mask.vlan_tag = htons(0x0fff);
      }));
  frame = Frame();
  frame.ether_type = 0x88b5;
  add(frame, eth([](auto& spec) {
        spec.val.ether_type = htons(0x88b5);
        spec.mask.ether_type = 0xffff;
      }));
  frame = Frame();
  frame.source_ip = 0x0a000001;
  ibv_flow_spec_ipv4 ipv4{};
  ipv4.val.src_ip = htonl(0x0a000000);
  ipv4.mask.src_ip = htonl(0xffff0000);
  add(frame, FlowRequest().add(IBV_FLOW_SPEC_IPV4, ipv4));
  frame = Frame();
  add(frame, FlowRequest().to_group().add(IBV_FLOW_SPEC_UDP, to_port(5678)));
  frame = Frame();
  frame.protocol = 6;
  add(frame, FlowRequest().add(IBV_FLOW_SPEC_TCP, to_port(5678)));
  // A flow by the UDP port would have the tagged frame, too: it is given another one.
  frames[1].destination_port = frames[2].destination_port = frames[3].destination_port = 2;

  for (size_t i = 0; i < frames.size(); ++i) send(from, frames[i], 10 + i);
  for (size_t i = 0; i < frames.size(); ++i) {
    receive_one(to[i], frames[i], 0);
    expect_no_completion(to[i].recv_cq.get());
  }
}

void to_the_mac(Lab& lab) {
  End from = make_raw_end(lab.a());
  End to = make_raw_end(lab.b());
  uint8_t mac[6];
  const auto* guid = reinterpret_cast<const uint8_t*>(&lab.b().attr.node_guid);
  std::memcpy(mac, guid, 3);
  std::memcpy(mac + 3, guid + 5, 3);
  mac[0] ^= 2;
  const Frame frame(mac);
  const FlowPtr all = FlowRequest(IBV_FLOW_ATTR_ALL_DEFAULT).must_make(to);
  post_receives(to, 2);
  send(from, frame);
  receive_one(to, frame, 0);
  // Better flows leave nothing for the default one.
  End better = make_raw_end(lab.b());
  const FlowPtr flow = FlowRequest().add(IBV_FLOW_SPEC_UDP, to_port(5678)).must_make(better);
  post_receives(better, 1);
  send(from, frame);
  receive_one(better, frame, 0);
  expect_no_completion(to.recv_cq.get());
}

void priorities(Lab& lab) {
  End from = make_raw_end(lab.a());
  End first = make_raw_end(lab.b());
  End second = make_raw_end(lab.b());
  End sniffer = make_raw_end(lab.b());
  FlowPtr better = FlowRequest(IBV_FLOW_ATTR_NORMAL, 1).to_group().must_make(first);
  const FlowPtr worse = FlowRequest(IBV_FLOW_ATTR_NORMAL, 2).to_group().must_make(second);
  const FlowPtr copy = FlowRequest(IBV_FLOW_ATTR_SNIFFER).must_make(sniffer);
  for (End* end : {&first, &second, &sniffer}) post_receives(*end, 4);
  const Frame frame;
  send(from, frame);
  receive_one(first, frame, 0);
  receive_one(sniffer, frame, 0);
  expect_no_completion(second.recv_cq.get());
  ibv_flow_spec_action_drop drop{};
  const FlowPtr dropping =
      FlowRequest().to_group().add(IBV_FLOW_SPEC_ACTION_DROP, drop).must_make(first);
  send(from, frame);
  receive_one(sniffer, frame, 1);
  expect_no_completion(first.recv_cq.get());
}

void counted(Lab& lab) {
  End from = make_raw_end(lab.a());
  End to = make_raw_end(lab.b());
  ibv_counters_init_attr init{};
  const CountersPtr counters(
      must(ibv_create_counters(lab.b().context.get(), &init), "ibv_create_counters"));
  const auto attach = [&](int description, uint32_t index) {
    ibv_counter_attach_attr attr{};
    attr.counter_desc = static_cast<ibv_counter_description>(description);
    attr.index = index;
    return ibv_attach_counters_point_flow(counters.get(), &attr, nullptr);
  };
  must(attach(IBV_COUNTER_BYTES, 0), "ibv_attach_counters_point_flow");
  must(attach(IBV_COUNTER_PACKETS, 1), "ibv_attach_counters_point_flow");
  must(attach(IBV_COUNTER_PACKETS, 2), "ibv_attach_counters_point_flow");
  must(attach(IBV_COUNTER_BYTES, 2), "two counters at one index");
  expect_errno(attach(7, 3), {ENOTSUP}, "a counter of no kind");
  ibv_flow_spec_counter_action count{};
  count.counters = counters.get();
  {
    const FlowPtr flow =
        FlowRequest().to_group().add(IBV_FLOW_SPEC_ACTION_COUNT, count).must_make(to);
    post_receives(to, 3);
    for (int i = 0; i < 3; ++i) send(from, Frame());
    for (uint64_t i = 0; i < 3; ++i) receive_one(to, Frame(), i);
    expect_errno(ibv_destroy_counters(counters.get()), {EBUSY}, "counters that a flow uses");
    expect_errno(attach(IBV_COUNTER_BYTES, 3), {EBUSY}, "one more while a flow uses them");
    expect_errno(ibv_destroy_qp(to.qp.get()), {EBUSY}, "a QP that a flow leads to");
  }
  uint64_t values[4] = {};
  must(ibv_read_counters(counters.get(), values, 3, 0), "ibv_read_counters");
  expect_equal(values[2], 3 * kPacketBytes + 3, "bytes and packets");
  expect_equal(values[0], 3 * kPacketBytes, "bytes");
  expect_equal(values[1], 3, "packets");
  expect_errno(ibv_read_counters(counters.get(), values, 4, 0), {EINVAL}, "counters beyond");
}

void not_sent(Lab& lab) {
  End from = make_raw_end(lab.a());
  End sniffer = make_raw_end(lab.b());
  const FlowPtr copy = FlowRequest(IBV_FLOW_ATTR_SNIFFER).must_make(sniffer);
  post_receives(sniffer, 4);
  Frame forged;
  forged.destination_port = 4791;
  send(from, forged);
  send(from, Frame());
  receive_one(sniffer, Frame(), 0);
  for (const uint32_t bytes : {13u, 0u, 60000u}) {
    SendRequest wrong(IBV_WR_SEND, 1, from.sge(0, bytes));
    expect_send_queue_error(from, wrong, IBV_WC_LOC_LEN_ERR);
  }
  SendRequest write(IBV_WR_RDMA_WRITE, 1, from.sge(0, 64));
  expect_errno(post_send(from.qp.get(), write.wr), {EINVAL}, "a WRITE over raw packets");
  SendRequest checksummed(IBV_WR_SEND, 1, from.sge(0, 64));
  checksummed.wr.send_flags |= IBV_SEND_IP_CSUM;
  expect_errno(post_send(from.qp.get(), checksummed.wr), {EINVAL}, "a checksum of the NIC's");
  ibv_qp_ex* const qp = must(ibv_qp_to_qp_ex(from.qp.get()), "ibv_qp_to_qp_ex");
  ibv_wr_start(qp);
  qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
  ibv_wr_send(qp);
  const ibv_sge sge = from.sge(0, 64);
  ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
  expect_errno(ibv_wr_complete(qp), {EINVAL}, "a checksum of the NIC's, by ibv_wr_send");
  expect_no_completion(from.send_cq.get());
}

void lost_and_refused(Lab& lab) {
  End from = make_raw_end(lab.a());
  End to = make_raw_end(lab.b());
  const FlowPtr flow = FlowRequest().to_group().must_make(to);
  send(from, Frame());  // nothing is posted
  post_recv_ok(to.qp.get(), 0, to.sge(0, kPacketBytes - 1));
  send(from, Frame());  // no room: the receive stays
  send(from, Frame());
  expect_no_completion(to.recv_cq.get());
  expect_state(to.qp.get(), IBV_QPS_RTS);

  const auto refuse = [&](FlowRequest request, std::initializer_list<int> errors,
                          const char* what) {
    expect_refused(FlowPtr(request.make(to.qp.get())), errors, what);
  };
  FlowRequest request;
  request.attr().port = 2;
  refuse(request, {EINVAL}, "a port that is not there");
  request = FlowRequest(static_cast<ibv_flow_attr_type>(9));
  refuse(request, {EINVAL, EOPNOTSUPP}, "a flow of no kind");
  request = FlowRequest().add(IBV_FLOW_SPEC_ETH, ibv_flow_spec_action_drop{});
  refuse(request, {EINVAL}, "a spec that is cut short");
  refuse(FlowRequest().add(IBV_FLOW_SPEC_GRE, ibv_flow_spec_gre{}), {EOPNOTSUPP, EINVAL},
         "a spec of tunnels");
  for (const size_t cut :
       {size_t{1}, sizeof(ibv_flow_spec_eth) - 2, sizeof(ibv_flow_spec_eth) + 1}) {
    request = FlowRequest().to_group();
    request.cut_bytes = cut;
    refuse(request, {EINVAL}, "a flow that is longer than its size");
  }
  const End rc = make_end(lab.b(), {});
  expect_refused(FlowPtr(FlowRequest().make(rc.qp.get())), {EINVAL}, "a flow to an RC QP");
}

// The headers of TCP over IPv4 or IPv6 to the group's MAC, as a program gives them: without lengths
// and checksums.
std::vector<uint8_t> tcp_headers(bool ipv6) {
  std::vector<uint8_t> all(kGroup, kGroup + 6);
  const auto put = [&](std::initializer_list<int> bytes) {
    for (const int byte : bytes) all.push_back(static_cast<uint8_t>(byte));
  };
  put({2, 1, 2, 3, 4, 5});
  if (ipv6) {
    put({0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 6, 64});
    for (const int host : {1, 2}) put({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host});
  } else {
    put({8, 0, 0x45, 0, 0, 0, 0, 9, 0x40, 0, 64, 6, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
  }
  put({0x12, 0x34, 0x16, 0x2e, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 1, 0x50, 0x19, 1, 0, 0, 0, 0, 0});
  return all;
}

uint16_t internet_sum(const uint8_t* bytes, size_t count, uint32_t sum = 0) {
  for (size_t i = 0; i < count; ++i) sum += i % 2 == 0 ? bytes[i] << 8 : bytes[i];
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

uint32_t be32_at(const uint8_t* bytes) {
  uint32_t value = 0;
  std::memcpy(&value, bytes, 4);
  return ntohl(value);
}

constexpr uint32_t kMss = 100;
constexpr uint32_t kTsoPayloadAt = 4096;  // in the sender's memory

// A message of two and a half segments: each frame is right by itself, and their payloads are the
// message.
void segmented_frames(End& from, End& to, bool ipv6, const std::function<void()>& post) {
  const std::vector<uint8_t> headers = tcp_headers(ipv6);
  const size_t ip_at = 14;
  const size_t tcp_at = ip_at + (ipv6 ? 40 : 20);
  post_receives(to, 3);
  for (uint32_t i = 0; i < 250; ++i)
    from.memory.data()[kTsoPayloadAt + i] = static_cast<std::byte>(i * 13);
  post();
  const ibv_wc sent = expect_completion(from.send_cq.get(), 77, {IBV_WC_SUCCESS});
  expect_equal(sent.opcode, IBV_WC_TSO, "opcode");
  for (uint64_t i = 0; i < 3; ++i) {
    const uint32_t payload = i < 2 ? kMss : 50;
    const ibv_wc wc = expect_completion(to.recv_cq.get(), i, {IBV_WC_SUCCESS});
    expect_equal(wc.byte_len, headers.size() + payload, "byte_len");
    const auto* frame = reinterpret_cast<const uint8_t*>(to.memory.data()) + i * kSlotBytes;
    const size_t tcp_bytes = wc.byte_len - tcp_at;
    const uint8_t* const ip = frame + ip_at;
    if (ipv6) {
      expect_equal(ip[4] << 8 | ip[5], tcp_bytes, "payload length");
    } else {
      expect_equal(ip[2] << 8 | ip[3], wc.byte_len - ip_at, "total length");
      expect_equal(ip[4] << 8 | ip[5], 9 + i, "identification");
      expect_equal(internet_sum(ip, 20), 0xffff, "checksum of IPv4");
    }
    expect_equal(be32_at(frame + tcp_at + 4), 0xfffffff0 + static_cast<uint32_t>(i) * kMss,
                 "sequence number");
    expect_equal(frame[tcp_at + 13], i < 2 ? 0x10 : 0x19, "flags");
    const uint32_t pseudo =
        internet_sum(ipv6 ? ip + 8 : ip + 12, ipv6 ? 32 : 8, 6 + static_cast<uint32_t>(tcp_bytes));
    expect_equal(internet_sum(frame + tcp_at, tcp_bytes, pseudo), 0xffff, "checksum of TCP");
    if (std::memcmp(frame + headers.size(), from.memory.data() + kTsoPayloadAt + i * kMss,
                    payload) != 0)
      fail("the payload is another");
  }
  expect_no_completion(to.recv_cq.get());
}

void segment(SendRequest& request, const std::vector<uint8_t>& headers, uint16_t mss) {
  request.wr.tso.hdr = const_cast<uint8_t*>(headers.data());
  request.wr.tso.hdr_sz = static_cast<uint16_t>(headers.size());
  request.wr.tso.mss = mss;
}

void segmentation(Lab& lab) {
  ibv_device_attr_ex attr{};
  must(ibv_query_device_ex(lab.a().context.get(), nullptr, &attr), "ibv_query_device_ex");
  expect_equal(attr.tso_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET, "supported_qpts");
  if (attr.tso_caps.max_tso < 65536) fail("max_tso is below 64 KiB");
  End from = make_raw_end(lab.a(), 74);
  End to = make_raw_end(lab.b());
  const FlowPtr flow = FlowRequest().to_group().must_make(to);
  for (const bool ipv6 : {false, true}) {
    const std::vector<uint8_t> headers = tcp_headers(ipv6);
    segmented_frames(from, to, ipv6, [&] {
      SendRequest request(IBV_WR_TSO, 77, from.sge(kTsoPayloadAt, 250));
      segment(request, headers, kMss);
      request.wr.send_flags |= IBV_SEND_IP_CSUM;
      post_ok(from.qp.get(), request);
    });
    segmented_frames(from, to, ipv6, [&] {
      ibv_qp_ex* const qp = must(ibv_qp_to_qp_ex(from.qp.get()), "ibv_qp_to_qp_ex");
      ibv_wr_start(qp);
      qp->wr_id = 77;
      qp->wr_flags = IBV_SEND_SIGNALED;
      ibv_wr_send_tso(qp, const_cast<uint8_t*>(headers.data()),
                      static_cast<uint16_t>(headers.size()), kMss);
      const ibv_sge sge = from.sge(kTsoPayloadAt, 250);
      ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
      must(ibv_wr_complete(qp), "ibv_wr_complete");
    });
  }
}

void wrong_segmentation(Lab& lab) {
  const std::vector<uint8_t> headers = tcp_headers(false);
  const auto refused = [&](std::vector<uint8_t> wrong, uint16_t mss, uint32_t bytes,
                           ibv_wc_status status) {
    End from = make_raw_end(lab.a(), 100);
    SendRequest request(IBV_WR_TSO, 77, from.sge(0, bytes));
    segment(request, wrong, mss);
    expect_send_queue_error(from, request, status);
  };
  std::vector<uint8_t> udp = headers;
  udp[14 + 9] = 17;
  refused(udp, kMss, 250, IBV_WC_LOC_QP_OP_ERR);
  refused(std::vector<uint8_t>(headers.begin(), headers.end() - 1), kMss, 250,
          IBV_WC_LOC_QP_OP_ERR);
  refused(headers, 0, 250, IBV_WC_LOC_QP_OP_ERR);
  refused(headers, 60000, 60000, IBV_WC_LOC_LEN_ERR);

  const auto not_taken = [&](End end, const char* what, unsigned flags = 0) {
    SendRequest request(IBV_WR_TSO, 77, end.sge(0, 0));
    segment(request, headers, kMss);
    request.wr.send_flags |= flags;
    expect_errno(post_send(end.qp.get(), request.wr), {EINVAL}, what);
  };
  not_taken(make_raw_end(lab.a(), 53), "headers longer than asked for");
  not_taken(make_raw_end(lab.a(), 100), "inline payload", IBV_SEND_INLINE);
  not_taken(make_raw_end(lab.a()), "TSO that was not asked for");
  not_taken(std::move(make_ends(lab, IBV_QPT_RC).a), "TSO over RC");
}

}  // namespace

std::span<const Row> raw_packet_rows() {
  static constexpr Row kRows[] = {
      {"raw packets: flows by each field", by_each_field},
      {"raw packets: to a device's MAC; the default flow", to_the_mac},
      {"raw packets: priorities, sniffers, dropping", priorities},
      {"raw packets: counters of a flow", counted},
      {"raw packets: what may not be sent", not_sent},
      {"raw packets: lost ones, and flows that are refused", lost_and_refused},
      {"raw packets: TCP segmentation", segmentation},
      {"raw packets: TCP segmentation that is refused", wrong_segmentation},
  };
  return kRows;
}

}  // namespace rocemu::e2e
