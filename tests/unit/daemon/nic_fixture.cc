#include "tests/unit/daemon/nic_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <future>

#include "dpdk_io/eal/eal.h"

namespace rocemu::daemon {
namespace {

// Each thread that has turns keeps up to some 180 freed frames for itself, out of others' reach.
constexpr unsigned kFrames = 1024;
constexpr int kPatienceMs = 10'000;

const char* unique_pool_name() {
  static const dpdk_io::Eal eal{dpdk_io::EalOptions{.memory_mb = 64}};
  static int number = 0;
  static std::string name;
  name = "fixture" + std::to_string(number++);
  return name.c_str();
}

}  // namespace

unsigned DeadPort::transmit(uint64_t, std::span<rte_mbuf*> burst) noexcept {
  dpdk_io::FramePool::free_bulk(burst);
  return static_cast<unsigned>(burst.size());
}

NicFixture::NicFixture(const device::DeviceLimits& limits, size_t max_sessions)
    : path_("/tmp/rocemud-test-" + std::to_string(::getpid()) + ".sock"),
      pool_(unique_pool_name(), kFrames, transport::kMaxFrameBytes),
      engine_(pool_),
      nic_{engine_,
           {device::default_config(0)},
           {},
           monotonic_now_ns(),
           [this] { shut_down_asked_ = true; }},
      executor_(io_, engine_),
      administration_(nic_),
      sessions_{nic_.devices, executor_, administration_} {
  nic_.devices[0].limits = limits;
  gids_.add(nic_.devices[0].port);
  engine_.add_device(
      std::make_unique<device::Hca>(nic_.devices[0], transport::TransportLimits{}, gids_), port_,
      false);
  listener_ = std::make_unique<Listener>(io_, sessions_, &mailbox_poller_, path_, max_sessions);
  engine_.start();
  listener_->start();
  control_ = std::thread([this] { mailbox_poller_.run(io_); });
}

NicFixture::~NicFixture() {
  io_.stop();
  control_.join();
  listener_->close();
  engine_.stop();
}

device::ObjectCounts NicFixture::counts() {
  std::promise<device::ObjectCounts> counts;
  engine_.post(Task([&] { counts.set_value(engine_.hca(0).counts()); }));
  return counts.get_future().get();
}

bool NicFixture::empty_soon() {
  for (int waited_ms = 0; waited_ms < kPatienceMs; ++waited_ms) {
    const device::ObjectCounts c = counts();
    if (c.contexts + c.pds + c.mrs + c.cqs + c.qps + c.channels == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

Client::Client(const NicFixture& nic)
    : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, nic.socket_path().c_str());
  REQUIRE(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
          0);
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  async_read_ = UniqueFd(ends[0]);
  async_write_ = UniqueFd(ends[1]);
}

bool Client::send_raw(const void* bytes, size_t size_bytes, std::span<const int> fds) {
  return send_message(socket_.get(), {static_cast<const std::byte*>(bytes), size_bytes}, fds) ==
         SendResult::sent;
}

Client::Reply Client::receive() {
  Reply reply;
  ReceivedMessage message;
  pollfd readable{socket_.get(), POLLIN, 0};
  REQUIRE(::poll(&readable, 1, kPatienceMs) == 1);
  if (receive_message(socket_.get(), message) != ReceiveResult::message) {
    reply.ended = true;
    return reply;
  }
  const auto bytes = message.bytes();
  reply.bytes.assign(bytes.begin(), bytes.end());
  reply.header = reply.as<rocemu_header>();
  for (size_t i = 0; i < message.fd_count; ++i) reply.fds.push_back(std::move(message.fds[i]));
  CHECK(reply.header.length == reply.bytes.size());
  CHECK(reply.header.cookie == cookie_);
  return reply;
}

Client::Reply Client::call_handle(uint32_t op, uint32_t handle) {
  rocemu_handle_message message{};
  message.handle = handle;
  return call(op, message);
}

rocemu_hello Client::hello_message(uint32_t device_index) {
  rocemu_hello message{};
  message.magic = ROCEMU_ABI_MAGIC;
  message.abi_version = ROCEMU_ABI_VERSION;
  message.device_index = device_index;
  message.probe_address = reinterpret_cast<uintptr_t>(&probe_);
  message.probe_value = probe_;
  return message;
}

Client::Reply Client::hello(uint32_t device_index) {
  const int fds[] = {async_write_.get()};
  return call(ROCEMU_OP_HELLO, hello_message(device_index), fds);
}

}  // namespace rocemu::daemon
