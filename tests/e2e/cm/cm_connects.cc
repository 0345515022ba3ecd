// Connections by librdmacm, as many as wanted, and what must fail, with the event that must follow.
// One process is both sides: a server thread and clients.
//
//   cm_connects sequence N      N times: connect, disconnect, destroy
//   cm_connects at-once N       N connections under way at the same time
//   cm_connects errors          a row for each mistake
//   cm_connects serve           a server for ever; cm_connects hold STATE: a client that says
//   "ready" in
//                               that state (connecting, connected) and sleeps, to be killed
#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr const char* kServer = "10.77.0.2";
constexpr uint16_t kPort = 7471;
constexpr int kTimeoutMs = 2000;
constexpr int kPatienceMs = 30000;  // for an event that is due: on bad links after many repetitions
constexpr int kForEver = -1;

[[noreturn]] void fail(const std::string& what) {
  std::printf("FAIL %s (%s)\n", what.c_str(), std::strerror(errno));
  std::fflush(stdout);
  _exit(1);
}

void must(int result, const char* what) {
  if (result != 0) fail(what);
}

sockaddr_in address(const char* ip, uint16_t port) {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  inet_pton(AF_INET, ip, &in.sin_addr);
  return in;
}

struct Event {
  rdma_cm_event_type type;
  int status;
  rdma_cm_id* id;
  std::string data;
};

class Channel {
 public:
  Channel() : channel_(rdma_create_event_channel()) {
    if (channel_ == nullptr) fail("rdma_create_event_channel");
  }
  ~Channel() { rdma_destroy_event_channel(channel_); }

  rdma_cm_id* new_id(rdma_port_space space = RDMA_PS_TCP) {
    rdma_cm_id* id = nullptr;
    must(rdma_create_id(channel_, &id, nullptr, space), "rdma_create_id");
    return id;
  }

  Event next(int patience_ms = kPatienceMs) {
    if (!readable(patience_ms)) {
      errno = ETIMEDOUT;
      fail("no event");
    }
    rdma_cm_event* event = nullptr;
    must(rdma_get_cm_event(channel_, &event), "rdma_get_cm_event");
    Event copy{event->event, event->status, event->id, {}};
    if (event->param.conn.private_data != nullptr)
      copy.data.assign(static_cast<const char*>(event->param.conn.private_data),
                       event->param.conn.private_data_len);
    must(rdma_ack_cm_event(event), "rdma_ack_cm_event");
    return copy;
  }

  // The next event but for TIMEWAIT's end, which comes when it wants.
  Event expect(rdma_cm_event_type type) {
    Event event = next();
    while (event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT) event = next();
    if (event.type != type)
      fail(std::string(rdma_event_str(event.type)) + " instead of " + rdma_event_str(type));
    return event;
  }

  rdma_event_channel* get() const { return channel_; }

  bool readable(int timeout_ms) const {
    pollfd fd = {channel_->fd, POLLIN, 0};
    return poll(&fd, 1, timeout_ms) == 1;
  }

 private:
  rdma_event_channel* channel_;
};

// A QP for each id would take most of the time; the numbers of these exist nowhere.
rdma_conn_param parameters(uint32_t qp_num) {
  rdma_conn_param param = {};
  param.qp_num = qp_num;
  param.retry_count = 7;
  param.rnr_retry_count = 7;
  return param;
}

std::atomic<uint32_t> last_qp_num{0x1000};

// Accepts what comes and destroys what has gone, until the process ends.
void serve(Channel& channel, rdma_cm_id* listener) {
  (void)listener;
  for (;;) {
    const Event event = channel.next(kForEver);
    rdma_conn_param param = parameters(++last_qp_num);
    switch (event.type) {
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        if (rdma_accept(event.id, &param) != 0) rdma_destroy_id(event.id);
        break;
      case RDMA_CM_EVENT_DISCONNECTED:
      case RDMA_CM_EVENT_REJECTED:
      case RDMA_CM_EVENT_UNREACHABLE:
        rdma_destroy_id(event.id);
        break;
      default:
        break;
    }
  }
}

rdma_cm_id* listen_at(Channel& channel, uint16_t port, int backlog) {
  rdma_cm_id* id = channel.new_id();
  sockaddr_in any = address("0.0.0.0", port);
  must(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any)), "rdma_bind_addr");
  must(rdma_listen(id, backlog), "rdma_listen");
  return id;
}

