// What the responder makes of requests to the kernel's RDMA core, read by libmnl as iproute2's rdma
// reads it; the NIC is the test's.
#include <errno.h>
#include <libmnl/libmnl.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "verbs_shim/netlink/responder.h"

namespace rocemu::netlink {
namespace {

constexpr uint32_t kPort = 4711;
constexpr uint32_t kSequence = 99;

// Two devices; the first has so many QPs, in pages of ten.
struct Nic {
  uint32_t qps = 0;
  uint32_t counter_names = 3;
  int error = 0;       // of list()
  bool stuck = false;  // says the same place again and again

  Model model() {
    return {this,
            [](void*, uint32_t device, rocemu_device_description& reply) {
              if (device > 1) return ENODEV;
              reply = {};
              snprintf(reply.name, sizeof(reply.name), "rocemu%u", device);
              snprintf(reply.fw_ver, sizeof(reply.fw_ver), "1.2.3");
              reply.node_guid = 0x0102030405060708;
              reply.device_cap_flags = 5;
              reply.port_state = 4;
              reply.phys_state = 5;
              reply.uverbs_major = 231;
              reply.uverbs_minor = 192 + device;
              reply.counts[ROCEMU_RESOURCE_QP] = 7;
              return 0;
            },
            [](void* nic, const rocemu_list_resources& from, rocemu_resources& reply) {
              return static_cast<Nic*>(nic)->list(from, reply);
            },
            [](void* nic, const rocemu_named_counters_of& of, rocemu_named_counters& reply) {
              reply = {};
              if (of.qp_num == 13) return ENOENT;
              reply.count = static_cast<Nic*>(nic)->counter_names;
              for (uint32_t i = 0; i < reply.count && i < ROCEMU_NAMED_COUNTERS_MAX; ++i) {
                memset(reply.counters[i].name, 'x', sizeof(reply.counters[i].name));
                reply.counters[i].value = 1000 * of.qp_num + i;
              }
              return 0;
            }};
  }

 private:
  int list(const rocemu_list_resources& from, rocemu_resources& reply) {
    reply = {};
    if (from.kind != ROCEMU_RESOURCE_QP || from.device_index != 0) return error;
    uint32_t at = from.place;
    for (; at < qps && reply.count < 10; ++at) reply.resources[reply.count++] = qp(at);
    reply.more = at < qps || stuck ? 1 : 0;
    reply.next_place = stuck ? from.place : at;
    return error;
  }
  static rocemu_resource qp(uint32_t place) {
    rocemu_resource qp = {};
    qp.number = 10 + place;
    qp.pid = 1234;
    qp.pd = 5;
    qp.type = 2;
    qp.state = 3;
    qp.port = place % 2;
    qp.qp = {500 + place, 1, 2, 0};
    return qp;
  }
};

// A request, and what is said of it.
struct Conversation {
  explicit Conversation(Nic& nic) : responder(nic.model()) {
    responder.set_port(kPort);
    responder.set_extended_ack(true);
  }

  void begin(uint16_t command, uint16_t flags) {
    request = mnl_nlmsg_put_header(buffer);
    request->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
    request->nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
    request->nlmsg_seq = kSequence;
  }
  void put(uint16_t attribute, uint32_t value) { mnl_attr_put_u32(request, attribute, value); }

  // Sends it and hands each message to `on`, until acknowledged or done: the errno.
  int ask(const std::function<void(const nlmsghdr&)>& on = [](const nlmsghdr&) {}) {
    REQUIRE(responder.take(buffer, request->nlmsg_len) == 0);
    int status = -1;
    std::vector<char> answer;
    while (next(answer)) {
      CHECK(status == -1);  // nothing comes behind the end
      const auto each = [&](const nlmsghdr& message) {
        CHECK(mnl_nlmsg_seq_ok(&message, kSequence));
        CHECK(mnl_nlmsg_portid_ok(&message, kPort));
        if (message.nlmsg_type == NLMSG_ERROR || message.nlmsg_type == NLMSG_DONE) {
          status = -*static_cast<const int*>(mnl_nlmsg_get_payload(&message));
        } else {
          on(message);
        }
      };
      int left = static_cast<int>(answer.size());
      for (auto* at = reinterpret_cast<const nlmsghdr*>(answer.data()); mnl_nlmsg_ok(at, left);
           at = mnl_nlmsg_next(at, &left))
        each(*at);
      CHECK(left == 0);
    }
    return status;
  }
  bool next(std::vector<char>& answer) {
    alignas(nlmsghdr) char datagram[kDatagramBytes];
    const size_t bytes = responder.answer(datagram);
    answer.assign(datagram, datagram + bytes);
    return bytes > 0;
  }

