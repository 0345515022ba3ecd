#include "tests/fuzz/control/datagram.h"

#include <cstring>

#include "emulator/daemon/control/conversions.h"
#include "tests/fuzz/control/client.h"
#include "tests/fuzz/control/object_requests.h"
#include "tests/fuzz/nic/loopback.h"
#include "verbs_shim/abi/control.h"
#include "verbs_shim/abi/import.h"
#include "verbs_shim/abi/inspect.h"
#include "verbs_shim/abi/memory.h"

namespace rocemu::fuzz {

namespace {

rocemu_reg_mr draw_reg_mr(ByteSource& input) {
  rocemu_reg_mr m{};
  m.pd = draw_handle(input);
  m.access = input.pick<uint32_t>({15, 1, 0, 7, 2, 0x20, 0x100, 0x80, 0x3ff0000f});
  m.address = Client::kAddress + input.u8() * 8u;
  m.length_bytes = input.pick<uint64_t>({4096, 0, 1, 1ull << 47, ~0ull});
  m.iova = input.flag() ? m.address : input.pick<uint64_t>({0, ~0ull - 4095});
  return m;
}

rocemu_create_cq draw_create_cq(ByteSource& input) {
  rocemu_create_cq m{};
  m.cqe = input.pick<uint32_t>({8, 1, 0, 128, 129, 3, 0xffffffff});
  m.channel = input.flag() ? draw_handle(input) : 0;
  m.comp_vector = input.below(5);
  return m;
}

rocemu_create_qp draw_create_qp(ByteSource& input) {
  rocemu_create_qp m{};
  m.pd = draw_handle(input);
  m.send_cq = draw_handle(input);
  m.recv_cq = draw_handle(input);
  m.qp_type = input.pick<uint32_t>({2, 2, 3, 4, 4, 9, 10, 8, 0xffff});
  m.max_send_wr = input.pick<uint32_t>({4, 0, 1, 64, 65, 0xffffffff});
  m.max_recv_wr = input.pick<uint32_t>({4, 0, 1, 64, 65, 0xffffffff});
  m.max_send_sge = input.pick<uint32_t>({1, 0, 8, 9});
  m.max_recv_sge = input.pick<uint32_t>({1, 0, 8, 9});
  m.max_inline_data = input.pick<uint32_t>({0, 64, 256, 257});
  m.srq = input.u8() < 0xc0 ? 0 : draw_handle(input);
  m.xrcd = m.qp_type == 10 || input.u8() >= 0xf0 ? draw_handle(input) : 0;
  if (m.qp_type == 8) m.max_tso_header = input.pick<uint32_t>({0, 100, 1024, 1025});
  return m;
}

rocemu_modify_qp change_state(const device::HcaConfig& config, uint32_t handle, uint32_t to,
                              uint32_t peer_qpn) {
  rocemu_modify_qp m{};
  m.qp = handle;
  m.attr = daemon::from_qp_attr(attributes_for(config, peer_qpn));
  m.attr.qp_state = to;
  m.attr_mask = to == 1   ? kToInit
                : to == 2 ? kToReceive
                : to == 3 ? kToSend
                          : uint32_t{device::kState};
  return m;
}

// A change that takes the QP a state further, or another one.
rocemu_modify_qp draw_modify_qp(ByteSource& input, const device::HcaConfig& config,
                                const Model& model) {
  const uint32_t handle = draw_handle(input);
  const auto qp = model.qps.find(handle);
  const auto peer = model.qps.find(draw_handle(input));
  const uint32_t from = qp != model.qps.end() ? qp->second.state : 0;
  const uint8_t choice = input.u8();
  rocemu_modify_qp m = change_state(config, handle, choice < 0x80 ? from + 1 : choice % 8u,
                                    peer != model.qps.end() ? peer->second.qpn : 0xabcdef);
  if (choice % 4 == 3) m.attr_mask ^= 1u << input.below(32);
  if (choice % 8 == 5) m.attr_mask = device::kState | device::kMaxQpRdAtomic | device::kTimeout;
  if (choice % 16 == 9) {  // an alternate path, and what is asked of it
    m.attr_mask = device::kAltPath | (choice < 0x40 ? device::kPathMigState : 0u);
    m.attr.alt_ah = m.attr.ah;
    m.attr.alt_port_num = m.attr.port_num;
    m.attr.path_mig_state = choice / 16 % 4;
  }
  return m;
}

std::vector<std::byte> draw_request(ByteSource& input, uint32_t op, const device::HcaConfig& config,
                                    const Model& model) {
  switch (op) {
    case ROCEMU_OP_HELLO: {
      rocemu_hello m{};
      m.magic = ROCEMU_ABI_MAGIC;
      m.abi_version = ROCEMU_ABI_VERSION;
      return as_bytes(m);
    }
    case ROCEMU_OP_QUERY_PORT:
      return as_bytes(rocemu_query_port{});
    case ROCEMU_OP_REG_MR:
      return as_bytes(draw_reg_mr(input));
    case ROCEMU_OP_REG_FILE_MR: {
      rocemu_reg_file_mr m{};
      m.pd = draw_handle(input);
      m.length_bytes = 4096;
      return as_bytes(m);
    }
    case ROCEMU_OP_CREATE_CQ:
      return as_bytes(draw_create_cq(input));
    case ROCEMU_OP_CREATE_QP:
      return as_bytes(draw_create_qp(input));
    case ROCEMU_OP_MODIFY_QP:
      return as_bytes(draw_modify_qp(input, config, model));
    case ROCEMU_OP_QUERY_DEVICE:
    case ROCEMU_OP_CREATE_CHANNEL:
    case ROCEMU_OP_STATUS:
    case ROCEMU_OP_SHUTDOWN:
    case ROCEMU_OP_TAKE_FINDINGS:
      return as_bytes(rocemu_create_channel{});
    case ROCEMU_OP_WAS_WRITTEN: {
      rocemu_was_written m{};
      m.address = Client::kAddress + input.u8() * 8u;
      m.bytes = input.pick<uint64_t>({64, 0, 4096, ~0ull});
      return as_bytes(m);
    }
    default:
      return draw_object_request(input, op, config, model);
  }
}

void damage(ByteSource& input, std::vector<std::byte>& datagram) {
  for (uint32_t count = 1 + input.below(4); count > 0; --count) {
    const size_t at = input.u8() % datagram.size();
    datagram[at] = std::byte{input.u8()};
  }
  if (input.flag()) return;
  datagram.resize(input.u8());
  datagram.shrink_to_fit();
  if (datagram.size() < sizeof(rocemu_header) || input.flag()) return;
  const auto length = static_cast<uint32_t>(datagram.size());
  std::memcpy(datagram.data() + offsetof(rocemu_header, length), &length, sizeof(length));
}

std::vector<std::byte> with_header(std::vector<std::byte> datagram, uint32_t op,
                                   uint64_t cookie = 0x1234) {
  const rocemu_header header{.op = op,
                             .length = static_cast<uint32_t>(datagram.size()),
                             .cookie = cookie,
                             .status = 0,
                             .reserved = 0};
  std::memcpy(datagram.data(), &header, sizeof(header));
  return datagram;
}

rocemu_create_qp small_qp(const Model& model) {
  rocemu_create_qp m{};
  m.pd = model.mrs.begin()->second.pd;
  m.send_cq = m.recv_cq = model.cqs.begin()->first;
  m.qp_type = 2;  // IBV_QPT_RC
  m.max_send_wr = m.max_recv_wr = 4;
  m.max_send_sge = m.max_recv_sge = 1;
  return m;
}

}  // namespace

std::vector<std::byte> next_datagram(const device::HcaConfig& config, const Model& model) {
  if (model.pds.empty()) return with_header(as_bytes(rocemu_handle_message{}), ROCEMU_OP_ALLOC_PD);
  if (model.mrs.empty()) {
    rocemu_reg_mr m{};
    m.pd = model.pds.begin()->first;
    m.access = 15;
    m.address = m.iova = Client::kAddress;
    m.length_bytes = Client::kMemoryBytes;
    return with_header(as_bytes(m), ROCEMU_OP_REG_MR);
  }
  if (model.channels.empty())
    return with_header(as_bytes(rocemu_create_channel{}), ROCEMU_OP_CREATE_CHANNEL);
  if (model.cqs.empty()) {
    rocemu_create_cq m{};
    m.cqe = 8;
    m.channel = model.channels.begin()->first;
    return with_header(as_bytes(m), ROCEMU_OP_CREATE_CQ);
  }
  if (model.qps.size() < 2) return with_header(as_bytes(small_qp(model)), ROCEMU_OP_CREATE_QP);
  const auto& [first, first_qp] = *model.qps.begin();
  const auto& [last, last_qp] = *model.qps.rbegin();
  const bool first_is_behind = first_qp.state < last_qp.state;
  const uint32_t state = first_is_behind ? first_qp.state : last_qp.state;
  return with_header(
      as_bytes(change_state(config, first_is_behind ? first : last, state < 3 ? state + 1 : 0,
                            first_is_behind ? last_qp.qpn : first_qp.qpn)),
      ROCEMU_OP_MODIFY_QP);
}

std::vector<std::byte> draw_datagram(ByteSource& input, const device::HcaConfig& config,
                                     const Model& model) {
  const uint8_t choice = input.u8();
  uint32_t op = choice < 0xf0 ? 1 + choice % uint32_t{ROCEMU_OP_IMPORT_DM} : 56u + choice % 16u;
  if (op == 56) op = ROCEMU_OP_MODERATE_CQ;
  if (op == 57) op = ROCEMU_OP_REG_FILE_MR;
  if (op == 58) op = ROCEMU_OP_DESTROY_COUNTERS;
  if (op == 59) op = ROCEMU_OP_READ_COUNTERS;
  // What the cookie says to Client::descriptor_for.
  const uint64_t cookie = op == ROCEMU_OP_OPEN_XRCD && input.flag() ? 1 : 0;
  std::vector<std::byte> datagram = with_header(draw_request(input, op, config, model), op, cookie);
  if (input.u8() >= 0xf0) damage(input, datagram);
  return datagram;
}

}  // namespace rocemu::fuzz