void start_server() {
  auto* channel = new Channel;
  rdma_cm_id* listener = listen_at(*channel, kPort, 1024);
  std::thread([channel, listener] { serve(*channel, listener); }).detach();
}

rdma_cm_id* resolved(Channel& channel, uint16_t port = kPort) {
  rdma_cm_id* id = channel.new_id();
  sockaddr_in to = address(kServer, port);
  must(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), kTimeoutMs),
       "rdma_resolve_addr");
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  must(rdma_resolve_route(id, kTimeoutMs), "rdma_resolve_route");
  channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  return id;
}

void connect(rdma_cm_id* id) {
  rdma_conn_param param = parameters(++last_qp_num);
  must(rdma_connect(id, &param), "rdma_connect");
}

void sequence(int count) {
  start_server();
  Channel channel;
  for (int i = 0; i < count; ++i) {
    rdma_cm_id* id = resolved(channel);
    connect(id);
    channel.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
    must(rdma_establish(id), "rdma_establish");
    must(rdma_disconnect(id), "rdma_disconnect");
    channel.expect(RDMA_CM_EVENT_DISCONNECTED);
    must(rdma_destroy_id(id), "rdma_destroy_id");
  }
}

void at_once(int count) {
  start_server();
  Channel channel;
  std::vector<rdma_cm_id*> ids;
  for (int i = 0; i < count; ++i) ids.push_back(resolved(channel));
  for (rdma_cm_id* id : ids) connect(id);
  for (int i = 0; i < count; ++i)
    must(rdma_establish(channel.expect(RDMA_CM_EVENT_CONNECT_RESPONSE).id), "rdma_establish");
  for (rdma_cm_id* id : ids) must(rdma_disconnect(id), "rdma_disconnect");
  for (int i = 0; i < count; ++i) channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  for (rdma_cm_id* id : ids) must(rdma_destroy_id(id), "rdma_destroy_id");
}

// ---- mistakes ----

void expect_errno(int result, int error, const char* what) {
  if (result != -1 || errno != error) fail(what);
}

void no_listener() {
  Channel channel;
  rdma_cm_id* id = resolved(channel, 9);
  connect(id);
  if (channel.expect(RDMA_CM_EVENT_REJECTED).status != 8) fail("not an invalid service id");
  rdma_destroy_id(id);
}

void wrong_port_space() {
  Channel channel;
  rdma_cm_id* listener = channel.new_id(RDMA_PS_UDP);
  sockaddr_in any = address("0.0.0.0", 7480);
  must(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)), "rdma_bind_addr");
  must(rdma_listen(listener, 1), "rdma_listen");
  rdma_cm_id* id = resolved(channel, 7480);
  connect(id);
  if (channel.expect(RDMA_CM_EVENT_REJECTED).status != 8) fail("not an invalid service id");
  rdma_destroy_id(id);
  rdma_destroy_id(listener);
}

void rejected_with_data() {
  Channel server;
  Channel client;
  rdma_cm_id* listener = listen_at(server, 7481, 4);
  rdma_cm_id* id = resolved(client, 7481);
  connect(id);
  rdma_cm_id* child = server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  must(rdma_reject(child, "go away", 8), "rdma_reject");
  const Event event = client.expect(RDMA_CM_EVENT_REJECTED);
  if (event.status != 28) fail("not consumer-defined");
  if (std::strcmp(event.data.c_str(), "go away") != 0) fail("other private data");
  rdma_destroy_id(child);
  rdma_destroy_id(id);
  rdma_destroy_id(listener);
}

void backlog_full() {
  Channel server;
  Channel client;
  rdma_cm_id* listener = listen_at(server, 7482, 1);
  rdma_cm_id* first = resolved(client, 7482);
  rdma_cm_id* second = resolved(client, 7482);
  connect(first);
  if (!server.readable(kTimeoutMs)) fail("no request");
  connect(second);
  if (client.readable(500)) fail("the second one was answered");
  rdma_cm_id* child = server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  rdma_cm_id* later = server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  for (rdma_cm_id* each : {child, later, first, second, listener}) rdma_destroy_id(each);
}

