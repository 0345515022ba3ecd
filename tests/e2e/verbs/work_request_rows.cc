// The work-request API of ibv_qp_ex, every opcode and setter of it, and what it refuses
// (ibv_wr_post(3), ibv_create_qp_ex(3)); the rate at which they are sent
// (ibv_modify_qp_rate_limit(3)).
#include <arpa/inet.h>

#include <cstring>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr uint64_t kOfReliable = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
constexpr uint64_t kOfDatagrams = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

Ends make_ex_ends(Lab& lab, ibv_qp_type type, uint64_t send_ops) {
  EndOptions options;
  options.type = type;
  options.send_ops = send_ops;
  options.max_inline_bytes = 64;
  return make_ends(lab, options);
}

ibv_qp_ex* extended(const End& end) {
  return must(ibv_qp_to_qp_ex(end.qp.get()), "ibv_qp_to_qp_ex");
}

void number(ibv_qp_ex* qp, uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
  qp->wr_id = wr_id;
  qp->wr_flags = flags;
}

void set_sge(ibv_qp_ex* qp, const ibv_sge& sge) {
  ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
}

// All opcodes of RC in one go, each with its effect.
void every_opcode(Lab& lab) {
  Ends ends = make_ex_ends(lab, IBV_QPT_RC, kOfReliable);
  End &a = ends.a, &b = ends.b;
  constexpr size_t kWritten = 4096, kAtomic = 8192, kRead = 12288;
  a.fill(std::byte{1});
  b.fill(std::byte{0});
  b.set_word(kAtomic, 100);
  b.set_word(kRead, 0x55);
  for (const uint64_t id : {1, 2, 3}) post_recv_ok(b.qp.get(), id, b.sge(512 * id, 512));

  ibv_qp_ex* qp = extended(a);
  const uint64_t target = b.memory.address();
  const uint32_t rkey = b.mr->rkey;
  ibv_wr_start(qp);
  number(qp, 10);
  ibv_wr_send(qp);
  set_sge(qp, a.sge(0, 100));
  number(qp, 11);
  ibv_wr_send_imm(qp, htonl(0xaa));
  set_sge(qp, a.sge(0, 200));
  number(qp, 12);
  ibv_wr_rdma_write(qp, rkey, target + kWritten);
  set_sge(qp, a.sge(0, 300));
  number(qp, 13);
  ibv_wr_rdma_write_imm(qp, rkey, target + kWritten + 300, htonl(0xbb));
  set_sge(qp, a.sge(0, 300));
  number(qp, 14);
  ibv_wr_rdma_read(qp, rkey, target + kRead);
  set_sge(qp, a.sge(1024, 8));
  number(qp, 15);
  ibv_wr_atomic_fetch_add(qp, rkey, target + kAtomic, 5);
  set_sge(qp, a.sge(1032, 8));
  number(qp, 16);
  ibv_wr_atomic_cmp_swp(qp, rkey, target + kAtomic, 105, 7);
  set_sge(qp, a.sge(1040, 8));
  must(ibv_wr_complete(qp), "ibv_wr_complete");

  const ibv_wc_opcode opcodes[] = {IBV_WC_SEND,       IBV_WC_SEND,      IBV_WC_RDMA_WRITE,
                                   IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_FETCH_ADD,
                                   IBV_WC_COMP_SWAP};
  for (uint64_t i = 0; i < std::size(opcodes); ++i) {
    const ibv_wc wc = expect_completion(a.send_cq.get(), 10 + i, {IBV_WC_SUCCESS});
    expect_equal(wc.opcode, opcodes[i], "opcode");
  }
  expect_equal(expect_completion(b.recv_cq.get(), 1, {IBV_WC_SUCCESS}).byte_len, 100, "byte_len");
  ibv_wc wc = expect_completion(b.recv_cq.get(), 2, {IBV_WC_SUCCESS});
  expect_equal(ntohl(wc.imm_data), 0xaa, "imm_data of the SEND");
  wc = expect_completion(b.recv_cq.get(), 3, {IBV_WC_SUCCESS});
  expect_equal(ntohl(wc.imm_data), 0xbb, "imm_data of the WRITE");
  expect_bytes({b.memory.data() + kWritten, 600}, std::byte{1}, "what was written");
  expect_equal(a.word(1024), 0x55, "what was read");
  expect_equal(a.word(1032), 100, "what the addition saw");
  expect_equal(a.word(1040), 105, "what the swap saw");
  expect_equal(b.word(kAtomic), 7, "the cell");
}

