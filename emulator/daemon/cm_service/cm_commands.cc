#include "emulator/daemon/cm_service/cm_commands.h"

#include <rdma/rdma_user_cm.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "emulator/daemon/cm_service/cm_structures.h"

namespace rocemu::daemon {
namespace {

// librdmacm sends connect and accept without `ece` when it is older than that.
constexpr size_t kConnectMinBytes = offsetof(rdma_ucm_connect, ece);
constexpr size_t kAcceptMinBytes = offsetof(rdma_ucm_accept, ece);

// One command of a program, with what serving it needs.
struct Call {
  cm::RdmaCm& cm;
  TimeNs now;
  cm::OwnerId owner;
  const rocemu_cm_command& command;
  rocemu_cm_reply& reply;

  // Copies what the program sent; what it left out at the end is zero.
  template <class Input>
  bool read(Input& input, size_t min_bytes = sizeof(Input)) const {
    input = {};
    if (command.in_bytes < min_bytes) return false;
    std::memcpy(&input, command.in, std::min<size_t>(command.in_bytes, sizeof(input)));
    return true;
  }

  // Answers with as much of `output` as the program has room for, but no less than `min_bytes`.
  template <class Output>
  int write(const Output& output, size_t min_bytes = sizeof(Output)) const {
    static_assert(sizeof(Output) <= ROCEMU_CM_OUT_MAX);
    if (command.out_bytes < min_bytes) return ENOSPC;
    reply.out_bytes = std::min<uint32_t>(command.out_bytes, sizeof(output));
    std::memcpy(reply.out, &output, reply.out_bytes);
    return 0;
  }