void address_errors() {
  const auto resolve = [](const char* ip) {
    Channel channel;
    rdma_cm_id* id = channel.new_id();
    sockaddr_in to = address(ip, 1);
    must(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), kTimeoutMs),
         "rdma_resolve_addr");
    const int status = channel.expect(RDMA_CM_EVENT_ADDR_ERROR).status;
    rdma_destroy_id(id);
    return status;
  };
  if (resolve("10.77.9.9") != -EHOSTUNREACH) fail("not EHOSTUNREACH");
  if (resolve("192.0.2.77") != -ENETUNREACH) fail("not ENETUNREACH");
}

void bad_calls() {
  Channel channel;
  rdma_cm_id* id = channel.new_id();
  sockaddr_in nobody = address("192.0.2.77", 7483);
  expect_errno(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&nobody)), EADDRNOTAVAIL,
               "a foreign address could be bound");
  sockaddr_in own = address(kServer, 7483);
  must(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&own)), "rdma_bind_addr");
  rdma_cm_id* other = channel.new_id();
  expect_errno(rdma_bind_addr(other, reinterpret_cast<sockaddr*>(&own)), EADDRINUSE,
               "a port could be bound twice");
  must(rdma_listen(id, 1), "rdma_listen");
  expect_errno(rdma_listen(id, 1), EINVAL, "a listener listened again");
  rdma_destroy_id(other);
  rdma_destroy_id(id);
}

rdma_cm_id* bound(Channel& channel, uint16_t port, bool reuse) {
  rdma_cm_id* id = channel.new_id();
  int value = reuse ? 1 : 0;
  must(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, sizeof(value)),
       "rdma_set_option");
  sockaddr_in own = address(kServer, port);
  if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&own)) == 0) return id;
  rdma_destroy_id(id);
  return nullptr;
}

// A port may be bound twice when both ids say so, and as long as no one listens
// (rdma_set_option(3)).
void reused_port() {
  Channel channel;
  rdma_cm_id* first = bound(channel, 7484, true);
  rdma_cm_id* second = bound(channel, 7484, true);
  if (first == nullptr || second == nullptr) fail("a port could not be shared");
  if (bound(channel, 7484, false) != nullptr) fail("a port was shared with one that does not");
  rdma_destroy_id(second);
  must(rdma_listen(first, 1), "rdma_listen");
  if (bound(channel, 7484, true) != nullptr) fail("the port of a listener was shared");
  rdma_destroy_id(first);
}

void any_port() {
  Channel channel;
  rdma_cm_id* first = bound(channel, 0, false);
  rdma_cm_id* second = bound(channel, 0, false);
  if (first == nullptr || second == nullptr) fail("no port was found");
  if (rdma_get_src_port(first) == 0) fail("port 0");
  if (rdma_get_src_port(first) == rdma_get_src_port(second)) fail("the same port twice");
  rdma_destroy_id(first);
  rdma_destroy_id(second);
}

// librdmacm asks the device once whether it takes AF_IB, and refuses it from then on by itself.
void native_addresses() {
  Channel channel;
  rdma_cm_id* id = channel.new_id();
  sockaddr_ib native{};
  native.sib_family = AF_IB;
  expect_errno(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&native)), EINVAL,
               "an AF_IB address could be bound");
  expect_errno(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&native), kTimeoutMs),
               EINVAL, "an AF_IB address could be resolved");
  rdma_destroy_id(id);
}

// Both sides hear of the end of a connection, and of the end of its TIMEWAIT.
void timewait() {
  Channel server;
  Channel client;
  rdma_cm_id* listener = listen_at(server, 7485, 1);
  rdma_cm_id* id = resolved(client, 7485);
  connect(id);
  rdma_cm_id* child = server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  rdma_conn_param param = parameters(++last_qp_num);
  must(rdma_accept(child, &param), "rdma_accept");
  client.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  must(rdma_establish(id), "rdma_establish");
  server.expect(RDMA_CM_EVENT_ESTABLISHED);
  must(rdma_disconnect(id), "rdma_disconnect");
  for (Channel* side : {&client, &server}) {
    side->expect(RDMA_CM_EVENT_DISCONNECTED);
    if (side->next().type != RDMA_CM_EVENT_TIMEWAIT_EXIT) fail("TIMEWAIT does not end");
  }
  for (rdma_cm_id* each : {id, child, listener}) rdma_destroy_id(each);
}

std::atomic<int> signals_seen{0};

