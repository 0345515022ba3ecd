#include "emulator/daemon/control/message_codec.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rocemu::daemon {
namespace {

template <class Message>
Message copy_as(std::span<const std::byte> bytes) {
  Message message{};
  std::memcpy(&message, bytes.data(), std::min(bytes.size(), sizeof(message)));
  return message;
}

bool reserved_set(const rocemu_hello& m) { return m.reserved != 0; }
bool reserved_set(const rocemu_query_port& m) { return m.reserved != 0; }
bool reserved_set(const rocemu_handle_message& m) { return m.reserved != 0; }
bool reserved_set(const rocemu_reg_mr&) { return false; }
bool reserved_set(const rocemu_reg_file_mr&) { return false; }
bool reserved_set(const rocemu_rereg_mr&) { return false; }
bool reserved_set(const rocemu_alloc_mw&) { return false; }
bool reserved_set(const rocemu_alloc_dm& m) { return m.reserved != 0; }
bool reserved_set(const rocemu_reg_dm_mr& m) { return m.reserved != 0; }
bool reserved_set(const rocemu_check_prefetch& m) { return m.reserved != 0 || m.for_writing > 1; }
bool reserved_set(const rocemu_resize_cq&) { return false; }
bool reserved_set(const rocemu_moderate_cq&) { return false; }
bool reserved_set(const rocemu_resize_srq& m) { return m.reserved != 0; }
bool reserved_set(const rocemu_join_context&) { return false; }
bool reserved_set(const rocemu_import_mr&) { return false; }
bool reserved_set(const rocemu_create_cq& m) { return m.reserved != 0; }
bool reserved_set(const rocemu_create_qp& m) { return m.sq_sig_all > 1; }
bool reserved_set(const rocemu_ah_attr& m) { return m.reserved[0] != 0 || m.reserved[1] != 0; }
bool reserved_set(const rocemu_modify_qp& m) {
  return m.attr.reserved[0] != 0 || reserved_set(m.attr.ah) || reserved_set(m.attr.alt_ah);
}
bool reserved_set(const rocemu_create_ah& m) { return m.reserved != 0 || reserved_set(m.attr); }
bool reserved_set(const rocemu_create_srq& m) { return m.srq_type > ROCEMU_SRQ_XRC; }
bool reserved_set(const rocemu_srq_limit& m) {
  return m.header.op == ROCEMU_OP_QUERY_SRQ && m.limit != 0;
}
bool reserved_set(const rocemu_open_xrcd& m) {
  return m.reserved != 0 || (m.flags & ~uint32_t{ROCEMU_XRCD_CREATE | ROCEMU_XRCD_EXCLUSIVE}) != 0;
}
bool reserved_set(const rocemu_open_qp&) { return false; }
bool reserved_set(const rocemu_mcast& m) { return m.reserved != 0; }
// The text ends in it, and nothing hides behind its end.
bool reserved_set(const rocemu_link_set& m) {
  const auto* const end = std::find(std::begin(m.assignment), std::end(m.assignment), '\0');
  return end == std::end(m.assignment) ||
         std::any_of(end, std::end(m.assignment), [](char c) { return c != '\0'; });
}

// The message of a request that has a body of its own.
template <class Message>
tl::expected<Request, Malformed> decode_as(const rocemu_header& header,
                                           std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Message)) return tl::unexpected(Malformed::wrong_length);
  const auto message = copy_as<Message>(bytes);
  Request request{header, message, 0};
  if (reserved_set(message)) request.error = EINVAL;
  return request;
}

// Another ABI may have a HELLO of another length; magic and version stand where they are for ever.
tl::expected<Request, Malformed> decode_hello(const rocemu_header& header,
                                              std::span<const std::byte> bytes) {
  if (bytes.size() < offsetof(rocemu_hello, device_index))
    return tl::unexpected(Malformed::wrong_length);
  const auto message = copy_as<rocemu_hello>(bytes);
  if (message.magic == ROCEMU_ABI_MAGIC && message.abi_version == ROCEMU_ABI_VERSION)
    return decode_as<rocemu_hello>(header, bytes);
  return Request{header, message, EPROTO};
}

