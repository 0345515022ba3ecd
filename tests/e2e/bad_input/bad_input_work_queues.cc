// Rows of bad input about receive work queues, tables of them, and flows (ibv_create_wq(3),
// ibv_modify_wq(3), ibv_create_rwq_ind_table(3), ibv_create_flow(3)).
#include <array>
#include <cstring>

#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

using WqPtr = std::unique_ptr<ibv_wq, Destroyer<&ibv_destroy_wq>>;
using TablePtr = std::unique_ptr<ibv_rwq_ind_table, Destroyer<&ibv_destroy_rwq_ind_table>>;

// What a work queue on the device is made of.
struct WorkQueueParts {
  explicit WorkQueueParts(const Device& on)
      : device(on), cq(must(ibv_create_cq(on.context.get(), 16, nullptr, nullptr, 0), "CQ")) {
    attr.wq_type = IBV_WQT_RQ;
    attr.max_wr = 4;
    attr.max_sge = 1;
    attr.pd = on.pd.get();
    attr.cq = cq.get();
  }
  WqPtr make() { return WqPtr(ibv_create_wq(device.context.get(), &attr)); }
  WqPtr must_make() {
    return WqPtr(must(ibv_create_wq(device.context.get(), &attr), "ibv_create_wq"));
  }

  const Device& device;
  CqPtr cq;
  ibv_wq_init_attr attr{};
};

void work_queues_of_nothing(Lab& lab) {
  WorkQueueParts parts(lab.a());
  const auto refuse = [&](auto spoil, std::initializer_list<int> errnos, const char* what) {
    const ibv_wq_init_attr good = parts.attr;
    spoil(parts.attr);
    expect_refused(parts.make(), errnos, what);
    parts.attr = good;
  };
  using Attr = ibv_wq_init_attr;
  refuse([](Attr& attr) { attr.wq_type = static_cast<ibv_wq_type>(7); }, {EINVAL},
         "a WQ of type 7");
  refuse([](Attr& attr) { attr.max_wr = 0; }, {EINVAL}, "a WQ of no receives");
  refuse([](Attr& attr) { attr.max_wr = UINT32_MAX; }, {EINVAL}, "a WQ of 2^32 - 1 receives");
  refuse([](Attr& attr) { attr.max_sge = UINT32_MAX; }, {EINVAL}, "2^32 - 1 SGEs");
  refuse([](Attr& attr) { attr.pd = nullptr; }, {EINVAL}, "a WQ without a PD");
  refuse([](Attr& attr) { attr.cq = nullptr; }, {EINVAL}, "a WQ without a CQ");
  refuse([](Attr& attr) { attr.comp_mask = 0x8000; }, {EOPNOTSUPP, EINVAL}, "an unknown comp_mask");
  refuse(
      [](Attr& attr) {
        attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
        attr.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
      },
      {EOPNOTSUPP, EINVAL}, "a WQ that strips VLAN tags");
  refuse([&](Attr& attr) { attr.pd = lab.b().pd.get(); }, {EINVAL, ENOENT}, "another device's PD");
  parts.must_make();
}

void states_of_work_queues(Lab& lab) {
  WorkQueueParts parts(lab.a());
  const WqPtr wq = parts.must_make();
  const auto modify = [&](uint32_t mask, ibv_wq_state state, ibv_wq_state current) {
    ibv_wq_attr attr{};
    attr.attr_mask = mask;
    attr.wq_state = state;
    attr.curr_wq_state = current;
    return ibv_modify_wq(wq.get(), &attr);
  };
  constexpr uint32_t kBoth = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
  expect_errno(modify(IBV_WQ_ATTR_STATE, static_cast<ibv_wq_state>(9), IBV_WQS_RESET), {EINVAL},
               "state 9");
  expect_errno(modify(kBoth, IBV_WQS_RDY, IBV_WQS_ERR), {EINVAL}, "a state that it is not in");
  expect_errno(modify(0x40, IBV_WQS_RDY, IBV_WQS_RESET), {EOPNOTSUPP, EINVAL}, "an unknown mask");
  expect_errno(modify(IBV_WQ_ATTR_STATE, IBV_WQS_RDY, IBV_WQS_RESET), {0}, "RESET to RDY");
  expect_errno(modify(IBV_WQ_ATTR_STATE, IBV_WQS_ERR, IBV_WQS_RDY), {0}, "RDY to ERR");
  expect_errno(modify(IBV_WQ_ATTR_STATE, IBV_WQS_RDY, IBV_WQS_ERR), {EINVAL}, "ERR to RDY");
}