  Responder responder;
  alignas(nlmsghdr) char buffer[kDatagramBytes] = {};
  nlmsghdr* request = nullptr;
};

using Attributes = std::map<uint16_t, const nlattr*>;

int collect(const nlattr* attribute, void* data) {
  (*static_cast<Attributes*>(data))[mnl_attr_get_type(attribute)] = attribute;
  return MNL_CB_OK;
}
Attributes attributes(const nlmsghdr& message) {
  Attributes all;
  REQUIRE(mnl_attr_parse(&message, 0, collect, &all) == MNL_CB_OK);
  return all;
}
Attributes attributes(const nlattr* nest) {
  Attributes all;
  REQUIRE(mnl_attr_parse_nested(nest, collect, &all) == MNL_CB_OK);
  return all;
}

// What a table holds, in its order.
std::vector<const nlattr*> entries(const nlattr* table) {
  std::vector<const nlattr*> all;
  const auto add = [](const nlattr* entry, void* data) {
    static_cast<std::vector<const nlattr*>*>(data)->push_back(entry);
    return MNL_CB_OK;
  };
  REQUIRE(mnl_attr_parse_nested(table, add, &all) == MNL_CB_OK);
  return all;
}

}  // namespace

TEST_CASE("all devices are listed, with what libibverbs wants to know of them") {
  Nic nic;
  Conversation talk(nic);
  talk.begin(RDMA_NLDEV_CMD_GET, NLM_F_DUMP | NLM_F_ACK);
  std::vector<std::string> names;
  CHECK(talk.ask([&](const nlmsghdr& message) {
    CHECK((message.nlmsg_flags & NLM_F_MULTI) != 0);
    auto all = attributes(message);
    CHECK(mnl_attr_get_u32(all.at(RDMA_NLDEV_ATTR_DEV_INDEX)) == names.size());
    names.emplace_back(mnl_attr_get_str(all.at(RDMA_NLDEV_ATTR_DEV_NAME)));
    CHECK(mnl_attr_get_u32(all.at(RDMA_NLDEV_ATTR_PORT_INDEX)) == 1);
    CHECK(mnl_attr_get_u64(all.at(RDMA_NLDEV_ATTR_NODE_GUID)) == 0x0102030405060708);
    CHECK(mnl_attr_get_u64(all.at(RDMA_NLDEV_ATTR_CAP_FLAGS)) == 5);
    CHECK(mnl_attr_get_u8(all.at(RDMA_NLDEV_ATTR_DEV_NODE_TYPE)) == RDMA_NODE_IB_CA);
    CHECK(std::string(mnl_attr_get_str(all.at(RDMA_NLDEV_ATTR_FW_VERSION))) == "1.2.3");
    CHECK(std::string(mnl_attr_get_str(all.at(RDMA_NLDEV_ATTR_DEV_PROTOCOL))) == "roce");
  }) == 0);
  CHECK(names == std::vector<std::string>{"rocemu0", "rocemu1"});
}

TEST_CASE("a port says its state, and an interface only where it has one") {
  Nic nic;
  Conversation talk(nic);
  const bool dump = GENERATE(false, true);
  talk.begin(RDMA_NLDEV_CMD_PORT_GET, dump ? NLM_F_DUMP : NLM_F_ACK);
  talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 1);
  talk.put(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  int ports = 0;
  CHECK(talk.ask([&](const nlmsghdr& message) {
    ++ports;
    auto all = attributes(message);
    CHECK(mnl_attr_get_u32(all.at(RDMA_NLDEV_ATTR_DEV_INDEX)) == 1);
    CHECK(mnl_attr_get_u8(all.at(RDMA_NLDEV_ATTR_PORT_STATE)) == 4);
    CHECK(mnl_attr_get_u8(all.at(RDMA_NLDEV_ATTR_PORT_PHYS_STATE)) == 5);
    CHECK_FALSE(all.contains(RDMA_NLDEV_ATTR_NDEV_NAME));
  }) == 0);
  CHECK(ports == 1);
}

TEST_CASE("a summary has every kind of object") {
  Nic nic;
  Conversation talk(nic);
  talk.begin(RDMA_NLDEV_CMD_RES_GET, NLM_F_ACK);
  talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 0);
  std::map<std::string, uint64_t> counts;
  CHECK(talk.ask([&](const nlmsghdr& message) {
    for (const nlattr* entry : entries(attributes(message).at(RDMA_NLDEV_ATTR_RES_SUMMARY))) {
      auto line = attributes(entry);
      counts[mnl_attr_get_str(line.at(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME))] =
          mnl_attr_get_u64(line.at(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR));
    }
  }) == 0);
  CHECK(counts.size() == 7);
  CHECK(counts.at("qp") == 7);
}