tl::expected<Request, Malformed> decode_bare(const rocemu_header& header,
                                             std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(rocemu_header)) return tl::unexpected(Malformed::wrong_length);
  return Request{header, std::monostate{}, 0};
}

tl::expected<Request, Malformed> decode_body(const rocemu_header& header,
                                             std::span<const std::byte> bytes) {
  switch (header.op) {
    case ROCEMU_OP_HELLO:
      return decode_hello(header, bytes);
    case ROCEMU_OP_QUERY_DEVICE:
    case ROCEMU_OP_QUERY_DEVICE_EX:
    case ROCEMU_OP_CREATE_CHANNEL:
    case ROCEMU_OP_STATUS:
    case ROCEMU_OP_SHUTDOWN:
    case ROCEMU_OP_LINK_SHOW:
      return decode_bare(header, bytes);
    case ROCEMU_OP_QUERY_PORT:
      return decode_as<rocemu_query_port>(header, bytes);
    case ROCEMU_OP_ALLOC_PD:
    case ROCEMU_OP_DEALLOC_PD:
    case ROCEMU_OP_DEREG_MR:
    case ROCEMU_OP_DESTROY_CHANNEL:
    case ROCEMU_OP_DESTROY_CQ:
    case ROCEMU_OP_QUERY_QP:
    case ROCEMU_OP_DESTROY_QP:
    case ROCEMU_OP_DEALLOC_MW:
    case ROCEMU_OP_ALLOC_NULL_MR:
    case ROCEMU_OP_FREE_DM:
    case ROCEMU_OP_CONTEXT_TICKET:
    case ROCEMU_OP_IMPORT_PD:
    case ROCEMU_OP_IMPORT_DM:
    case ROCEMU_OP_DESTROY_AH:
    case ROCEMU_OP_DESTROY_SRQ:
    case ROCEMU_OP_CLOSE_XRCD:
      return decode_as<rocemu_handle_message>(header, bytes);
    case ROCEMU_OP_REG_MR:
      return decode_as<rocemu_reg_mr>(header, bytes);
    case ROCEMU_OP_CREATE_CQ:
      return decode_as<rocemu_create_cq>(header, bytes);
    case ROCEMU_OP_CREATE_QP:
      return decode_as<rocemu_create_qp>(header, bytes);
    case ROCEMU_OP_MODIFY_QP:
      return decode_as<rocemu_modify_qp>(header, bytes);
    case ROCEMU_OP_REG_FILE_MR:
      return decode_as<rocemu_reg_file_mr>(header, bytes);
    case ROCEMU_OP_REREG_MR:
      return decode_as<rocemu_rereg_mr>(header, bytes);
    case ROCEMU_OP_ALLOC_MW:
      return decode_as<rocemu_alloc_mw>(header, bytes);
    case ROCEMU_OP_ALLOC_DM:
      return decode_as<rocemu_alloc_dm>(header, bytes);
    case ROCEMU_OP_REG_DM_MR:
      return decode_as<rocemu_reg_dm_mr>(header, bytes);
    case ROCEMU_OP_CHECK_PREFETCH:
      return decode_as<rocemu_check_prefetch>(header, bytes);
    case ROCEMU_OP_RESIZE_CQ:
      return decode_as<rocemu_resize_cq>(header, bytes);
    case ROCEMU_OP_MODERATE_CQ:
      return decode_as<rocemu_moderate_cq>(header, bytes);
    case ROCEMU_OP_RESIZE_SRQ:
      return decode_as<rocemu_resize_srq>(header, bytes);
    case ROCEMU_OP_JOIN_CONTEXT:
      return decode_as<rocemu_join_context>(header, bytes);
    case ROCEMU_OP_IMPORT_MR:
      return decode_as<rocemu_import_mr>(header, bytes);
    case ROCEMU_OP_LINK_SET:
      return decode_as<rocemu_link_set>(header, bytes);
    case ROCEMU_OP_CREATE_AH:
      return decode_as<rocemu_create_ah>(header, bytes);
    case ROCEMU_OP_CREATE_SRQ:
      return decode_as<rocemu_create_srq>(header, bytes);
    case ROCEMU_OP_MODIFY_SRQ:
    case ROCEMU_OP_QUERY_SRQ:
      return decode_as<rocemu_srq_limit>(header, bytes);
    case ROCEMU_OP_OPEN_XRCD:
      return decode_as<rocemu_open_xrcd>(header, bytes);
    case ROCEMU_OP_OPEN_QP:
      return decode_as<rocemu_open_qp>(header, bytes);
    case ROCEMU_OP_ATTACH_MCAST:
    case ROCEMU_OP_DETACH_MCAST:
      return decode_as<rocemu_mcast>(header, bytes);
    default:
      return tl::unexpected(Malformed::unknown_op);
  }
}