void every_setter(Lab& lab) {
  Ends ends = make_ex_ends(lab, IBV_QPT_RC, kOfReliable);
  End &a = ends.a, &b = ends.b;
  a.fill(std::byte{4});
  b.fill(std::byte{0});
  ibv_qp_ex* qp = extended(a);
  const auto write_to = [&](uint64_t wr_id, size_t offset) {
    number(qp, wr_id);
    ibv_wr_rdma_write(qp, b.mr->rkey, b.memory.address() + offset);
  };
  ibv_wr_start(qp);
  write_to(1, 0);
  const ibv_sge list[] = {a.sge(0, 10), a.sge(4096, 20)};
  ibv_wr_set_sge_list(qp, 2, list);
  write_to(2, 100);
  std::byte mine[32];
  std::memset(mine, 4, sizeof mine);
  ibv_wr_set_inline_data(qp, mine, sizeof mine);
  write_to(3, 200);
  const ibv_data_buf pieces[] = {{mine, 30}, {mine, 0}, {mine, 32}};
  ibv_wr_set_inline_data_list(qp, 3, pieces);
  write_to(4, 300);
  ibv_wr_set_sge_list(qp, 0, nullptr);
  must(ibv_wr_complete(qp), "ibv_wr_complete");
  std::memset(mine, 5, sizeof mine);  // the program's own again
  for (const uint64_t id : {1, 2, 3, 4}) expect_completion(a.send_cq.get(), id, {IBV_WC_SUCCESS});
  for (const auto& [offset, bytes] : {std::pair{0, 30}, {100, 32}, {200, 62}, {300, 0}}) {
    expect_bytes({b.memory.data() + offset, static_cast<size_t>(bytes)}, std::byte{4},
                 "the target");
    expect_bytes({b.memory.data() + offset + bytes, 8}, std::byte{0}, "what lies behind");
  }
}

void datagrams(Lab& lab) {
  Ends ends = make_ex_ends(lab, IBV_QPT_UD, kOfDatagrams);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  for (const uint64_t id : {1, 2}) post_recv_ok(ends.b.qp.get(), id, ends.b.sge(0, 200));
  ibv_qp_ex* qp = extended(ends.a);
  ibv_wr_start(qp);
  for (const uint64_t id : {10, 11}) {
    number(qp, id);
    if (id == 10)
      ibv_wr_send(qp);
    else
      ibv_wr_send_imm(qp, htonl(3));
    ibv_wr_set_ud_addr(qp, ah.get(), ends.b.qp->qp_num, kQkey);
    set_sge(qp, ends.a.sge(0, 100));
  }
  must(ibv_wr_complete(qp), "ibv_wr_complete");
  for (const uint64_t id : {10, 11}) expect_completion(ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
  // In any order: datagrams may overtake each other.
  uint32_t immediates = 0;
  for (const uint64_t id : {1, 2}) {
    const ibv_wc wc = expect_completion(ends.b.recv_cq.get(), id, {IBV_WC_SUCCESS});
    if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) immediates += ntohl(wc.imm_data);
  }
  expect_equal(immediates, 3, "imm_data");
}

void abandoned(Lab& lab) {
  Ends ends = make_ex_ends(lab, IBV_QPT_RC, kOfReliable);
  ibv_qp_ex* qp = extended(ends.a);
  const auto write = [&](uint64_t wr_id) {
    number(qp, wr_id);
    ibv_wr_rdma_write(qp, ends.b.mr->rkey, ends.b.memory.address());
    set_sge(qp, ends.a.sge(0, 8));
  };
  ibv_wr_start(qp);
  write(1);
  write(2);
  ibv_wr_abort(qp);
  ibv_wr_start(qp);
  write(3);
  must(ibv_wr_complete(qp), "ibv_wr_complete");
  expect_completion(ends.a.send_cq.get(), 3, {IBV_WC_SUCCESS});
  expect_no_completion(ends.a.send_cq.get());
}

// One wrong request takes all of them back, and the error is told at the end.
void all_or_nothing(Lab& lab) {
  Ends ends = make_ex_ends(lab, IBV_QPT_RC, kOfReliable);
  ibv_qp_ex* qp = extended(ends.a);
  const auto write = [&](uint64_t wr_id) {
    number(qp, wr_id);
    ibv_wr_rdma_write(qp, ends.b.mr->rkey, ends.b.memory.address());
  };
  std::vector<std::byte> much(size_t{1} << 16);
  ibv_wr_start(qp);
  write(1);
  set_sge(qp, ends.a.sge(0, 8));
  write(2);
  ibv_wr_set_inline_data(qp, much.data(), much.size());
  expect_errno(ibv_wr_complete(qp), {EINVAL, ENOMEM}, "too much inline data");
  ibv_wr_start(qp);
  for (uint64_t i = 0; i < 100'000; ++i) {
    write(i);
    set_sge(qp, ends.a.sge(0, 8));
  }
  expect_errno(ibv_wr_complete(qp), {ENOMEM}, "more requests than the queue holds");
  const std::vector<ibv_sge> list(1000, ends.a.sge(0, 8));
  ibv_wr_start(qp);
  write(1);
  ibv_wr_set_sge_list(qp, list.size(), list.data());
  expect_errno(ibv_wr_complete(qp), {EINVAL, ENOMEM}, "too many SGEs");
  expect_no_completion(ends.a.send_cq.get());
  ibv_wr_start(qp);
  write(5);
  set_sge(qp, ends.a.sge(0, 8));
  must(ibv_wr_complete(qp), "ibv_wr_complete");
  expect_completion(ends.a.send_cq.get(), 5, {IBV_WC_SUCCESS});
}