TEST_CASE("all QPs of a device come in as many messages as it takes") {
  Nic nic;
  nic.qps = GENERATE(0, 1, 10, 11, 1000);
  Conversation talk(nic);
  talk.begin(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP | NLM_F_ACK);
  talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 0);
  uint32_t seen = 0;
  CHECK(talk.ask([&](const nlmsghdr& message) {
    for (const nlattr* entry : entries(attributes(message).at(RDMA_NLDEV_ATTR_RES_QP))) {
      auto qp = attributes(entry);
      CHECK(mnl_attr_get_u32(qp.at(RDMA_NLDEV_ATTR_RES_LQPN)) == 10 + seen);
      CHECK(mnl_attr_get_u32(qp.at(RDMA_NLDEV_ATTR_RES_RQPN)) == 500 + seen);
      CHECK(mnl_attr_get_u8(qp.at(RDMA_NLDEV_ATTR_RES_STATE)) == 3);
      CHECK(mnl_attr_get_u32(qp.at(RDMA_NLDEV_ATTR_RES_PID)) == 1234);
      CHECK(qp.contains(RDMA_NLDEV_ATTR_PORT_INDEX) == (seen % 2 == 1));
      ++seen;
    }
  }) == 0);
  CHECK(seen == nic.qps);
}

TEST_CASE("those of a port alone can be asked for, and one by its number") {
  Nic nic;
  nic.qps = 100;
  Conversation talk(nic);
  uint32_t seen = 0;
  talk.begin(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP);
  talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 0);
  talk.put(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  CHECK(talk.ask([&](const nlmsghdr& message) {
    seen += static_cast<uint32_t>(entries(attributes(message).at(RDMA_NLDEV_ATTR_RES_QP)).size());
  }) == 0);
  CHECK(seen == 50);

  talk.begin(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_ACK);
  talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 0);
  talk.put(RDMA_NLDEV_ATTR_RES_LQPN, 99);
  CHECK(talk.ask([&](const nlmsghdr& message) {
    CHECK(mnl_attr_get_u32(attributes(message).at(RDMA_NLDEV_ATTR_RES_LQPN)) == 99);
    ++seen;
  }) == 0);
  CHECK(seen == 51);

  talk.begin(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_ACK);
  talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 0);
  talk.put(RDMA_NLDEV_ATTR_RES_LQPN, 5);
  CHECK(talk.ask() == ENOENT);
}

TEST_CASE("counters of the port, of each QP, and as many as fit a page") {
  Nic nic;
  nic.qps = 5;
  nic.counter_names = GENERATE(0, 3, ROCEMU_NAMED_COUNTERS_MAX, UINT32_MAX);
  Conversation talk(nic);
  talk.begin(RDMA_NLDEV_CMD_STAT_GET, NLM_F_ACK);
  talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 0);
  talk.put(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  uint32_t names = 0;
  CHECK(talk.ask([&](const nlmsghdr& message) {
    for (const nlattr* entry : entries(attributes(message).at(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS))) {
      auto line = attributes(entry);
      CHECK(mnl_attr_get_u64(line.at(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE)) == names++);
    }
  }) == 0);
  CHECK(names >= std::min(nic.counter_names, 60u));

  talk.begin(RDMA_NLDEV_CMD_STAT_GET, NLM_F_DUMP);
  talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 0);
  talk.put(RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
  std::vector<uint32_t> qps;
  CHECK(talk.ask([&](const nlmsghdr& message) {
    for (const nlattr* entry : entries(attributes(message).at(RDMA_NLDEV_ATTR_STAT_COUNTER))) {
      auto line = attributes(entry);
      qps.push_back(mnl_attr_get_u32(line.at(RDMA_NLDEV_ATTR_STAT_COUNTER_ID)));
      CHECK(line.contains(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS));
      CHECK(line.contains(RDMA_NLDEV_ATTR_RES_QP));
    }
  }) == 0);
  CHECK(qps == std::vector<uint32_t>{10, 11, 12, 14});  // 13 has gone meanwhile
}

