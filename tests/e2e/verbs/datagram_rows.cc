// UD: what arrives, with which address, and what is lost in silence (IBTA vol 1, 9.8.3). A message
// that is lost is followed by a good one, so that no row waits for what does not come.
#include <arpa/inet.h>

#include <cstring>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

void send_datagram(Ends& ends, ibv_ah* ah, uint64_t wr_id, uint32_t bytes, uint32_t qkey = kQkey) {
  SendRequest request(IBV_WR_SEND_WITH_IMM, wr_id, ends.a.sge(0, bytes));
  request.wr.imm_data = htonl(0x1234);
  address(request, ah, ends.b, qkey);
  post_ok(ends.a.qp.get(), request);
  expect_completion(ends.a.send_cq.get(), wr_id, {IBV_WC_SUCCESS});
}

// A good datagram arrives, and nothing else has.
void expect_usable(Lab& lab, Ends& ends) {
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  ends.a.fill(std::byte{5});
  ends.b.fill(std::byte{0});
  post_recv_ok(ends.b.qp.get(), 21, ends.b.sge(0, 200));
  send_datagram(ends, ah.get(), 20, 100);
  expect_completion(ends.b.recv_cq.get(), 21, {IBV_WC_SUCCESS});
  expect_bytes({ends.b.memory.data() + kGrhBytes, 100}, std::byte{5}, "the data");
  expect_bytes({ends.b.memory.data() + 200, 65336}, std::byte{0}, "the rest of the memory");
}

// What stands where the GRH would, of a datagram of 500 bytes with immediate: an IPv6 header, or in
// its second half an IPv4 header. ConnectX and rocemu tell by the service level which, others give
// 0.
void expect_header(Lab& lab, const std::byte* memory, uint8_t sl) {
  constexpr uint16_t kUdpBytes = 8 + 12 + 8 + 4 + 500 + 4;  // UDP, BTH, DETH, immediate, data, ICRC
  constexpr uint8_t kUdp = 17;
  const bool ipv4 = is_ipv4(lab.b().gid);
  const bool tells = sl != 0 || std::strncmp(lab.b().name(), "rocemu", 6) == 0;
  if (tells) expect_equal(sl, ipv4 ? 10 : 9, "sl");
  uint8_t header[kGrhBytes];
  std::memcpy(header, memory, sizeof header);
  const auto word = [&header](size_t at) { return header[at] << 8 | header[at + 1]; };
  expect_equal(header[ipv4 ? 20 : 0] >> 4, ipv4 ? 4 : 6, "the version of IP");
  expect_equal(static_cast<uint64_t>(word(ipv4 ? 22 : 4)), ipv4 ? 20 + kUdpBytes : kUdpBytes,
               "the length in the header");
  expect_equal(header[ipv4 ? 29 : 6], kUdp, "the protocol in the header");
  const size_t skip = ipv4 ? 12 : 0;  // of a GID that holds an IPv4 address
  const size_t bytes = sizeof(ibv_gid) - skip;
  if (std::memcmp(header + kGrhBytes - 2 * bytes, lab.a().gid.raw + skip, bytes) != 0)
    fail("the source in the header is another");
  if (std::memcmp(header + kGrhBytes - bytes, lab.b().gid.raw + skip, bytes) != 0)
    fail("the destination in the header is another");
}

void ud_arrives(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UD);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  ends.a.fill(std::byte{7});
  ends.b.fill(std::byte{0});
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, kGrhBytes + 500));
  send_datagram(ends, ah.get(), 10, 500);
  const ibv_wc wc = expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_equal(wc.opcode, IBV_WC_RECV, "opcode");
  expect_equal(wc.qp_num, ends.b.qp->qp_num, "qp_num");
  expect_equal(wc.byte_len, kGrhBytes + 500, "byte_len");
  expect_equal(wc.src_qp, ends.a.qp->qp_num, "src_qp");
  expect_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM, "wc_flags");
  expect_equal(ntohl(wc.imm_data), 0x1234, "imm_data");
  expect_equal(wc.pkey_index, 0, "pkey_index");
  expect_equal(wc.slid, 0, "slid");  // RoCE has no LIDs
  expect_equal(wc.dlid_path_bits, 0, "dlid_path_bits");
  expect_header(lab, ends.b.memory.data(), wc.sl);
  expect_bytes({ends.b.memory.data() + kGrhBytes, 500}, std::byte{7}, "the data");
  expect_bytes({ends.b.memory.data() + kGrhBytes + 500, 100}, std::byte{0}, "what lies behind");
}

// The address of the sender is in the completion and the GRH: the answer finds its way.
void ud_answers(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UD);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 200));
  post_recv_ok(ends.a.qp.get(), 2, ends.a.sge(0, 200));
  send_datagram(ends, ah.get(), 10, 100);
  ibv_wc wc = expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
  auto* grh = reinterpret_cast<ibv_grh*>(ends.b.memory.data());
  const AhPtr back(
      must(ibv_create_ah_from_wc(lab.b().pd.get(), &wc, grh, kPort), "ibv_create_ah_from_wc"));
  SendRequest answer(IBV_WR_SEND, 11, ends.b.sge(kGrhBytes, 100));
  address(answer, back.get(), ends.a);
  post_ok(ends.b.qp.get(), answer);
  expect_completion(ends.a.recv_cq.get(), 2, {IBV_WC_SUCCESS});
  expect_completion(ends.b.send_cq.get(), 11, {IBV_WC_SUCCESS});
}

void ud_wrong_qkey(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UD);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 200));
  send_datagram(ends, ah.get(), 10, 100, kQkey + 1);
  send_datagram(ends, ah.get(), 11, 50);
  const ibv_wc wc = expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_equal(wc.byte_len, kGrhBytes + 50, "byte_len");
}