  int write_tally(const cm::Result<cm::EventTally>& tally) const {
    if (!tally) return tally.error();
    reply.withdrawn = tally->withdrawn;
    return write(rdma_ucm_destroy_id_resp{tally->reported});
  }
};

int create_id(const Call& call) {
  rdma_ucm_create_id in;
  if (!call.read(in)) return EINVAL;
  if (call.command.out_bytes < sizeof(rdma_ucm_create_id_resp)) return ENOSPC;
  const auto id = call.cm.create_id(call.owner, call.command.channel, in.uid, in.ps, in.qp_type);
  if (!id) return id.error();
  return call.write(rdma_ucm_create_id_resp{*id});
}

int destroy_id(const Call& call) {
  rdma_ucm_destroy_id in;
  if (!call.read(in)) return EINVAL;
  if (call.command.out_bytes < sizeof(rdma_ucm_destroy_id_resp)) return ENOSPC;
  return call.write_tally(call.cm.destroy_id(call.now, call.owner, in.id));
}

int bind_ip(const Call& call) {
  rdma_ucm_bind_ip in;
  if (!call.read(in, offsetof(rdma_ucm_bind_ip, id) + sizeof(in.id))) return EINVAL;
  const auto address = address_from(in.addr);
  return address ? call.cm.bind(call.owner, in.id, *address) : EINVAL;
}

int resolve_ip(const Call& call) {
  rdma_ucm_resolve_ip in;
  if (!call.read(in)) return EINVAL;
  const auto destination = address_from(in.dst_addr);
  if (!destination) return EINVAL;
  const auto source = address_from(in.src_addr);
  if (!source && in.src_addr.sin6_family != 0) return EINVAL;
  return call.cm.resolve_address(call.owner, in.id, source, *destination);
}

int resolve_route(const Call& call) {
  rdma_ucm_resolve_route in;
  if (!call.read(in)) return EINVAL;
  return call.cm.resolve_route(call.owner, in.id);
}

int query_route(const Call& call) {
  rdma_ucm_query in;
  if (!call.read(in, offsetof(rdma_ucm_query, option))) return EINVAL;
  const auto id = call.cm.query(call.owner, in.id);
  if (!id) return id.error();
  return call.write(describe_route(call.cm, **id),
                    offsetof(rdma_ucm_query_route_resp, ibdev_index));
}

int connect(const Call& call) {
  rdma_ucm_connect in;
  if (!call.read(in, kConnectMinBytes)) return EINVAL;
  if (!in.conn_param.valid) return EINVAL;
  return call.cm.connect(call.now, call.owner, in.id, parameters_from(in.conn_param));
}

int listen(const Call& call) {
  rdma_ucm_listen in;
  if (!call.read(in)) return EINVAL;
  const auto backlog = static_cast<int32_t>(in.backlog);
  const auto refused =
      call.cm.listen(call.owner, in.id, static_cast<uint32_t>(std::max(backlog, 0)));
  if (!refused) return refused.error();
  return call.write(*refused, 0);
}

int accept(const Call& call) {
  rdma_ucm_accept in;
  if (!call.read(in, kAcceptMinBytes)) return EINVAL;
  if (!in.conn_param.valid) return call.cm.accept(call.now, call.owner, in.id, in.uid, nullptr);
  const auto parameters = parameters_from(in.conn_param);
  return call.cm.accept(call.now, call.owner, in.id, in.uid, &parameters);
}

int reject(const Call& call) {
  rdma_ucm_reject in;
  if (!call.read(in)) return EINVAL;
  return call.cm.reject(call.now, call.owner, in.id, in.reason,
                        data_from(in.private_data, in.private_data_len));
}

int disconnect(const Call& call) {
  rdma_ucm_disconnect in;
  if (!call.read(in)) return EINVAL;
  return call.cm.disconnect(call.now, call.owner, in.id);
}

int init_qp_attr(const Call& call) {
  rdma_ucm_init_qp_attr in;
  if (!call.read(in)) return EINVAL;
  const auto setup = call.cm.qp_setup(call.owner, in.id, in.qp_state);
  if (!setup) return setup.error();
  return call.write(describe_setup(*setup));
}

int set_option(const Call& call) {
  rdma_ucm_set_option in;
  if (!call.read(in)) return EINVAL;
  return call.cm.set_option(
      call.owner, in.id, in.level, in.optname,
      std::as_bytes(std::span(call.command.option, call.command.option_bytes)));
}

int notify(const Call& call) {
  rdma_ucm_notify in;
  if (!call.read(in)) return EINVAL;
  return call.cm.notify(call.now, call.owner, in.id, in.event);
}

int join(const Call& call) {
  rdma_ucm_join_ip_mcast in;
  if (!call.read(in, offsetof(rdma_ucm_join_ip_mcast, id) + sizeof(in.id))) return EINVAL;
  if (call.command.out_bytes < sizeof(rdma_ucm_create_id_resp)) return ENOSPC;
  const auto group = address_from(in.addr);
  if (!group) return EINVAL;
  const auto handle = call.cm.join(call.owner, in.id, in.uid, *group);
  if (!handle) return handle.error();
  return call.write(rdma_ucm_create_id_resp{*handle});
}

int leave(const Call& call) {
  rdma_ucm_destroy_id in;
  if (!call.read(in)) return EINVAL;
  if (call.command.out_bytes < sizeof(rdma_ucm_destroy_id_resp)) return ENOSPC;
  return call.write_tally(call.cm.leave(call.owner, in.id));
}

int migrate_id(const Call& call) {
  rdma_ucm_migrate_id in;
  if (!call.read(in)) return EINVAL;
  if (call.command.out_bytes < sizeof(rdma_ucm_migrate_resp)) return ENOSPC;
  return call.write_tally(
      call.cm.migrate_id(call.owner, in.id, call.command.other_channel, call.command.channel));
}

int write_event(const Call& call) {
  rocemu_cm_write_event in;
  if (!call.read(in)) return EINVAL;
  const auto type = static_cast<cm::EventType>(in.event);
  if (type != cm::EventType::user && type != cm::EventType::internal) return EINVAL;
  return call.cm.write_event(call.owner, in.id, type, static_cast<int32_t>(in.status), in.argument);
}

}  // namespace

int run_cm_command(cm::RdmaCm& cm, TimeNs now, cm::OwnerId owner, const rocemu_cm_command& command,
                   rocemu_cm_reply& reply) {
  const Call call{cm, now, owner, command, reply};
  switch (command.command) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return create_id(call);
    case RDMA_USER_CM_CMD_DESTROY_ID:
      return destroy_id(call);
    case RDMA_USER_CM_CMD_BIND_IP:
      return bind_ip(call);
    case RDMA_USER_CM_CMD_RESOLVE_IP:
      return resolve_ip(call);
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
      return resolve_route(call);
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
      return query_route(call);
    case RDMA_USER_CM_CMD_CONNECT:
      return connect(call);
    case RDMA_USER_CM_CMD_LISTEN:
      return listen(call);
    case RDMA_USER_CM_CMD_ACCEPT:
      return accept(call);
    case RDMA_USER_CM_CMD_REJECT:
      return reject(call);
    case RDMA_USER_CM_CMD_DISCONNECT:
      return disconnect(call);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
      return init_qp_attr(call);
    case RDMA_USER_CM_CMD_SET_OPTION:
      return set_option(call);
    case RDMA_USER_CM_CMD_NOTIFY:
      return notify(call);
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
      return join(call);
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
      return leave(call);
    case RDMA_USER_CM_CMD_MIGRATE_ID:
      return migrate_id(call);
    case ROCEMU_CM_CMD_WRITE_CM_EVENT:
      return write_event(call);
    // It asks a subnet administrator, which RoCE has not.
    case ROCEMU_CM_CMD_RESOLVE_IB_SERVICE:
      return EOPNOTSUPP;
    // librdmacm sends these when AF_IB works: it asks by a BIND, and takes a no for an answer.
    case RDMA_USER_CM_CMD_GET_OPTION:
    case RDMA_USER_CM_CMD_QUERY:
    case RDMA_USER_CM_CMD_BIND:
    case RDMA_USER_CM_CMD_RESOLVE_ADDR:
    case RDMA_USER_CM_CMD_JOIN_MCAST:
      return ENOSYS;
    default:
      return EINVAL;
  }
}

}  // namespace rocemu::daemon
