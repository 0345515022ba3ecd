// The commands of librdmacm as a program that means harm sends them: too short, too long, of no
// kind, about ids of others, with random bytes.
#include "emulator/daemon/cm_service/cm_commands.h"

#include <rdma/rdma_user_cm.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>

#include "base/time.h"
#include "emulator/daemon/cm_service/cm_events.h"
#include "tests/unit/cm/seeded.h"

namespace rocemu::daemon {
namespace {

class SilentBell final : public cm::EventNotifier {
 public:
  void notify() noexcept override {}
};

struct Program {
  Program() {
    cm::Interface device;
    device.node_guid = 0x1234;
    device.addresses.resize(1);
    device.addresses[0].gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1};
    cm = std::make_unique<cm::RdmaCm>(cm::Interfaces({device}), cm::test::seeded(1));
    channel = *cm->open_channel(1, std::make_unique<SilentBell>());
  }

  template <class In>
  int run(uint32_t number, const In& in, uint32_t out_bytes, size_t in_bytes = sizeof(In)) {
    rocemu_cm_command command{};
    command.channel = channel;
    command.command = number;
    command.in_bytes = static_cast<uint32_t>(in_bytes);
    command.out_bytes = out_bytes;
    std::memcpy(command.in, &in, in_bytes);
    reply = {};
    return run_cm_command(*cm, 0, 1, command, reply);
  }

  uint32_t create() {
    rdma_ucm_create_id in{};
    in.uid = 1;
    in.ps = RDMA_PS_TCP;
    in.qp_type = verbs::qp_type::kRc;
    REQUIRE(run(RDMA_USER_CM_CMD_CREATE_ID, in, sizeof(rdma_ucm_create_id_resp)) == 0);
    rdma_ucm_create_id_resp out;
    std::memcpy(&out, reply.out, sizeof(out));
    return out.id;
  }