// IBTA vol 1, 10.2.5: a Q_Key with the highest bit set in the request means the QP's own.
void ud_controlled_qkey(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UD);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 200));
  send_datagram(ends, ah.get(), 10, 100, 0x80000001);
  expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
}

void ud_too_long_for_the_receive(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UD);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, kGrhBytes + 99));
  send_datagram(ends, ah.get(), 10, 100);
  send_datagram(ends, ah.get(), 11, 99);
  const ibv_wc wc = expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_equal(wc.byte_len, kGrhBytes + 99, "byte_len");
  expect_no_completion(ends.b.recv_cq.get());
  expect_state(ends.b.qp.get(), IBV_QPS_RTS);
}

void ud_longer_than_the_mtu(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UD);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  SendRequest request(IBV_WR_SEND, 1, ends.a.sge(0, (128u << lab.a().port.active_mtu) + 1));
  address(request, ah.get(), ends.b);
  expect_send_queue_error(ends.a, request, IBV_WC_LOC_LEN_ERR);
  expect_usable(lab, ends);
}

void ud_attributes(Lab& lab) {
  EndOptions options;
  options.type = IBV_QPT_UD;
  options.qkey = 0x1234567;
  options.rc.sq_psn = 0x345;
  const Ends ends = make_ends(lab, options);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  must(ibv_query_qp(ends.a.qp.get(), &attr, ~0, &init), "ibv_query_qp");
  expect_equal(attr.qp_state, IBV_QPS_RTS, "qp_state");
  expect_equal(attr.qkey, 0x1234567, "qkey");
  expect_equal(attr.sq_psn, 0x345, "sq_psn");
  expect_equal(attr.port_num, kPort, "port_num");
  expect_equal(attr.pkey_index, 0, "pkey_index");
  expect_equal(attr.cur_qp_state, IBV_QPS_RTS, "cur_qp_state");
  expect_equal(attr.sq_draining, 0, "sq_draining");
  expect_as_created(ends.a, attr, init);
}

void ud_write(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UD);
  SendRequest request(IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, 8));
  request.remote(ends.b.memory.address(), ends.b.mr->rkey);
  expect_send_queue_error(ends.a, request, IBV_WC_LOC_QP_OP_ERR);
  expect_usable(lab, ends);
}

void ud_bad_lkey(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UD);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  SendRequest request(IBV_WR_SEND, 1, ends.a.sge(0, 8));
  request.sge.lkey ^= 0xff;
  address(request, ah.get(), ends.b);
  expect_send_queue_error(ends.a, request, IBV_WC_LOC_PROT_ERR);
  expect_usable(lab, ends);
}

// ff12::1:77, or 224.0.1.77 where the devices speak IPv4.
ibv_gid multicast_group(const Device& device) {
  ibv_gid group{};
  if (is_ipv4(device.gid)) {
    group.raw[10] = group.raw[11] = 0xff;
    group.raw[12] = 224;
    group.raw[14] = 1;
  } else {
    group.raw[0] = 0xff;
    group.raw[1] = 0x12;
    group.raw[14] = 1;
  }
  group.raw[15] = 77;
  return group;
}

void ud_multicast(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UD);
  EndOptions options;
  options.type = IBV_QPT_UD;
  End third = make_end(lab.b(), options);
  to_init(third);
  to_rtr(third, ends.a);
  const ibv_gid group = multicast_group(lab.a());
  must(ibv_attach_mcast(ends.b.qp.get(), &group, 0), "ibv_attach_mcast");
  must(ibv_attach_mcast(third.qp.get(), &group, 0), "ibv_attach_mcast");
  const AhPtr ah = make_ah(lab.a(), group);
  for (End* end : {&ends.b, &third}) post_recv_ok(end->qp.get(), 1, end->sge(0, 200));
  SendRequest request(IBV_WR_SEND, 10, ends.a.sge(0, 100));
  address(request, ah.get(), ends.b);
  request.wr.wr.ud.remote_qpn = 0xffffff;
  post_ok(ends.a.qp.get(), request);
  expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
  for (End* end : {&ends.b, &third}) expect_completion(end->recv_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_errno(ibv_destroy_qp(third.qp.get()), {EBUSY}, "ibv_destroy_qp while attached");
  must(ibv_detach_mcast(ends.b.qp.get(), &group, 0), "ibv_detach_mcast");
  must(ibv_detach_mcast(third.qp.get(), &group, 0), "ibv_detach_mcast");
  expect_errno(ibv_detach_mcast(third.qp.get(), &group, 0), {EINVAL}, "detaching again");
}

}  // namespace

std::span<const Row> datagram_rows() {
  static constexpr Row kRows[] = {
      {"UD: every field of a completion", ud_arrives},
      {"UD: the answer finds its way by completion and GRH", ud_answers},
      {"UD: a wrong Q_Key is lost", ud_wrong_qkey},
      {"UD: a controlled Q_Key sends the QP's own", ud_controlled_qkey},
      {"UD: a message longer than the receive is lost, the receive stays",
       ud_too_long_for_the_receive},
      {"UD: a message longer than the MTU is a local length error", ud_longer_than_the_mtu},
      {"UD: ibv_query_qp gives every attribute back", ud_attributes},
      {"UD: no WRITE", ud_write},
      {"UD: a bad lkey is a local protection error; SQE is left for RTS", ud_bad_lkey},
      {"UD: multicast to every attached QP", ud_multicast},
  };
  return kRows;
}

}  // namespace rocemu::e2e