rocemu_ah_attr from_ah_attr(const device::AhAttr& ah) {
  rocemu_ah_attr m{};
  std::copy(ah.dgid.bytes.begin(), ah.dgid.bytes.end(), std::begin(m.dgid));
  m.flow_label = ah.flow_label;
  m.sgid_index = ah.sgid_index;
  m.hop_limit = ah.hop_limit;
  m.traffic_class = ah.traffic_class;
  m.is_global = ah.is_global ? 1 : 0;
  m.dlid = ah.dlid;
  m.sl = ah.sl;
  m.src_path_bits = ah.src_path_bits;
  m.static_rate = ah.static_rate;
  m.port_num = ah.port_num;
  return m;
}

// Registering and registering again name the same things.
template <class Message>
device::MrSpec mr_spec_of(const Message& m) {
  device::MrSpec spec;
  spec.pd = m.pd;
  spec.access = m.access;
  spec.address = m.address;
  spec.length_bytes = m.length_bytes;
  spec.iova = m.iova;
  return spec;
}

}  // namespace

const char* to_string(Malformed why) {
  switch (why) {
    case Malformed::too_short:
      return "message too short for a header";
    case Malformed::wrong_length:
      return "message of the wrong length";
    case Malformed::unknown_op:
      return "unknown operation";
  }
  return "malformed message";
}

tl::expected<Request, Malformed> decode(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(rocemu_header)) return tl::unexpected(Malformed::too_short);
  const auto header = copy_as<rocemu_header>(bytes);
  if (header.length != bytes.size()) return tl::unexpected(Malformed::wrong_length);
  auto request = decode_body(header, bytes);
  if (request && request->error == 0 && (header.status != 0 || header.reserved != 0))
    request->error = EINVAL;
  return request;
}

device::MrSpec to_mr_spec(const rocemu_reg_mr& m) { return mr_spec_of(m); }

device::MrSpec to_mr_spec(const rocemu_reg_file_mr& m) { return mr_spec_of(m); }

device::MrSpec to_mr_spec(const rocemu_rereg_mr& m) { return mr_spec_of(m); }

device::MrSpec to_mr_spec(const rocemu_reg_dm_mr& m) {
  device::MrSpec spec;
  spec.pd = m.pd;
  spec.access = m.access;
  spec.address = m.offset_bytes;
  spec.length_bytes = m.length_bytes;
  spec.kind = device::MrKind::device_memory;
  spec.dm = m.dm;
  return spec;
}

device::CqSpec to_cq_spec(const rocemu_create_cq& m) {
  return {m.cqe, m.channel, m.comp_vector, m.user_pointer};
}

device::QpSpec to_qp_spec(const rocemu_create_qp& m) {
  device::QpSpec spec;
  spec.pd = m.pd;
  spec.send_cq = m.send_cq;
  spec.receive_cq = m.recv_cq;
  spec.type = m.qp_type;
  spec.max_send_wr = m.max_send_wr;
  spec.max_recv_wr = m.max_recv_wr;
  spec.max_send_sge = m.max_send_sge;
  spec.max_recv_sge = m.max_recv_sge;
  spec.max_inline_data = m.max_inline_data;
  spec.srq = m.srq;
  spec.xrcd = m.xrcd;
  spec.user_pointer = m.user_pointer;
  return device::without_unused_queues(spec);
}