void operations_refused(Lab& lab) {
  const auto try_type = [&lab](ibv_qp_type type, uint64_t send_ops, const char* what) {
    const CqPtr cq(
        must(ibv_create_cq(lab.a().context.get(), 4, nullptr, nullptr, 0), "ibv_create_cq"));
    ibv_qp_init_attr_ex init{};
    init.qp_type = type;
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {4, 4, 1, 1, 0};
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = lab.a().pd.get();
    init.send_ops_flags = send_ops;
    expect_refused(QpPtr(ibv_create_qp_ex(lab.a().context.get(), &init)), {EINVAL, EOPNOTSUPP},
                   what);
  };
  try_type(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE, "WRITEs of a UD QP");
  try_type(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ, "READs of a UC QP");
  try_type(IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, "atomics of a UC QP");
  try_type(IBV_QPT_RC, uint64_t{1} << 50, "unknown operations");
}

// Without send_ops_flags there is none of it.
void not_asked_for(Lab& lab) {
  const End end = make_end(lab.a(), {});
  if (ibv_qp_to_qp_ex(end.qp.get()) != nullptr)
    fail("a QP has the work-request API without being asked for it");
}

// ---- packet pacing ----

constexpr uint32_t kRateKbps = 80'000;  // 10 kB in a millisecond

// How long `bytes` of WRITEs take at that rate, in milliseconds.
double time_writes(Ends& ends, uint32_t bytes) {
  constexpr uint32_t kWriteBytes = 20'000;
  const auto before = Clock::now();
  for (uint32_t sent = 0; sent < bytes; sent += kWriteBytes) {
    post(ends.a, IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, kWriteBytes), ends.b);
    expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  }
  return std::chrono::duration<double, std::milli>(Clock::now() - before).count();
}

void paced(Lab& lab) {
  ibv_device_attr_ex device{};
  must(ibv_query_device_ex(lab.a().context.get(), nullptr, &device), "ibv_query_device_ex");
  if ((device.packet_pacing_caps.supported_qpts & 1u << IBV_QPT_RC) == 0)
    throw Skipped("the device paces no RC QPs");
  Ends ends = make_ends(lab, IBV_QPT_RC);
  ibv_qp_rate_limit_attr limit{};
  limit.rate_limit = kRateKbps;
  limit.max_burst_sz = 10'000;
  must(ibv_modify_qp_rate_limit(ends.a.qp.get(), &limit), "ibv_modify_qp_rate_limit");
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  must(ibv_query_qp(ends.a.qp.get(), &attr, IBV_QP_RATE_LIMIT, &init), "ibv_query_qp");
  expect_equal(attr.rate_limit, kRateKbps, "rate_limit");
  // A burst and one frame are ahead of the rate.
  const double paced_ms = time_writes(ends, 200'000);
  if (paced_ms < 18) fail("200 kB at 10 kB/ms took %.1f ms", paced_ms);
  limit = {};
  must(ibv_modify_qp_rate_limit(ends.a.qp.get(), &limit), "ibv_modify_qp_rate_limit to none");
  time_writes(ends, 2'000'000);  // which would take 200 ms
}

void pacing_refused(Lab& lab) {
  ibv_device_attr_ex device{};
  must(ibv_query_device_ex(lab.a().context.get(), nullptr, &device), "ibv_query_device_ex");
  if (device.packet_pacing_caps.supported_qpts == 0) throw Skipped("the device paces no QPs");
  Ends ends = make_ends(lab, IBV_QPT_RC);
  ibv_qp_rate_limit_attr limit{};
  limit.comp_mask = 1;
  expect_errno(ibv_modify_qp_rate_limit(ends.a.qp.get(), &limit), {EINVAL, EOPNOTSUPP},
               "an unknown comp_mask");
  limit.comp_mask = 0;
  limit.rate_limit = device.packet_pacing_caps.qp_rate_limit_max + 1;
  expect_errno(ibv_modify_qp_rate_limit(ends.a.qp.get(), &limit), {EINVAL}, "too high a rate");
  const End fresh = make_end(lab.a(), {});
  limit.rate_limit = kRateKbps;
  expect_errno(ibv_modify_qp_rate_limit(fresh.qp.get(), &limit), {EINVAL}, "a QP in RESET");
}

}  // namespace

std::span<const Row> work_request_rows() {
  static constexpr Row kRows[] = {
      {"work requests: every opcode of RC in one batch", every_opcode},
      {"work requests: every setter of data", every_setter},
      {"work requests: datagrams", datagrams},
      {"work requests: abandoned", abandoned},
      {"work requests: a wrong one takes all of them back", all_or_nothing},
      {"work requests: operations that the service has not", operations_refused},
      {"work requests: not without being asked for", not_asked_for},
      {"packet pacing: no faster than the rate", paced},
      {"packet pacing: unknown masks, rates, states", pacing_refused},
  };
  return kRows;
}

}  // namespace rocemu::e2e
