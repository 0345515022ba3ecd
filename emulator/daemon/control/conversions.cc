#include "emulator/daemon/control/conversions.h"

#include <algorithm>

namespace rocemu::daemon {
namespace {

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

// Registering and registering again name the same fields.
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
  return {m.cqe, m.channel, m.comp_vector, m.user_pointer,
          (m.flags & ROCEMU_CQ_IGNORES_OVERRUN) != 0};
}

static_assert(ROCEMU_TSO_BYTES_MAX == transport::kMaxTsoBytes);
static_assert(ROCEMU_TSO_HEADER_MAX == transport::kMaxTsoHeaderBytes);

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
  spec.max_tso_header = m.max_tso_header;
  spec.srq = m.srq;
  spec.xrcd = m.xrcd;
  spec.user_pointer = m.user_pointer;
  return device::without_unused_queues(spec);
}

device::SrqSpec to_srq_spec(const rocemu_create_srq& m) {
  device::SrqSpec spec;
  spec.pd = m.pd;
  spec.xrc = m.srq_type == ROCEMU_SRQ_XRC;
  spec.tag_matching = m.srq_type == ROCEMU_SRQ_TM;
  spec.max_tags = m.max_tags;
  spec.max_wr = m.max_wr;
  spec.max_sge = m.max_sge;
  spec.xrcd = m.xrcd;
  spec.cq = m.cq;
  spec.user_pointer = m.user_pointer;
  return spec;
}

device::TagOp to_tag_op(const rocemu_change_tags& m) {
  device::TagOp op;
  op.operation = m.operation;
  op.flags = m.flags;
  op.wr_id = m.wr_id;
  op.unexpected = m.unexpected;
  op.handle = m.handle;
  op.receive_wr_id = m.receive_wr_id;
  op.tag = m.tag;
  op.mask = m.mask;
  for (uint32_t i = 0; i < m.num_sge; ++i)
    op.sges.push_back({m.sges[i].address, m.sges[i].length_bytes, wire::LKey{m.sges[i].lkey}});
  return op;
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