device::SrqSpec to_srq_spec(const rocemu_create_srq& m) {
  device::SrqSpec spec;
  spec.pd = m.pd;
  spec.xrc = m.srq_type == ROCEMU_SRQ_XRC;
  spec.max_wr = m.max_wr;
  spec.max_sge = m.max_sge;
  spec.xrcd = m.xrcd;
  spec.cq = m.cq;
  spec.user_pointer = m.user_pointer;
  return spec;
}

device::AhAttr to_ah_attr(const rocemu_ah_attr& m) {
  device::AhAttr ah;
  std::copy(std::begin(m.dgid), std::end(m.dgid), ah.dgid.bytes.begin());
  ah.flow_label = m.flow_label;
  ah.sgid_index = m.sgid_index;
  ah.hop_limit = m.hop_limit;
  ah.traffic_class = m.traffic_class;
  ah.is_global = m.is_global != 0;
  ah.dlid = m.dlid;
  ah.sl = m.sl;
  ah.src_path_bits = m.src_path_bits;
  ah.static_rate = m.static_rate;
  ah.port_num = m.port_num;
  return ah;
}

device::QpAttr to_qp_attr(const rocemu_qp_attr& m) {
  device::QpAttr attr;
  attr.qp_state = m.qp_state;
  attr.cur_qp_state = m.cur_qp_state;
  attr.path_mtu = m.path_mtu;
  attr.path_mig_state = m.path_mig_state;
  attr.qkey = m.qkey;
  attr.rq_psn = m.rq_psn;
  attr.sq_psn = m.sq_psn;
  attr.dest_qp_num = m.dest_qp_num;
  attr.qp_access_flags = m.qp_access_flags;
  attr.ah = to_ah_attr(m.ah);
  attr.alt_ah = to_ah_attr(m.alt_ah);
  attr.pkey_index = m.pkey_index;
  attr.alt_pkey_index = m.alt_pkey_index;
  attr.en_sqd_async_notify = m.en_sqd_async_notify != 0;
  attr.sq_draining = m.sq_draining != 0;
  attr.max_rd_atomic = m.max_rd_atomic;
  attr.max_dest_rd_atomic = m.max_dest_rd_atomic;
  attr.min_rnr_timer = m.min_rnr_timer;
  attr.port_num = m.port_num;
  attr.timeout = m.timeout;
  attr.retry_cnt = m.retry_cnt;
  attr.rnr_retry = m.rnr_retry;
  attr.alt_port_num = m.alt_port_num;
  attr.alt_timeout = m.alt_timeout;
  attr.rate_limit = m.rate_limit;
  return attr;
}

rocemu_qp_attr from_qp_attr(const device::QpAttr& attr) {
  rocemu_qp_attr m{};
  m.qp_state = attr.qp_state;
  m.cur_qp_state = attr.cur_qp_state;
  m.path_mtu = attr.path_mtu;
  m.path_mig_state = attr.path_mig_state;
  m.qkey = attr.qkey;
  m.rq_psn = attr.rq_psn;
  m.sq_psn = attr.sq_psn;
  m.dest_qp_num = attr.dest_qp_num;
  m.qp_access_flags = attr.qp_access_flags;
  m.ah = from_ah_attr(attr.ah);
  m.alt_ah = from_ah_attr(attr.alt_ah);
  m.pkey_index = attr.pkey_index;
  m.alt_pkey_index = attr.alt_pkey_index;
  m.en_sqd_async_notify = attr.en_sqd_async_notify ? 1 : 0;
  m.sq_draining = attr.sq_draining ? 1 : 0;
  m.max_rd_atomic = attr.max_rd_atomic;
  m.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  m.min_rnr_timer = attr.min_rnr_timer;
  m.port_num = attr.port_num;
  m.timeout = attr.timeout;
  m.retry_cnt = attr.retry_cnt;
  m.rnr_retry = attr.rnr_retry;
  m.alt_port_num = attr.alt_port_num;
  m.alt_timeout = attr.alt_timeout;
  m.rate_limit = attr.rate_limit;
  return m;
}

}  // namespace rocemu::daemon
