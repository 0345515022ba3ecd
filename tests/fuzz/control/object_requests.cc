#include "tests/fuzz/control/object_requests.h"

#include <algorithm>
#include <iterator>

#include "emulator/daemon/control/conversions.h"
#include "tests/fuzz/control/client.h"
#include "tests/fuzz/nic/loopback.h"
#include "verbs_shim/abi/import.h"
#include "verbs_shim/abi/memory.h"
#include "verbs_shim/abi/services.h"

namespace rocemu::fuzz {

namespace {

rocemu_rereg_mr draw_rereg_mr(ByteSource& input) {
  rocemu_rereg_mr m{};
  m.mr = draw_handle(input);
  m.flags = input.below(9);
  m.pd = draw_handle(input);
  m.access = input.pick<uint32_t>({15, 1, 0, 2, 0x10, 0x20});
  m.address = m.iova = Client::kAddress + input.u8() * 8u;
  m.length_bytes = input.pick<uint64_t>({4096, 0, 1ull << 47, ~0ull});
  return m;
}

rocemu_reg_dm_mr draw_reg_dm_mr(ByteSource& input) {
  rocemu_reg_dm_mr m{};
  m.pd = draw_handle(input);
  m.dm = draw_handle(input);
  m.access = input.pick<uint32_t>({0x2f, 0x21, 15});
  m.offset_bytes = input.pick<uint64_t>({0, 64, 5000, ~0ull});
  m.length_bytes = input.pick<uint64_t>({64, 4096, 0, ~0ull});
  return m;
}

rocemu_create_ah draw_create_ah(ByteSource& input, const device::HcaConfig& config) {
  rocemu_create_ah m{};
  m.pd = draw_handle(input);
  m.attr = daemon::from_qp_attr(attributes_for(config, 0)).ah;
  if (input.u8() >= 0xe0) m.attr.sgid_index = input.u8();
  if (input.u8() >= 0xe0) m.attr.dgid[input.below(16)] ^= input.u8();
  return m;
}

rocemu_create_srq draw_create_srq(ByteSource& input) {
  rocemu_create_srq m{};
  m.pd = draw_handle(input);
  m.srq_type =
      input.pick<uint32_t>({ROCEMU_SRQ_BASIC, ROCEMU_SRQ_XRC, ROCEMU_SRQ_TM, ROCEMU_SRQ_XRC});
  m.max_wr = input.pick<uint32_t>({4, 0, 64, 65, 0xffffffff});
  m.max_sge = input.pick<uint32_t>({1, 0, 4, 5});
  if (m.srq_type == ROCEMU_SRQ_XRC) m.xrcd = draw_handle(input);
  if (m.srq_type != ROCEMU_SRQ_BASIC) m.cq = draw_handle(input);
  if (m.srq_type == ROCEMU_SRQ_TM) m.max_tags = input.pick<uint32_t>({4, 0, 256, 257});
  return m;
}

rocemu_change_tags draw_change_tags(ByteSource& input) {
  rocemu_change_tags m{};
  m.srq = draw_handle(input);
  m.operation = input.below(4);
  m.flags = input.below(5);
  m.unexpected = input.below(3);
  m.handle = input.below(8);
  m.tag = input.below(4);
  m.mask = input.u8();
  m.num_sge = input.pick<uint32_t>({1, 0, 16, 17});
  for (rocemu_sge& sge : m.sges) sge.length_bytes = input.pick<uint32_t>({64, 0, 0xffffffff});
  return m;
}

rocemu_mcast draw_mcast(ByteSource& input) {
  rocemu_mcast m{};
  m.qp = draw_handle(input);
  m.gid[0] = 0xff;
  m.gid[1] = 0x0e;
  m.gid[15] = static_cast<uint8_t>(input.below(5));
  return m;
}

rocemu_open_qp draw_open_qp(ByteSource& input, const Model& model) {
  rocemu_open_qp m{};
  m.xrcd = draw_handle(input);
  // The QP of another program has a number close by.
  m.qp_num = (model.qps.empty() ? 0 : model.qps.begin()->second.qpn) + input.below(4) - 1;
  return m;
}

rocemu_check_prefetch draw_check_prefetch(ByteSource& input, const Model& model) {
  rocemu_check_prefetch m{};
  m.pd = draw_handle(input);
  m.lkey = model.mrs.empty() ? 0 : model.mrs.rbegin()->second.key;
  m.iova = Client::kAddress + input.u8();
  m.length_bytes = input.pick<uint64_t>({0, 64, ~0ull});
  m.for_writing = input.flag();
  return m;
}

template <class Message>
std::vector<std::byte> about(uint32_t handle, uint32_t Message::*name, uint32_t Message::*other,
                             uint32_t value) {
  Message m{};
  m.*name = handle;
  m.*other = value;
  return as_bytes(m);
}

rocemu_limit_qp_rate draw_rate(ByteSource& input) {
  rocemu_limit_qp_rate m{};
  m.qp = draw_handle(input);
  m.rate_kbps = input.pick<uint32_t>({1000, 0, 1, 0xffffffff});
  m.max_burst_bytes = input.pick<uint32_t>({0, 1, 65536, 0xffffffff});
  return m;
}

// Fields that frames of the fuzzed device have, or any; to one QP, several, or too many.
rocemu_create_flow draw_flow(ByteSource& input, const Model& model) {
  rocemu_create_flow m{};
  m.kind = input.pick<uint32_t>({0, 0, 1, 2, 3, 4});
  m.flags = input.below(4);
  m.tag = input.u8();
  m.counters = input.flag() ? draw_handle(input) : 0;
  m.hash_fields = input.pick<uint32_t>({0, 3, 0xf, 0xff, 0xffffffff});
  m.priority = input.u8();
  m.qp_count = input.pick<uint16_t>({1, 1, 1, 2, 4, 0, 3, 128, 129, 0xffff});
  uint32_t qp = draw_handle(input);
  for (const auto& [handle, made] : model.qps)
    if (made.takes_flows) qp = handle;
  std::fill(std::begin(m.qps), std::end(m.qps), qp);
  m.qps[1] = draw_handle(input);
  m.mask.ip_version = m.value.ip_version = static_cast<uint8_t>(input.pick<uint32_t>({0, 4, 6}));
  m.mask.destination_mac[input.below(6)] = input.u8();
  return m;
}

}  // namespace

uint32_t draw_handle(ByteSource& input) {
  const uint8_t choice = input.u8();
  return choice < 0xf8 ? 1 + choice % 4u : choice == 0xff ? input.u32() : choice % 8u;
}

std::vector<std::byte> draw_object_request(ByteSource& input, uint32_t op,
                                           const device::HcaConfig& config, const Model& model) {
  switch (op) {
    case ROCEMU_OP_REREG_MR:
      return as_bytes(draw_rereg_mr(input));
    case ROCEMU_OP_REG_DM_MR:
      return as_bytes(draw_reg_dm_mr(input));
    case ROCEMU_OP_CREATE_AH:
      return as_bytes(draw_create_ah(input, config));
    case ROCEMU_OP_CREATE_SRQ:
      return as_bytes(draw_create_srq(input));
    case ROCEMU_OP_CHANGE_TAGS:
      return as_bytes(draw_change_tags(input));
    case ROCEMU_OP_ATTACH_MCAST:
    case ROCEMU_OP_DETACH_MCAST:
      return as_bytes(draw_mcast(input));
    case ROCEMU_OP_LIMIT_QP_RATE:
      return as_bytes(draw_rate(input));
    case ROCEMU_OP_CREATE_FLOW:
      return as_bytes(draw_flow(input, model));
    case ROCEMU_OP_OPEN_QP:
      return as_bytes(draw_open_qp(input, model));
    case ROCEMU_OP_CHECK_PREFETCH:
      return as_bytes(draw_check_prefetch(input, model));
    case ROCEMU_OP_ALLOC_MW:
      return about(draw_handle(input), &rocemu_alloc_mw::pd, &rocemu_alloc_mw::type,
                   input.below(4));
    case ROCEMU_OP_RESIZE_CQ:
      return about(draw_handle(input), &rocemu_resize_cq::cq, &rocemu_resize_cq::cqe,
                   input.pick<uint32_t>({8, 1, 128, 129, 0}));
    case ROCEMU_OP_MODERATE_CQ: {
      rocemu_moderate_cq m{};
      m.cq = draw_handle(input);
      m.count = input.pick<uint16_t>({2, 0, 0xffff});
      m.period_us = input.pick<uint16_t>({1, 0, 0xffff});
      return as_bytes(m);
    }
    case ROCEMU_OP_RESIZE_SRQ: {
      rocemu_resize_srq m{};
      m.srq = draw_handle(input);
      m.max_wr = input.pick<uint32_t>({8, 1, 64, 0, 0xffffffff});
      m.max_sge = input.pick<uint32_t>({1, 2, 0, 0xffffffff});
      return as_bytes(m);
    }
    case ROCEMU_OP_IMPORT_MR:
      return about(draw_handle(input), &rocemu_import_mr::pd, &rocemu_import_mr::mr,
                   draw_handle(input));
    case ROCEMU_OP_MODIFY_SRQ:
    case ROCEMU_OP_QUERY_SRQ:
      return about(draw_handle(input), &rocemu_srq_limit::srq, &rocemu_srq_limit::limit,
                   input.pick<uint32_t>({2, 0, 64, 0xffffffff}));
    case ROCEMU_OP_ALLOC_DM: {
      rocemu_alloc_dm m{};
      m.length_bytes = input.pick<uint64_t>({64, 4096, 0, 8192, ~0ull});
      return as_bytes(m);
    }
    case ROCEMU_OP_JOIN_CONTEXT: {
      rocemu_join_context m{};
      m.token[0] = input.below(3);
      return as_bytes(m);
    }
    case ROCEMU_OP_OPEN_XRCD: {
      rocemu_open_xrcd m{};
      m.flags = input.below(5);
      return as_bytes(m);
    }
    default: {
      rocemu_handle_message m{};
      m.handle = draw_handle(input);
      return as_bytes(m);
    }
  }
}

}  // namespace rocemu::fuzz