void tables_of_nothing(Lab& lab) {
  WorkQueueParts parts(lab.a());
  const WqPtr wq = parts.must_make();
  std::array<ibv_wq*, 4> queues{wq.get(), nullptr, wq.get(), wq.get()};
  ibv_rwq_ind_table_init_attr attr{};
  const auto make = [&] {
    return TablePtr(ibv_create_rwq_ind_table(lab.a().context.get(), &attr));
  };
  expect_refused(make(), {EINVAL}, "a table of no array");
  attr.ind_tbl = queues.data();
  attr.log_ind_tbl_size = 2;
  expect_refused(make(), {EINVAL}, "a table with a place of nothing");
  attr.log_ind_tbl_size = 31;
  expect_refused(make(), {EINVAL}, "a table of 2^31 places");
  attr.log_ind_tbl_size = 0;
  attr.comp_mask = 1;
  expect_refused(make(), {EINVAL, EOPNOTSUPP}, "an unknown comp_mask");
  attr.comp_mask = 0;
  const TablePtr table = make();
  if (!table) fail("a table of one queue: errno %d", errno);
  expect_errno(ibv_destroy_wq(wq.get()), {EBUSY}, "destroying a WQ that a table holds");
}

void wrong_hashes(Lab& lab) {
  WorkQueueParts parts(lab.a());
  const WqPtr wq = parts.must_make();
  ibv_wq* queues[] = {wq.get()};
  ibv_rwq_ind_table_init_attr table_attr{};
  table_attr.ind_tbl = queues;
  const TablePtr table(
      must(ibv_create_rwq_ind_table(lab.a().context.get(), &table_attr), "a table"));
  uint8_t key[40] = {};
  const auto refuse = [&](const ibv_rx_hash_conf& hash, std::initializer_list<int> errnos,
                          const char* what) {
    ibv_qp_init_attr_ex init{};
    init.qp_type = IBV_QPT_RAW_PACKET;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    init.pd = lab.a().pd.get();
    init.rwq_ind_tbl = table.get();
    init.rx_hash_conf = hash;
    expect_refused(QpPtr(ibv_create_qp_ex(lab.a().context.get(), &init)), errnos, what);
  };
  constexpr uint8_t kToeplitz = IBV_RX_HASH_FUNC_TOEPLITZ;
  refuse({kToeplitz, sizeof key, nullptr, IBV_RX_HASH_SRC_IPV4}, {EINVAL}, "no key");
  refuse({kToeplitz, 39, key, IBV_RX_HASH_SRC_IPV4}, {EINVAL}, "a key that is too short");
  refuse({kToeplitz, 255, key, IBV_RX_HASH_SRC_IPV4}, {EINVAL}, "a key that is too long");
  refuse({9, sizeof key, key, IBV_RX_HASH_SRC_IPV4}, {EOPNOTSUPP, EINVAL}, "hash function 9");
  refuse({kToeplitz, sizeof key, key, uint64_t{1} << 40}, {EOPNOTSUPP, EINVAL}, "an unknown field");
}

void domain_of_a_table(Lab& lab) {
  ibv_context* const context = lab.a().context.get();
  WorkQueueParts parts(lab.a());
  const WqPtr wq = parts.must_make();
  ibv_wq* queues[] = {wq.get()};
  ibv_rwq_ind_table_init_attr table_attr{};
  table_attr.ind_tbl = queues;
  const TablePtr table(must(ibv_create_rwq_ind_table(context, &table_attr), "a table"));
  uint8_t key[40] = {};
  PdPtr pd(must(ibv_alloc_pd(context), "ibv_alloc_pd"));
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  init.pd = pd.get();
  init.rwq_ind_tbl = table.get();
  init.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof key, key, IBV_RX_HASH_SRC_IPV4};
  const QpPtr qp(must(ibv_create_qp_ex(context, &init), "a QP of a table"));
  expect_errno(ibv_dealloc_pd(pd.get()), {EBUSY}, "the PD of a QP of a table");
}