  std::unique_ptr<cm::RdmaCm> cm;
  cm::ChannelId channel = 0;
  rocemu_cm_reply reply{};
};

TEST_CASE_METHOD(Program,
                 "A command that is too short, or whose answer has no room, does nothing") {
  rdma_ucm_create_id in{};
  in.ps = RDMA_PS_TCP;
  in.qp_type = verbs::qp_type::kRc;
  CHECK(run(RDMA_USER_CM_CMD_CREATE_ID, in, 4, sizeof(in) - 1) == EINVAL);
  CHECK(run(RDMA_USER_CM_CMD_CREATE_ID, in, 3) == ENOSPC);
  CHECK(cm->ids().empty());
  const uint32_t id = create();
  rdma_ucm_destroy_id destroy{};
  destroy.id = id;
  CHECK(run(RDMA_USER_CM_CMD_DESTROY_ID, destroy, 0) == ENOSPC);
  CHECK(cm->ids().size() == 1);
  CHECK(run(RDMA_USER_CM_CMD_DESTROY_ID, destroy, sizeof(rdma_ucm_destroy_id_resp)) == 0);
}

TEST_CASE_METHOD(Program, "An event is taken once, and by its owner") {
  rdma_ucm_resolve_ip resolve{};
  resolve.id = create();
  const uint8_t own[] = {2, 0, 0, 1, 10, 77, 0, 1};  // a sockaddr_in
  std::memcpy(&resolve.dst_addr, own, sizeof(own));
  REQUIRE(run(RDMA_USER_CM_CMD_RESOLVE_IP, resolve, 0) == 0);
  CHECK(run(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, sizeof(rdma_ucm_event_resp)) ==
        EINVAL);  // it has a message of its own
  rocemu_cm_event event{};
  CHECK(take_event(*cm, 2, channel, event) == EBADF);
  REQUIRE(take_event(*cm, 1, channel, event) == 0);
  CHECK(take_event(*cm, 1, channel, event) == EAGAIN);
}

// What librdmacm asks for behind the event is the same as what it would be told.
TEST_CASE_METHOD(Program, "An event comes with the answers to the questions that follow it") {
  rdma_ucm_resolve_ip resolve{};
  resolve.id = create();
  const uint8_t own[] = {2, 0, 0, 1, 10, 77, 0, 1};  // a sockaddr_in
  std::memcpy(&resolve.dst_addr, own, sizeof(own));
  REQUIRE(run(RDMA_USER_CM_CMD_RESOLVE_IP, resolve, 0) == 0);
  rocemu_cm_event event{};
  REQUIRE(take_event(*cm, 1, channel, event) == 0);
  CHECK(event.answers.id == resolve.id);
  CHECK(event.answers.given == 0b0011);  // the route, and INIT; there is no peer yet

  rdma_ucm_query query{};
  query.id = resolve.id;
  REQUIRE(run(RDMA_USER_CM_CMD_QUERY_ROUTE, query, sizeof(rdma_ucm_query_route_resp)) == 0);
  CHECK(std::memcmp(event.answers.route, reply.out, sizeof(event.answers.route)) == 0);
  rdma_ucm_init_qp_attr init{};
  init.id = resolve.id;
  init.qp_state = 1;
  REQUIRE(run(RDMA_USER_CM_CMD_INIT_QP_ATTR, init, sizeof(ib_uverbs_qp_attr)) == 0);
  CHECK(std::memcmp(event.answers.setups[0], reply.out, sizeof(event.answers.setups[0])) == 0);
}

TEST_CASE_METHOD(Program, "A listener hears of refused clients where it has room for that") {
  rdma_ucm_listen in{};
  in.id = create();
  CHECK(run(RDMA_USER_CM_CMD_LISTEN, in, 0) == 0);
  CHECK(reply.out_bytes == 0);
  in.id = create();
  CHECK(run(RDMA_USER_CM_CMD_LISTEN, in, sizeof(uint32_t)) == 0);
  CHECK(reply.out_bytes == sizeof(uint32_t));
}

TEST_CASE_METHOD(Program, "A program takes the events that it has written") {
  rocemu_cm_write_event in{};
  in.id = create();
  in.event = 18;  // RDMA_CM_EVENT_USER
  in.status = static_cast<uint32_t>(-7);
  in.argument = 0x1122334455667788;
  CHECK(run(ROCEMU_CM_CMD_WRITE_CM_EVENT, in, 0, sizeof(in) - 1) == EINVAL);
  CHECK(run(ROCEMU_CM_CMD_WRITE_CM_EVENT, in, 0) == 0);
  rocemu_cm_event taken{};
  REQUIRE(take_event(*cm, 1, channel, taken) == 0);
  rdma_ucm_event_resp event;
  std::memcpy(&event, taken.event, sizeof(event));
  CHECK(event.uid == 1);
  CHECK(event.id == in.id);
  CHECK(event.event == in.event);
  CHECK(event.status == in.status);
  CHECK(std::memcmp(&event.param, &in.argument, sizeof(in.argument)) == 0);

  SECTION("those of the NIC are not its to write") {
    in.event = static_cast<uint32_t>(cm::EventType::established);
    CHECK(run(ROCEMU_CM_CMD_WRITE_CM_EVENT, in, 0) == EINVAL);
  }
  SECTION("nor those about an id of nobody's") {
    ++in.id;
    CHECK(run(ROCEMU_CM_CMD_WRITE_CM_EVENT, in, 0) == ENOENT);
  }
  SECTION("and those that find no room are refused") {
    int status = 0;
    for (size_t i = 0; status == 0 && i <= cm::RdmaLimits{}.max_events; ++i)
      status = run(ROCEMU_CM_CMD_WRITE_CM_EVENT, in, 0);
    CHECK(status == ENOMEM);
  }
}

TEST_CASE_METHOD(Program, "AF_IB is refused, and so are commands that do not exist") {
  rdma_ucm_bind bind{};
  bind.id = create();
  CHECK(run(RDMA_USER_CM_CMD_BIND, bind, 0) == ENOSYS);
  CHECK(run(ROCEMU_CM_CMD_RESOLVE_IB_SERVICE, bind, 0) == EOPNOTSUPP);
  CHECK(run(ROCEMU_CM_CMD_WRITE_CM_EVENT + 1, bind, 0) == EINVAL);
  rdma_ucm_bind_ip bind_ip{};
  bind_ip.id = bind.id;
  bind_ip.addr.sin6_family = 27;  // AF_IB
  CHECK(run(RDMA_USER_CM_CMD_BIND_IP, bind_ip, 0) == EINVAL);
}

TEST_CASE_METHOD(Program, "Random commands change nothing but what is the program's own") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    rocemu_cm_command command{};
    command.channel = random() % 3;
    command.command = static_cast<uint32_t>(random() % 26);
    command.other_channel = random() % 3;
    command.in_bytes = static_cast<uint32_t>(random() % (sizeof(command.in) + 1));
    command.out_bytes = static_cast<uint32_t>(random() % 1024);
    command.option_bytes = static_cast<uint32_t>(random() % (sizeof(command.option) + 1));
    for (uint8_t& byte : command.in)
      byte = random() % 4 != 0 ? 0 : static_cast<uint8_t>(random() % 12);
    if (random() % 2 == 0) command.in_bytes = sizeof(command.in);
    reply = {};
    const int status = run_cm_command(*cm, static_cast<TimeNs>(i), 1, command, reply);
    REQUIRE(status >= 0);
    REQUIRE(reply.out_bytes <= std::min<uint32_t>(command.out_bytes, sizeof(reply.out)));
    cm::OutgoingMad mad;
    while (cm->next_mad(mad)) cm->on_mad(static_cast<TimeNs>(i), mad.route, mad.mad);
  }
  cm->close_owner(0, 1);
  CHECK(cm->ids().empty());
  CHECK(cm->channel_count() == 0);
}

}  // namespace
}  // namespace rocemu::daemon
