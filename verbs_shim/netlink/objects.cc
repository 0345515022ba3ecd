#include "verbs_shim/netlink/objects.h"

#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <sys/socket.h>

namespace rocemu::netlink {

const Objects kObjects[kObjectsKinds] = {
    {RDMA_NLDEV_CMD_RES_PD_GET, ROCEMU_RESOURCE_PD, "pd", RDMA_NLDEV_ATTR_RES_PD,
     RDMA_NLDEV_ATTR_RES_PD_ENTRY, RDMA_NLDEV_ATTR_RES_PDN, false},
    {RDMA_NLDEV_CMD_RES_CQ_GET, ROCEMU_RESOURCE_CQ, "cq", RDMA_NLDEV_ATTR_RES_CQ,
     RDMA_NLDEV_ATTR_RES_CQ_ENTRY, RDMA_NLDEV_ATTR_RES_CQN, false},
    {RDMA_NLDEV_CMD_RES_QP_GET, ROCEMU_RESOURCE_QP, "qp", RDMA_NLDEV_ATTR_RES_QP,
     RDMA_NLDEV_ATTR_RES_QP_ENTRY, RDMA_NLDEV_ATTR_RES_LQPN, true},
    {RDMA_NLDEV_CMD_RES_CM_ID_GET, ROCEMU_RESOURCE_CM_ID, "cm_id", RDMA_NLDEV_ATTR_RES_CM_ID,
     RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY, RDMA_NLDEV_ATTR_RES_CM_IDN, true},
    {RDMA_NLDEV_CMD_RES_MR_GET, ROCEMU_RESOURCE_MR, "mr", RDMA_NLDEV_ATTR_RES_MR,
     RDMA_NLDEV_ATTR_RES_MR_ENTRY, RDMA_NLDEV_ATTR_RES_MRN, false},
    {RDMA_NLDEV_CMD_RES_CTX_GET, ROCEMU_RESOURCE_CONTEXT, "ctx", RDMA_NLDEV_ATTR_RES_CTX,
     RDMA_NLDEV_ATTR_RES_CTX_ENTRY, RDMA_NLDEV_ATTR_RES_CTXN, false},
    {RDMA_NLDEV_CMD_RES_SRQ_GET, ROCEMU_RESOURCE_SRQ, "srq", RDMA_NLDEV_ATTR_RES_SRQ,
     RDMA_NLDEV_ATTR_RES_SRQ_ENTRY, RDMA_NLDEV_ATTR_RES_SRQN, false},
};

namespace {

// enum ib_qp_type of the kernel and of verbs.
constexpr uint32_t kRc = 2;
constexpr uint32_t kUc = 3;
constexpr uint32_t kUd = 4;
constexpr uint32_t kRawPacket = 8;

// Puts what the kernel asks ib_query_qp() for: what a service does not have is left out.
void put_qp(MessageWriter& writer, const rocemu_resource& qp) {
  if (qp.port != 0) writer.put_u32(RDMA_NLDEV_ATTR_PORT_INDEX, qp.port);
  writer.put_u32(RDMA_NLDEV_ATTR_RES_LQPN, qp.number);
  if (qp.type == kRc || qp.type == kUc) {
    writer.put_u32(RDMA_NLDEV_ATTR_RES_RQPN, qp.qp.remote_qpn);
    writer.put_u32(RDMA_NLDEV_ATTR_RES_RQ_PSN, qp.qp.rq_psn);
  }
  writer.put_u32(RDMA_NLDEV_ATTR_RES_SQ_PSN, qp.qp.sq_psn);
  if (qp.type != kUd && qp.type != kRawPacket)
    writer.put_u8(RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, static_cast<uint8_t>(qp.qp.path_mig_state));
  writer.put_u8(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<uint8_t>(qp.type));
  writer.put_u8(RDMA_NLDEV_ATTR_RES_STATE, static_cast<uint8_t>(qp.state));
  if (qp.pd != 0) writer.put_u32(RDMA_NLDEV_ATTR_RES_PDN, qp.pd);
}

void put_address(MessageWriter& writer, uint16_t type, const rocemu_socket_address& address) {
  sockaddr_storage storage = {};
  if (address.family == AF_INET6) {
    auto* const ipv6 = reinterpret_cast<sockaddr_in6*>(&storage);
    ipv6->sin6_port = htons(address.port);
    memcpy(&ipv6->sin6_addr, address.ip, sizeof(address.ip));
  } else if (address.family == AF_INET) {
    auto* const ipv4 = reinterpret_cast<sockaddr_in*>(&storage);
    ipv4->sin_port = htons(address.port);
    memcpy(&ipv4->sin_addr, address.ip + sizeof(address.ip) - sizeof(ipv4->sin_addr),
           sizeof(ipv4->sin_addr));
  } else {
    return;
  }
  storage.ss_family = address.family;
  writer.put(type, &storage, sizeof(storage));
}

void put_cm_id(MessageWriter& writer, const rocemu_resource& id) {
  if (id.port != 0) writer.put_u32(RDMA_NLDEV_ATTR_PORT_INDEX, id.port);
  if (id.cm_id.local_qpn != 0) {
    writer.put_u32(RDMA_NLDEV_ATTR_RES_LQPN, id.cm_id.local_qpn);
    writer.put_u8(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<uint8_t>(id.type));
  }
  writer.put_u32(RDMA_NLDEV_ATTR_RES_PS, id.cm_id.port_space);
  writer.put_u8(RDMA_NLDEV_ATTR_RES_STATE, static_cast<uint8_t>(id.state));
  put_address(writer, RDMA_NLDEV_ATTR_RES_SRC_ADDR, id.cm_id.source);
  put_address(writer, RDMA_NLDEV_ATTR_RES_DST_ADDR, id.cm_id.destination);
  writer.put_u32(RDMA_NLDEV_ATTR_RES_CM_IDN, id.number);
}

void put_mr(MessageWriter& writer, const rocemu_resource& mr) {
  writer.put_u32(RDMA_NLDEV_ATTR_RES_RKEY, mr.mr.rkey);
  writer.put_u32(RDMA_NLDEV_ATTR_RES_LKEY, mr.mr.lkey);
  writer.put_u64(RDMA_NLDEV_ATTR_RES_IOVA, mr.mr.iova);
  writer.put_u64(RDMA_NLDEV_ATTR_RES_MRLEN, mr.mr.length_bytes);
  writer.put_u32(RDMA_NLDEV_ATTR_RES_MRN, mr.number);
  writer.put_u32(RDMA_NLDEV_ATTR_RES_PDN, mr.pd);
}

void put_srq(MessageWriter& writer, const rocemu_resource& srq) {
  writer.put_u32(RDMA_NLDEV_ATTR_RES_SRQN, srq.number);
  writer.put_u8(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<uint8_t>(srq.type));
  writer.put_u32(RDMA_NLDEV_ATTR_RES_PDN, srq.pd);
  writer.close(writer.open(RDMA_NLDEV_ATTR_RES_QP));  // its QPs are not told of, but expected
}

}  // namespace

const Objects* objects_of(uint16_t command) {
  for (const Objects& objects : kObjects)
    if (objects.command == command) return &objects;
  return nullptr;
}

void put_process(MessageWriter& writer, const rocemu_resource& object) {
  if (object.pid != 0) writer.put_u32(RDMA_NLDEV_ATTR_RES_PID, object.pid);
}

void put_object(MessageWriter& writer, uint32_t kind, const rocemu_resource& object) {
  switch (kind) {
    case ROCEMU_RESOURCE_QP:
      put_qp(writer, object);
      break;
    case ROCEMU_RESOURCE_CM_ID:
      put_cm_id(writer, object);
      break;
    case ROCEMU_RESOURCE_CQ:
      writer.put_u32(RDMA_NLDEV_ATTR_RES_CQE, object.cq.entries);
      writer.put_u64(RDMA_NLDEV_ATTR_RES_USECNT, object.users);
      writer.put_u32(RDMA_NLDEV_ATTR_RES_CQN, object.number);
      writer.put_u32(RDMA_NLDEV_ATTR_RES_CTXN, object.context);
      break;
    case ROCEMU_RESOURCE_MR:
      put_mr(writer, object);
      break;
    case ROCEMU_RESOURCE_PD:
      writer.put_u64(RDMA_NLDEV_ATTR_RES_USECNT, object.users);
      writer.put_u32(RDMA_NLDEV_ATTR_RES_PDN, object.number);
      writer.put_u32(RDMA_NLDEV_ATTR_RES_CTXN, object.context);
      break;
    case ROCEMU_RESOURCE_SRQ:
      put_srq(writer, object);
      break;
    default:
      writer.put_u32(RDMA_NLDEV_ATTR_RES_CTXN, object.number);
      break;
  }
  put_process(writer, object);
}

}  // namespace rocemu::netlink