void sizes_of_a_work_queue(Lab& lab) {
  WorkQueueParts parts(lab.a());
  parts.attr.max_wr = 5;
  const WqPtr wq = parts.must_make();
  ibv_wq_attr ready{};
  ready.attr_mask = IBV_WQ_ATTR_STATE;
  ready.wq_state = IBV_WQS_RDY;
  must(ibv_modify_wq(wq.get(), &ready), "ibv_modify_wq");
  ibv_recv_wr request{}, *bad = nullptr;
  uint32_t posted = 0;
  while (posted < 1000 && ibv_post_wq_recv(wq.get(), &request, &bad) == 0) ++posted;
  if (posted != parts.attr.max_wr) fail("max_wr is %u, and %u fit", parts.attr.max_wr, posted);
}

// A flow whose specs end where memory does not.
struct FlowBytes {
  ibv_flow_attr attr{};
  ibv_flow_spec_eth eth{};
};

void wrong_flows(Lab& lab) {
  WorkQueueParts parts(lab.a());
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = parts.cq.get();
  init.cap = {4, 4, 1, 1, 0};
  init.qp_type = IBV_QPT_RAW_PACKET;
  const QpPtr qp(must(ibv_create_qp(lab.a().pd.get(), &init), "a raw packet QP"));
  const auto refuse = [&](auto spoil, std::initializer_list<int> errnos, const char* what) {
    FlowBytes flow;
    flow.attr.size = sizeof flow;
    flow.attr.num_of_specs = 1;
    flow.attr.port = 1;
    flow.eth.type = IBV_FLOW_SPEC_ETH;
    flow.eth.size = sizeof flow.eth;
    spoil(flow);
    expect_refused(FlowPtr(ibv_create_flow(qp.get(), &flow.attr)), errnos, what);
  };
  refuse([](FlowBytes& flow) { flow.attr.comp_mask = 1; }, {EOPNOTSUPP, EINVAL}, "a comp_mask");
  refuse([](FlowBytes& flow) { flow.attr.flags = 1u << 31; }, {EOPNOTSUPP, EINVAL}, "a flag");
  refuse([](FlowBytes& flow) { flow.attr.port = 0; }, {EINVAL}, "port 0");
  refuse([](FlowBytes& flow) { flow.attr.port = 255; }, {EINVAL}, "port 255");
  refuse([](FlowBytes& flow) { flow.attr.size = 1; }, {EINVAL}, "a size of 1");
  refuse([](FlowBytes& flow) { flow.attr.num_of_specs = 255; }, {EINVAL}, "specs beyond the size");
  refuse([](FlowBytes& flow) { flow.eth.size = 0; }, {EINVAL}, "a spec of no size");
  refuse([](FlowBytes& flow) { flow.eth.size = 0xffff; }, {EINVAL}, "a spec of 65535 bytes");
  refuse([](FlowBytes& flow) { flow.eth.type = static_cast<ibv_flow_spec_type>(0x7777); },
         {EOPNOTSUPP, EINVAL}, "a spec of an unknown type");
  refuse([](FlowBytes& flow) { flow.attr.type = static_cast<ibv_flow_attr_type>(77); },
         {EINVAL, EOPNOTSUPP}, "a flow of an unknown kind");
}

}  // namespace

std::span<const Row> work_queue_rows() {
  static constexpr Row kRows[] = {
      {"work queues of no kind, no size, no parts", work_queues_of_nothing},
      {"work queues: states that there are not", states_of_work_queues},
      {"tables of work queues that lack one, or are too large", tables_of_nothing},
      {"hashes with wrong keys, functions and fields", wrong_hashes},
      {"the domain of a QP of such a table is kept", domain_of_a_table},
      {"work queues take as many receives as they say", sizes_of_a_work_queue},
      {"flows with wrong sizes, ports and specs", wrong_flows},
  };
  return kRows;
}

}  // namespace rocemu::e2e