// A signal ends a wait for an event as it does one with the kernel's channels: unless its handler
// has SA_RESTART.
void signal_while_waiting() {
  for (const int flags : {SA_RESTART, 0}) {
    struct sigaction action = {};
    action.sa_handler = [](int) { ++signals_seen; };
    action.sa_flags = flags;
    must(sigaction(SIGUSR1, &action, nullptr), "sigaction");
    Channel channel;
    rdma_cm_id* id = channel.new_id();
    const int before = signals_seen;
    std::thread other([id, waiter = pthread_self()] {
      usleep(50'000);
      pthread_kill(waiter, SIGUSR1);
      usleep(50'000);
      sockaddr_in to = address(kServer, 1);
      must(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), kTimeoutMs),
           "rdma_resolve_addr");
    });
    rdma_cm_event* event = nullptr;
    const int result = rdma_get_cm_event(channel.get(), &event);
    if (flags == 0) {
      expect_errno(result, EINTR, "a signal did not end the wait");
      channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    } else {
      must(result, "rdma_get_cm_event after a signal");
      must(rdma_ack_cm_event(event), "rdma_ack_cm_event");
    }
    other.join();
    if (signals_seen == before) fail("no signal");
    // Each event's byte has been taken: nothing more is there.
    if (channel.readable(0)) fail("an event that nobody sent");
    rdma_destroy_id(id);
  }
}

// Takes events as they are told by poll(2), as rping does, until `over` can be read.
void take_events(rdma_event_channel* channel, int over) {
  for (;;) {
    pollfd fds[] = {{over, POLLIN, 0}, {channel->fd, POLLIN, 0}};
    if (poll(fds, 2, kForEver) < 0) fail("poll");
    if ((fds[0].revents & POLLIN) != 0) return;
    if ((fds[1].revents & POLLIN) == 0) continue;
    rdma_cm_event* event = nullptr;
    must(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    must(rdma_ack_cm_event(event), "rdma_ack_cm_event");
  }
}

void resolve(rdma_cm_id* id) {
  sockaddr_in to = address(kServer, 1);
  must(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), kTimeoutMs),
       "rdma_resolve_addr");
}

// An id is destroyed while another thread is told of its event: either that one gets it, or it is
// told of none. A moment between poll and rdma_get_cm_event remains, as with the kernel's channels:
// on a busy machine a few in a hundred; without the care that is tested here it is most.
void destroyed_with_an_event() {
  constexpr int kTimes = 200;
  int stuck = 0;
  for (int i = 0; i < kTimes; ++i) {
    Channel channel;
    const int over = eventfd(0, EFD_CLOEXEC);
    auto taker = std::async(std::launch::async, take_events, channel.get(), over);
    rdma_cm_id* id = channel.new_id();
    resolve(id);
    rdma_destroy_id(id);
    must(eventfd_write(over, 1), "eventfd_write");
    if (taker.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) {
      if (++stuck > kTimes / 4) fail("threads wait for events of destroyed ids");
      id = channel.new_id();
      resolve(id);
      taker.wait();
      rdma_destroy_id(id);
    }
    close(over);
  }
}

// The same with a thread that waits for events and takes what comes, up to that of `last`.
void destroyed_with_an_event_beside_a_reader() {
  Channel channel;
  rdma_cm_id* const last = channel.new_id();
  std::thread reader([&] {
    for (bool is_last = false; !is_last;) {
      rdma_cm_event* event = nullptr;
      must(rdma_get_cm_event(channel.get(), &event), "rdma_get_cm_event");
      is_last = event->id == last;
      must(rdma_ack_cm_event(event), "rdma_ack_cm_event");
    }
  });
  for (int i = 0; i < 1000; ++i) {
    rdma_cm_id* id = channel.new_id();
    resolve(id);
    rdma_destroy_id(id);
  }
  resolve(last);
  reader.join();
  rdma_destroy_id(last);
  if (channel.readable(0)) fail("an event that nobody sent");
}

