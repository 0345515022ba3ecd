#include "tests/fuzz/cm/command.h"

#include <rdma/rdma_user_cm.h>

#include <cstring>

namespace rocemu::fuzz {

namespace {

constexpr uint16_t kAfInet = 2;
constexpr uint16_t kAfInet6 = 10;
constexpr uint32_t kCommands = RDMA_USER_CM_CMD_JOIN_MCAST + 1;

uint32_t draw_number(ByteSource& input) {
  const uint8_t choice = input.u8();
  return choice < 0xf8 ? choice % 4u : input.u32();
}

// A host's address, or one of nobody, of all, of a group; of any family.
sockaddr_in6 draw_address(ByteSource& input) {
  sockaddr_in6 address{};
  const uint8_t choice = input.u8();
  address.sin6_port = input.pick<uint16_t>({0, 0x581b, 0x591b, 0x0100, 0xffff});
  const uint8_t host = 1 + choice % 4u;
  auto* const ip = reinterpret_cast<uint8_t*>(&address.sin6_addr);
  switch (choice / 4 % 8) {
    case 0:
    case 1:
    case 2: {
      address.sin6_family = kAfInet;
      const uint8_t ipv4[] = {10, 77, 0, host};
      std::memcpy(&address.sin6_flowinfo, ipv4, sizeof(ipv4));
      break;
    }
    case 3:
      address.sin6_family = kAfInet;  // 0.0.0.0
      break;
    case 4:
      address.sin6_family = kAfInet6;
      ip[0] = 0xfd;
      ip[1] = 0x52;
      ip[15] = host;
      break;
    case 5:
      address.sin6_family = kAfInet6;  // ::
      break;
    case 6: {
      address.sin6_family = kAfInet;
      const uint8_t group[] = {239, 1, 1, host};
      std::memcpy(&address.sin6_flowinfo, group, sizeof(group));
      break;
    }
    default:
      address.sin6_family = static_cast<uint16_t>(input.u8() % 12u);
      ip[0] = 0xff;
      ip[1] = input.u8();
      break;
  }
  return address;
}

rdma_ucm_conn_param draw_parameters(ByteSource& input) {
  rdma_ucm_conn_param m{};
  m.qp_num = input.u8();
  m.qkey = input.flag() ? 0 : 0x80010000;
  m.private_data_len = input.pick<uint8_t>({0, 8, 56, 92, 136, 196, 255});
  m.responder_resources = input.u8();
  m.initiator_depth = input.u8();
  m.retry_count = input.u8();
  m.rnr_retry_count = input.u8();
  m.valid = input.u8() < 0xe0;
  return m;
}

template <class Body>
void put(rocemu_cm_command& command, const Body& body) {
  static_assert(sizeof(body) <= sizeof(command.in));
  std::memcpy(command.in, &body, sizeof(body));
  command.in_bytes = sizeof(body);
}

void draw_body(ByteSource& input, rocemu_cm_command& command) {
  const uint32_t id = draw_number(input);
  switch (command.command) {
    case RDMA_USER_CM_CMD_CREATE_ID: {
      const bool connected = input.u8() < 0xc0;
      rdma_ucm_create_id m{};
      m.uid = id;
      m.ps = connected ? uint16_t{RDMA_PS_TCP}
                       : input.pick<uint16_t>({RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB, 0});
      m.qp_type = connected ? 2 : input.pick<uint8_t>({4, 2, 9, 0});
      return put(command, m);
    }
    case RDMA_USER_CM_CMD_BIND_IP: {
      rdma_ucm_bind_ip m{};
      m.addr = draw_address(input);
      m.id = id;
      return put(command, m);
    }
    case RDMA_USER_CM_CMD_RESOLVE_IP: {
      rdma_ucm_resolve_ip m{};
      if (input.u8() >= 0xc0) m.src_addr = draw_address(input);
      m.dst_addr = draw_address(input);
      m.id = id;
      return put(command, m);
    }
    case RDMA_USER_CM_CMD_CONNECT: {
      rdma_ucm_connect m{};
      m.conn_param = draw_parameters(input);
      m.id = id;
      return put(command, m);
    }
    case RDMA_USER_CM_CMD_LISTEN:
      return put(command, rdma_ucm_listen{id, input.pick<uint32_t>({0, 1, 8, 0xffffffff})});
    case RDMA_USER_CM_CMD_ACCEPT: {
      rdma_ucm_accept m{};
      m.uid = 0x100 + id;
      m.conn_param = draw_parameters(input);
      m.id = id;
      return put(command, m);
    }
    case RDMA_USER_CM_CMD_REJECT: {
      rdma_ucm_reject m{};
      m.id = id;
      m.private_data_len = input.u8();
      m.reason = input.u8();
      return put(command, m);
    }
    case RDMA_USER_CM_CMD_NOTIFY:
      return put(command, rdma_ucm_notify{id, input.below(20)});
    case RDMA_USER_CM_CMD_INIT_QP_ATTR: {
      rdma_ucm_init_qp_attr m{};
      m.id = id;
      m.qp_state = input.below(8);
      return put(command, m);
    }
    case RDMA_USER_CM_CMD_SET_OPTION: {
      rdma_ucm_set_option m{};
      m.id = id;
      m.level = input.below(3);
      m.optname = input.below(5);
      command.option_bytes = input.pick<uint32_t>({1, 4, 0, ROCEMU_CM_OPTION_MAX});
      command.option[0] = input.u8();
      return put(command, m);
    }
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST: {
      rdma_ucm_join_ip_mcast m{};
      m.addr = draw_address(input);
      m.id = id;
      return put(command, m);
    }
    case RDMA_USER_CM_CMD_MIGRATE_ID: {
      rdma_ucm_migrate_id m{};
      m.id = id;
      command.other_channel = draw_number(input);
      return put(command, m);
    }
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
      return put(command, rdma_ucm_resolve_route{id, 2000});
    case RDMA_USER_CM_CMD_DISCONNECT:
      return put(command, rdma_ucm_disconnect{id});
    case RDMA_USER_CM_CMD_GET_EVENT:
      return put(command, rdma_ucm_get_event{});
    default: {  // `id` behind the address of the answer
      rdma_ucm_query m{};
      m.id = id;
      m.option = input.below(4);
      return put(command, m);
    }
  }
}

}  // namespace

rocemu_cm_command draw_command(ByteSource& input) {
  rocemu_cm_command command{};
  const uint8_t choice = input.u8();
  // Events are taken about as often as all else is asked for.
  command.command = choice < 0x60 ? uint32_t{RDMA_USER_CM_CMD_GET_EVENT} : choice % (kCommands + 1);
  command.channel = draw_number(input);
  command.out_bytes = input.u8() < 0xf8 ? uint32_t{ROCEMU_CM_OUT_MAX} : input.u8();
  draw_body(input, command);
  if (input.u8() < 0xf0) return command;
  command.in[input.u8()] = input.u8();
  if (input.flag()) command.in_bytes = input.u8() % (command.in_bytes + 1);
  return command;
}

}  // namespace rocemu::fuzz
