// reconnect ADDRESS: a server that answers calls over RDMA until it is killed.
// reconnect ADDRESS CALLS: its client, which as NFS over RDMA does takes any failed completion for
// a lost connection: it says rdma_disconnect, connects anew, and makes the call again that was not
// answered. Prints how many connections CALLS calls took.
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>

#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {
namespace {

constexpr char kPort[] = "7471";
constexpr int kSlots = 8;
constexpr int kPatience_ms = 10'000;

void must_call(int result, const char* what) {
  if (result != 0) fail_errno(errno, what);
}

struct Address {
  Address(const char* host, bool passive) {
    rdma_addrinfo hints{};
    hints.ai_port_space = RDMA_PS_TCP;
    hints.ai_flags = passive ? RAI_PASSIVE | RAI_NUMERICHOST : RAI_NUMERICHOST;
    must_call(rdma_getaddrinfo(host, kPort, &hints, &info), "rdma_getaddrinfo");
  }
  ~Address() { rdma_freeaddrinfo(info); }
  rdma_addrinfo* info = nullptr;
};

// One end of a connection, with receives posted. Its QP goes with it.
struct Connection {
  explicit Connection(rdma_cm_id* cm_id) : id(cm_id) {
    ibv_qp_init_attr attr{};
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {kSlots, kSlots, 1, 1, 0};
    must_call(rdma_create_qp(id, nullptr, &attr), "rdma_create_qp");
    mr = must(rdma_reg_msgs(id, words, sizeof(words)), "rdma_reg_msgs");
    for (int slot = 1; slot < kSlots; ++slot) receive(slot);
  }
  ~Connection() {
    rdma_dereg_mr(mr);
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void receive(int slot) {
    must_call(rdma_post_recv(id, &words[slot], &words[slot], sizeof(words[slot]), mr),
              "rdma_post_recv");
  }
  bool send(uint64_t word) {
    words[0] = word;
    return rdma_post_send(id, nullptr, words, sizeof(words[0]), mr, IBV_SEND_SIGNALED) == 0;
  }
  // The next received word: 1; none: 0; the connection is lost: -1.
  int take(uint64_t& word) {
    ibv_wc wc;
    while (ibv_poll_cq(id->send_cq, 1, &wc) > 0)
      if (wc.status != IBV_WC_SUCCESS) return -1;
    if (ibv_poll_cq(id->recv_cq, 1, &wc) <= 0) return 0;
    if (wc.status != IBV_WC_SUCCESS) return -1;
    const auto* const slot = reinterpret_cast<const uint64_t*>(wc.wr_id);
    word = *slot;
    receive(static_cast<int>(slot - words));
    return 1;
  }

  rdma_cm_id* id;
  ibv_mr* mr;
  uint64_t words[kSlots] = {};
};

// Answers each call with its number and 1, on as many connections as there are.
class Server {
 public:
  explicit Server(const char* host) : channel_(must(rdma_create_event_channel(), "a channel")) {
    const Address address(host, true);
    must_call(rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP), "rdma_create_id");
    must_call(rdma_bind_addr(listener_, address.info->ai_src_addr), "rdma_bind_addr");
    must_call(rdma_listen(listener_, kSlots), "rdma_listen");
  }

  [[noreturn]] void run() {
    for (;;) {
      pollfd waits{channel_->fd, POLLIN, 0};
      if (poll(&waits, 1, 0) > 0) on_event();
      for (const auto& connection : connections_) {
        uint64_t word;
        while (connection->take(word) == 1) connection->send(word + 1);
      }
    }
  }

 private:
  void on_event() {
    rdma_cm_event* event = nullptr;
    must_call(rdma_get_cm_event(channel_, &event), "rdma_get_cm_event");
    const rdma_cm_event_type type = event->event;
    rdma_cm_id* const id = event->id;
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      connections_.push_back(std::make_unique<Connection>(id));
      must_call(rdma_accept(id, nullptr), "rdma_accept");
    } else if (type == RDMA_CM_EVENT_DISCONNECTED) {
      rdma_disconnect(id);
      connections_.remove_if([&](const auto& connection) { return connection->id == id; });
    }
  }

  rdma_event_channel* channel_;
  rdma_cm_id* listener_ = nullptr;
  std::list<std::unique_ptr<Connection>> connections_;
};

// Without a channel of its own each call of librdmacm waits for its outcome.
std::unique_ptr<Connection> connect_to(const char* host) {
  const Address address(host, false);
  rdma_cm_id* id = nullptr;
  must_call(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  must_call(rdma_resolve_addr(id, nullptr, address.info->ai_dst_addr, kPatience_ms),
            "rdma_resolve_addr");
  must_call(rdma_resolve_route(id, kPatience_ms), "rdma_resolve_route");
  auto connection = std::make_unique<Connection>(id);
  rdma_conn_param parameters{};
  parameters.retry_count = 3;
  parameters.rnr_retry_count = 7;
  must_call(rdma_connect(id, &parameters), "rdma_connect");
  return connection;
}

// True when the call was answered.
bool call(Connection& connection, uint64_t number) {
  if (!connection.send(number)) return false;
  uint64_t answer = 0;
  int taken = 0;
  while (taken == 0) taken = connection.take(answer);
  if (taken == 1 && answer != number + 1)
    fail("the answer to %llu is %llu", static_cast<unsigned long long>(number),
         static_cast<unsigned long long>(answer));
  return taken == 1;
}

void run(const char* host, uint64_t calls) {
  auto connection = connect_to(host);
  int connections = 1;
  for (uint64_t number = 0; number < calls; ++number)
    while (!call(*connection, number)) {
      rdma_disconnect(connection->id);
      connection.reset();
      connection = connect_to(host);
      ++connections;
    }
  rdma_disconnect(connection->id);
  std::printf("%llu calls, %d connections\n", static_cast<unsigned long long>(calls), connections);
}

}  // namespace
}  // namespace rocemu::e2e

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "%s ADDRESS [CALLS]\n", argv[0]);
    return 2;
  }
  try {
    if (argc == 2) rocemu::e2e::Server(argv[1]).run();
    rocemu::e2e::run(argv[1], std::strtoull(argv[2], nullptr, 10));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAIL %s\n", failure.what());
  }
  return 1;
}