// Threads that take events of one channel from under each other's noses leave no byte of them.
void two_readers() {
  Channel channel;
  const std::vector<rdma_cm_id*> last = {channel.new_id(), channel.new_id()};
  const auto read_to_a_last = [&] {
    for (bool is_last = false; !is_last;) {
      rdma_cm_event* event = nullptr;
      must(rdma_get_cm_event(channel.get(), &event), "rdma_get_cm_event");
      is_last = event->id == last[0] || event->id == last[1];
      must(rdma_ack_cm_event(event), "rdma_ack_cm_event");
    }
  };
  std::vector<rdma_cm_id*> ids;
  std::thread one(read_to_a_last), other(read_to_a_last);
  for (int i = 0; i < 1000; ++i) {
    ids.push_back(channel.new_id());
    resolve(ids.back());
  }
  for (rdma_cm_id* id : last) resolve(id);
  one.join();
  other.join();
  if (channel.readable(0)) fail("an event that nobody sent");
  ids.insert(ids.end(), last.begin(), last.end());
  for (rdma_cm_id* id : ids) rdma_destroy_id(id);
}

// A descriptor that was a channel's and is another file by now is none, and stays as it is.
void migrated_from_a_file() {
  Channel channel, gone;
  const int file = memfd_create("file", MFD_CLOEXEC);
  const std::vector<char> bytes(4096, 'x');
  if (write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) fail("write");
  rdma_cm_id* id = gone.new_id();
  if (dup2(file, gone.get()->fd) < 0) fail("dup2");
  if (rdma_migrate_id(id, channel.get()) == 0 || errno != EINVAL) fail("migrated from a file");
  std::vector<char> now(2 * bytes.size());
  now.resize(static_cast<size_t>(pread(file, now.data(), now.size(), 0)));
  if (now != bytes) fail("a file was written to");
  close(file);
}

void errors() {
  const std::map<std::string, void (*)()> rows = {
      {"no listener", no_listener},
      {"wrong port space", wrong_port_space},
      {"rejected", rejected_with_data},
      {"backlog full", backlog_full},
      {"address nobody has", address_errors},
      {"bad calls", bad_calls},
      {"port shared", reused_port},
      {"any port", any_port},
      {"AF_IB", native_addresses},
      {"signals", signal_while_waiting},
      {"destroyed with an event", destroyed_with_an_event},
      {"destroyed with an event, beside a reader", destroyed_with_an_event_beside_a_reader},
      {"two readers", two_readers},
      {"migrated from a file", migrated_from_a_file},
      {"TIMEWAIT", timewait}};
  for (const auto& [name, row] : rows) {
    row();
    std::printf("PASS %s\n", name.c_str());
  }
}

// ---- to be killed ----

[[noreturn]] void sleep_for_ever() {
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}

// Accepts, or with `never` does not; says what happens to the first connection.
void watch_one(bool never) {
  Channel channel;
  listen_at(channel, kPort, 4);
  std::puts("ready");
  std::fflush(stdout);
  rdma_cm_id* child = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  if (never) sleep_for_ever();
  rdma_conn_param param = parameters(++last_qp_num);
  must(rdma_accept(child, &param), "rdma_accept");
  for (;;) {
    const Event event = channel.next(kForEver);
    std::printf("event %s\n", rdma_event_str(event.type));
    std::fflush(stdout);
  }
}

void hold(const std::string& state) {
  Channel channel;
  rdma_cm_id* id = resolved(channel);
  if (state == "resolved") sleep_for_ever();
  connect(id);
  if (state == "connecting") sleep_for_ever();
  channel.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  if (state == "answered") sleep_for_ever();
  must(rdma_establish(id), "rdma_establish");
  if (state == "connected") sleep_for_ever();
  must(rdma_disconnect(id), "rdma_disconnect");
  sleep_for_ever();
}

// Connects and says what happens then.
void watch_peer() {
  Channel channel;
  rdma_cm_id* id = resolved(channel);
  connect(id);
  for (;;) {
    const Event event = channel.next(kForEver);
    std::printf("event %s\n", rdma_event_str(event.type));
    std::fflush(stdout);
    if (event.type == RDMA_CM_EVENT_CONNECT_RESPONSE) must(rdma_establish(id), "rdma_establish");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string argument = argc > 2 ? argv[2] : "";
  if (what == "sequence") {
    sequence(std::atoi(argument.c_str()));
  } else if (what == "at-once") {
    at_once(std::atoi(argument.c_str()));
  } else if (what == "errors") {
    errors();
  } else if (what == "serve") {
    watch_one(argument == "never");
  } else if (what == "hold") {
    hold(argument);
  } else if (what == "watch") {
    watch_peer();
  } else {
    fail("usage: cm_connects sequence N | at-once N | errors | serve [never] | hold STATE | watch");
  }
  std::puts("PASS");
  std::fflush(stdout);
  _exit(0);
}