TEST_CASE("the node of a device, as libibverbs asks for it") {
  Nic nic;
  Conversation talk(nic);
  talk.begin(RDMA_NLDEV_CMD_GET_CHARDEV, 0);
  talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 1);
  mnl_attr_put_strz(talk.request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs");
  CHECK(talk.ask([](const nlmsghdr& message) {
    auto all = attributes(message);
    CHECK(mnl_attr_get_u64(all.at(RDMA_NLDEV_ATTR_CHARDEV)) == (231 << 8 | 193));
    CHECK(std::string(mnl_attr_get_str(all.at(RDMA_NLDEV_ATTR_CHARDEV_NAME))) == "uverbs1");
  }) == -1);  // no acknowledgement was asked for
}

TEST_CASE("what is asked wrongly is EINVAL, and what would change devices is refused") {
  Nic nic;
  Conversation talk(nic);
  const auto status_of = [&](uint16_t command, std::vector<std::pair<uint16_t, uint32_t>> numbers) {
    talk.begin(command, NLM_F_ACK);
    for (const auto& [attribute, value] : numbers) talk.put(attribute, value);
    return talk.ask();
  };
  CHECK(status_of(RDMA_NLDEV_CMD_GET, {}) == EINVAL);
  CHECK(status_of(RDMA_NLDEV_CMD_GET, {{RDMA_NLDEV_ATTR_DEV_INDEX, 2}}) == ENODEV);
  CHECK(status_of(RDMA_NLDEV_CMD_PORT_GET, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}}) == EINVAL);
  CHECK(status_of(RDMA_NLDEV_CMD_PORT_GET,
                  {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}, {RDMA_NLDEV_ATTR_PORT_INDEX, 2}}) == EINVAL);
  CHECK(status_of(RDMA_NLDEV_CMD_RES_QP_GET, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}}) == EINVAL);
  for (const uint16_t command :
       {RDMA_NLDEV_CMD_SET, RDMA_NLDEV_CMD_NEWLINK, RDMA_NLDEV_CMD_DELLINK, RDMA_NLDEV_CMD_SYS_SET,
        RDMA_NLDEV_CMD_STAT_SET, RDMA_NLDEV_CMD_RES_QP_GET_RAW})
    CHECK(status_of(command, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}}) == EOPNOTSUPP);
  CHECK(status_of(1023, {}) == EOPNOTSUPP);
  talk.begin(RDMA_NLDEV_CMD_GET, NLM_F_ACK);
  talk.request->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_LS, 0);
  CHECK(talk.ask() == EINVAL);
  talk.begin(RDMA_NLDEV_CMD_GET, NLM_F_ACK);
  mnl_attr_put_u8(talk.request, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
  CHECK(talk.ask() == EINVAL);
  talk.begin(RDMA_NLDEV_CMD_GET_CHARDEV, NLM_F_ACK);
  mnl_attr_put(talk.request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, 6, "uverbs");  // without its end
  CHECK(talk.ask() == EINVAL);
}

TEST_CASE("a request that is cut short anywhere is answered by EINVAL, and by nothing else") {
  Nic nic;
  Conversation talk(nic);
  talk.begin(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_ACK);
  talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 0);
  talk.put(RDMA_NLDEV_ATTR_RES_LQPN, 10);
  for (size_t length = 1; length < talk.request->nlmsg_len; ++length) {
    CAPTURE(length);
    REQUIRE(talk.responder.take(talk.buffer, length) == 0);
    std::vector<char> answer;
    REQUIRE(talk.next(answer));
    const auto* const message = reinterpret_cast<const nlmsghdr*>(answer.data());
    CHECK(message->nlmsg_type == NLMSG_ERROR);
    CHECK(static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(message))->error == -EINVAL);
    CHECK_FALSE(talk.next(answer));
  }
  // The same, with lengths that lie.
  for (uint32_t length = 0; length < 64; ++length) {
    if (length == 32) continue;  // the true one
    CAPTURE(length);
    const uint32_t sent = talk.request->nlmsg_len;
    talk.request->nlmsg_len = length;
    REQUIRE(talk.responder.take(talk.buffer, sent) == 0);
    talk.request->nlmsg_len = sent;
    std::vector<char> answer;
    REQUIRE(talk.next(answer));
    CHECK(reinterpret_cast<const nlmsghdr*>(answer.data())->nlmsg_type == NLMSG_ERROR);
    while (talk.next(answer)) {
    }
  }
}

TEST_CASE("any bytes are answered, and the answers come to an end") {
  Nic nic;
  nic.qps = 30;
  Conversation talk(nic);
  uint32_t state = 1;
  const auto random = [&] { return state = state * 1664525 + 1013904223; };
  for (int round = 0; round < 20000; ++round) {
    talk.begin(static_cast<uint16_t>(random() % 32), static_cast<uint16_t>(random() % 1024));
    talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, random() % 3);
    talk.put(static_cast<uint16_t>(random() % 100), random() % 12);
    for (int i = 0; i < 3; ++i) {
      const size_t at = random() % 32;
      if (random() % 2 == 0) talk.buffer[at] = static_cast<char>(random() >> 24);
    }
    REQUIRE(talk.responder.take(talk.buffer, 32) == 0);
    std::vector<char> answer;
    for (int datagrams = 0; talk.next(answer); ++datagrams) REQUIRE(datagrams < 200);
  }
}

TEST_CASE("a NIC that fails or lies ends a dump with an errno") {
  Nic nic;
  nic.qps = 30;
  Conversation talk(nic);
  const auto dump = [&] {
    talk.begin(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP);
    talk.put(RDMA_NLDEV_ATTR_DEV_INDEX, 0);
    return talk.ask();
  };
  nic.error = EIO;
  CHECK(dump() == EIO);
  nic.error = 0;
  nic.stuck = true;
  CHECK(dump() == EIO);
  nic.stuck = false;
  CHECK(dump() == 0);
}

TEST_CASE("a datagram is not taken while answers to another are, nor one over a page") {
  Nic nic;
  Conversation talk(nic);
  talk.begin(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
  REQUIRE(talk.responder.take(talk.buffer, talk.request->nlmsg_len) == 0);
  CHECK(talk.responder.take(talk.buffer, talk.request->nlmsg_len) == EBUSY);
  std::vector<char> answer;
  while (talk.next(answer)) {
  }
  CHECK(talk.responder.take(talk.buffer, talk.request->nlmsg_len) == 0);
  talk.responder.start_anew();
  CHECK_FALSE(talk.next(answer));
  const std::vector<char> large(kDatagramBytes + 1);
  CHECK(talk.responder.take(large.data(), large.size()) == EMSGSIZE);
}

TEST_CASE("who asks for it hears why a change is refused") {
  Nic nic;
  Conversation talk(nic);
  talk.begin(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
  REQUIRE(talk.responder.take(talk.buffer, talk.request->nlmsg_len) == 0);
  std::vector<char> answer;
  REQUIRE(talk.next(answer));
  const auto* const message = reinterpret_cast<const nlmsghdr*>(answer.data());
  CHECK((message->nlmsg_flags & NLM_F_ACK_TLVS) != 0);
  const auto* const why = reinterpret_cast<const nlattr*>(
      static_cast<const char*>(mnl_nlmsg_get_payload_offset(message, sizeof(nlmsgerr))));
  CHECK(mnl_attr_get_type(why) == NLMSGERR_ATTR_MSG);
  CHECK(std::string(mnl_attr_get_str(why)).find("rocemu up") != std::string::npos);
}

}  // namespace rocemu::netlink
