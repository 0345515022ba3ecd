#include "emulator/daemon/control/session.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/unit/daemon/nic_fixture.h"
#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon {
namespace {

constexpr uint32_t kToInit = 1 | 8 | 16 | 32;  // state, access flags, P_Key index, port

// A program that makes one of everything, a step at a time.
struct Program {
  explicit Program(const NicFixture& nic) : client(nic) {}

  void hello() { REQUIRE(client.hello().header.status == 0); }
  void alloc_pd() {
    const auto reply = client.call_handle(ROCEMU_OP_ALLOC_PD, 0);
    REQUIRE(reply.header.status == 0);
    pd = reply.as<rocemu_handle_message>().handle;
  }
  void reg_mr() {
    rocemu_reg_mr message{};
    message.pd = pd;
    message.access = 1;
    message.address = message.iova = reinterpret_cast<uintptr_t>(&buffer);
    message.length_bytes = sizeof(buffer);
    REQUIRE(client.call(ROCEMU_OP_REG_MR, message).header.status == 0);
  }
  void create_channel() {
    const int fds[] = {client.async_write_end()};
    const auto reply = client.call(ROCEMU_OP_CREATE_CHANNEL, rocemu_create_channel{}, fds);
    REQUIRE(reply.header.status == 0);
    channel = reply.as<rocemu_handle_message>().handle;
  }
  Client::Reply create_cq_of(uint32_t entries) {
    rocemu_create_cq message{};
    message.cqe = entries;
    message.channel = channel;
    return client.call(ROCEMU_OP_CREATE_CQ, message);
  }
  void create_cq() {
    const auto reply = create_cq_of(100);
    REQUIRE(reply.header.status == 0);
    REQUIRE(reply.fds.size() == 1);
    cq = reply.as<rocemu_create_cq_reply>().cq;
  }
  rocemu_create_qp qp_message() const {
    rocemu_create_qp message{};
    message.pd = pd;
    message.send_cq = message.recv_cq = cq;
    message.qp_type = verbs::qp_type::kRc;
    message.max_send_wr = message.max_recv_wr = 10;
    message.max_send_sge = message.max_recv_sge = 1;
    return message;
  }
  void create_qp() {
    const auto reply = client.call(ROCEMU_OP_CREATE_QP, qp_message());
    REQUIRE(reply.header.status == 0);
    REQUIRE(reply.fds.size() == 1);
    qp = reply.as<rocemu_create_qp_reply>();
  }
  rocemu_modify_qp init_message() const {
    rocemu_modify_qp message{};
    message.qp = qp.qp;
    message.attr_mask = kToInit;
    message.attr.qp_state = 1;
    message.attr.port_num = 1;
    return message;
  }
  void modify_qp() {
    const auto reply = client.call(ROCEMU_OP_MODIFY_QP, init_message());
    REQUIRE(reply.header.status == 0);
    CHECK(reply.as<rocemu_handle_message>().handle == 1);
  }

  std::vector<std::function<void()>> steps() {
    return {[this] { hello(); },          [this] { alloc_pd(); },  [this] { reg_mr(); },
            [this] { create_channel(); }, [this] { create_cq(); }, [this] { create_qp(); },
            [this] { modify_qp(); }};
  }

  // The request of a step, without waiting for its answer.
  void begin(size_t step) {
    rocemu_handle_message handle{};
    const int fds[] = {client.async_write_end()};
    rocemu_create_cq cq_message{};
    cq_message.cqe = 10;
    switch (step) {
      case 0:
        client.send(ROCEMU_OP_HELLO, client.hello_message(0), fds);
        break;
      case 1:
      case 2:
        client.send(ROCEMU_OP_ALLOC_PD, handle);
        break;
      case 3:
        client.send(ROCEMU_OP_CREATE_CHANNEL, rocemu_create_channel{}, fds);
        break;
      case 4:
        client.send(ROCEMU_OP_CREATE_CQ, cq_message);
        break;
      case 5:
        client.send(ROCEMU_OP_CREATE_QP, qp_message());
        break;
      default:
        client.send(ROCEMU_OP_MODIFY_QP, init_message());
        break;
    }
  }

  Client client;
  uint64_t buffer[64] = {};
  uint32_t pd = 0;
  uint32_t channel = 0;
  uint32_t cq = 0;
  rocemu_create_qp_reply qp{};
};

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

size_t mapped_queues() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:rocemu") != std::string::npos) ++count;
  return count;
}

template <class Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

TEST_CASE("a program makes one of everything and takes it down") {
  NicFixture nic;
  Program program(nic);
  for (const auto& step : program.steps()) step();
  const device::ObjectCounts counts = nic.counts();
  CHECK(counts.contexts == 1);
  CHECK(counts.pds == 1);
  CHECK(counts.mrs == 1);
  CHECK(counts.channels == 1);
  CHECK(counts.cqs == 1);
  CHECK(counts.qps == 1);

  Client& client = program.client;
  CHECK(client.call_handle(ROCEMU_OP_DEALLOC_PD, program.pd).header.status == EBUSY);
  CHECK(client.call_handle(ROCEMU_OP_DESTROY_CQ, program.cq).header.status == EBUSY);
  const auto query = client.call_handle(ROCEMU_OP_QUERY_QP, program.qp.qp);
  CHECK(query.as<rocemu_query_qp_reply>().attr.qp_state == 1);
  CHECK(client.call_handle(ROCEMU_OP_DESTROY_QP, program.qp.qp).header.status == 0);
  CHECK(client.call_handle(ROCEMU_OP_DESTROY_QP, program.qp.qp).header.status == ENOENT);
  CHECK(client.call_handle(ROCEMU_OP_DESTROY_CQ, program.cq).header.status == 0);
  CHECK(client.call_handle(ROCEMU_OP_DESTROY_CHANNEL, program.channel).header.status == 0);
  client.close();
  CHECK(nic.empty_soon());
}

TEST_CASE("what a program made goes when its connection closes, at whatever step") {
  NicFixture nic;
  REQUIRE(nic.empty_soon());
  const size_t descriptors = open_descriptors();
  const size_t mappings = mapped_queues();
  for (size_t done = 0; done <= 7; ++done) {
    for (const bool in_the_middle : {false, true}) {
      CAPTURE(done, in_the_middle);
      {
        Program program(nic);
        const auto steps = program.steps();
        for (size_t i = 0; i < done; ++i) steps[i]();
        if (in_the_middle) program.begin(done);
      }
      REQUIRE(nic.empty_soon());
      CHECK(soon([&] { return open_descriptors() == descriptors; }));
      CHECK(soon([&] { return mapped_queues() == mappings; }));
    }
  }
}

TEST_CASE("the NIC ends while programs are in the middle of something") {
  for (size_t done = 0; done <= 7; ++done) {
    auto nic = std::make_unique<NicFixture>();
    Program program(*nic);
    const auto steps = program.steps();
    for (size_t i = 0; i < done; ++i) steps[i]();
    program.begin(done);
    nic.reset();
  }
}

TEST_CASE("a hello tells what the program needs") {
  NicFixture nic;
  Client client(nic);
  const auto reply = client.hello();
  REQUIRE(reply.header.status == 0);
  const auto body = reply.as<rocemu_hello_reply>();
  CHECK(body.abi_version == ROCEMU_ABI_VERSION);
  CHECK(body.max_doorbells == device::DeviceLimits{}.max_qp);
  CHECK(std::string(body.daemon_version) == ROCEMU_VERSION);
  REQUIRE(reply.fds.size() == 4);

  void* engine_page =
      ::mmap(nullptr, sizeof(rocemu_engine_page), PROT_READ, MAP_SHARED, reply.fds[1].get(), 0);
  REQUIRE(engine_page != MAP_FAILED);
  CHECK(static_cast<rocemu_engine_page*>(engine_page)->magic == ROCEMU_ABI_MAGIC);
  ::munmap(engine_page, sizeof(rocemu_engine_page));
  CHECK(::mmap(nullptr, 128, PROT_READ | PROT_WRITE, MAP_SHARED, reply.fds[1].get(), 0) ==
        MAP_FAILED);
}

TEST_CASE("a hello that cannot be granted names the reason") {
  NicFixture nic;
  {
    Client client(nic);
    rocemu_hello other = client.hello_message(0);
    other.abi_version = 77;
    const auto reply = client.call(ROCEMU_OP_HELLO, other);
    CHECK(reply.header.status == EPROTO);
    CHECK(reply.as<rocemu_hello_reply>().abi_version == ROCEMU_ABI_VERSION);
  }
  {
    Client client(nic);
    CHECK(client.hello(7).header.status == ENODEV);
    CHECK(client.hello(0).header.status == 0);
    CHECK(client.hello(0).header.status == EINVAL);
  }
  {
    Client client(nic);
    rocemu_hello wrong = client.hello_message(0);
    ++wrong.probe_value;
    const int fds[] = {client.async_write_end()};
    CHECK(client.call(ROCEMU_OP_HELLO, wrong, fds).header.status == EPERM);
    CHECK(client.call(ROCEMU_OP_HELLO, client.hello_message(0)).header.status == EINVAL);
  }
}

TEST_CASE("messages that are not well formed end the connection, and only that") {
  NicFixture nic;
  Program other(nic);
  other.hello();
  const auto ends = [&](const void* bytes, size_t size_bytes, bool after_hello) {
    Client client(nic);
    if (after_hello) REQUIRE(client.hello().header.status == 0);
    client.send_raw(bytes, size_bytes);
    return client.receive().ended;
  };
  const std::vector<char> long_message(ROCEMU_MESSAGE_MAX + 1);
  rocemu_handle_message message{};
  message.header.op = ROCEMU_OP_ALLOC_PD;
  message.header.length = sizeof(message);
  CHECK(ends("x", 1, true));
  CHECK(ends("x", 1, false));
  CHECK(ends(long_message.data(), long_message.size(), true));
  CHECK(ends(&message, sizeof(message), false));  // before a hello
  message.header.length = 24;
  CHECK(ends(&message, sizeof(message), true));
  message.header.op = 50;
  message.header.length = sizeof(message);
  CHECK(ends(&message, sizeof(message), true));
  other.alloc_pd();
}

TEST_CASE("descriptors nobody asked for are closed") {
  NicFixture nic;
  Program program(nic);
  program.hello();
  program.alloc_pd();  // what the hello needed for a while is closed soon after the next answer
  const size_t descriptors = open_descriptors();
  const int fds[] = {0, 1, 2, 0};
  rocemu_handle_message message{};
  CHECK(program.client.call(ROCEMU_OP_ALLOC_PD, message, fds).header.status == EINVAL);
  CHECK(program.client.call(ROCEMU_OP_CREATE_CHANNEL, rocemu_create_channel{}, fds).header.status ==
        EINVAL);
  CHECK(program.client.call(ROCEMU_OP_CREATE_CHANNEL, rocemu_create_channel{}).header.status ==
        EINVAL);
  program.alloc_pd();
  CHECK(soon([&] { return open_descriptors() <= descriptors; }));
}

TEST_CASE("a CQ may come with a channel of its own") {
  NicFixture nic;
  Program program(nic);
  program.hello();
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  rocemu_create_cq wish{};
  wish.cqe = 8;
  const auto create = [&](std::vector<int> fds) {
    return program.client.call(ROCEMU_OP_CREATE_CQ, wish, fds);
  };
  const auto reply = create({pipe[1]});
  REQUIRE(reply.header.status == 0);
  const uint32_t channel = reply.as<rocemu_create_cq_reply>().channel;
  CHECK(channel != 0);

  wish.channel = channel;
  CHECK(create({}).header.status == 0);
  CHECK(create({pipe[1]}).header.status == EINVAL);  // a channel it has, and another one
  wish.channel = 0;
  CHECK(create({pipe[0]}).header.status == EINVAL);  // a read end
  wish.comp_vector = 1'000'000;
  CHECK(create({pipe[1]}).header.status == EINVAL);

  rocemu_handle_message message{};
  message.handle = channel;
  CHECK(program.client.call(ROCEMU_OP_DESTROY_CHANNEL, message).header.status == EBUSY);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("limits are kept before memory is made") {
  device::DeviceLimits limits;
  limits.max_cqe = 1000;
  limits.max_contexts = 1;
  NicFixture nic(limits);
  Program program(nic);
  program.hello();
  program.alloc_pd();
  CHECK(program.create_cq_of(1001).header.status == EINVAL);
  CHECK(program.create_cq_of(0).header.status == EINVAL);
  CHECK(program.create_cq_of(1000).header.status == 0);
  Client second(nic);
  CHECK(second.hello().header.status == ENOMEM);
}

TEST_CASE("more connections than allowed are turned away") {
  NicFixture nic({}, 2);
  Client first(nic);
  CHECK(first.hello_control().header.status == 0);
  Client second(nic);
  CHECK(second.hello_control().header.status == 0);
  Client third(nic);
  CHECK(third.receive().ended);
}

TEST_CASE("a process has three quarters of the connections at most") {
  NicFixture nic({}, 256);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 192; ++i) {
    clients.push_back(std::make_unique<Client>(nic));
    REQUIRE(clients.back()->hello_control().header.status == 0);
  }
  CHECK(Client(nic).receive().ended);
}

TEST_CASE("a context ends with the process that opened it, although a child holds the socket") {
  NicFixture nic;
  int to_us[2];
  REQUIRE(::pipe2(to_us, 0) == 0);
  // The opener opens a device and ends; its child lives on with the socket until we say so.
  int to_child[2];
  REQUIRE(::pipe2(to_child, 0) == 0);
  const pid_t opener = ::fork();
  REQUIRE(opener >= 0);
  if (opener == 0) {
    Client client(nic);
    const bool opened = client.hello().header.status == 0;
    if (::fork() == 0) {
      ::close(to_child[1]);
      char byte;
      [[maybe_unused]] const ssize_t n = ::read(to_child[0], &byte, 1);
      ::_exit(0);
    }
    [[maybe_unused]] const ssize_t n = ::write(to_us[1], opened ? "y" : "n", 1);
    ::_exit(0);
  }
  char opened = 'n';
  REQUIRE(::read(to_us[0], &opened, 1) == 1);
  CHECK(opened == 'y');
  REQUIRE(::waitpid(opener, nullptr, 0) == opener);
  CHECK(nic.empty_soon());
  for (const int fd : {to_us[0], to_us[1], to_child[0], to_child[1]}) ::close(fd);
}

TEST_CASE("a control connection reads the status and ends the daemon") {
  NicFixture nic;
  Program program(nic);
  program.hello();
  program.alloc_pd();
  CHECK(program.client.call(ROCEMU_OP_STATUS, HeaderOnly{}).header.status == EINVAL);

  Client control(nic);
  REQUIRE(control.hello_control().header.status == 0);
  CHECK(control.call_handle(ROCEMU_OP_ALLOC_PD, 0).header.status == EINVAL);
  const auto reply = control.call(ROCEMU_OP_STATUS, HeaderOnly{});
  REQUIRE(reply.fds.size() == 1);
  std::string text(65536, '\0');
  const ssize_t length = ::read(reply.fds[0].get(), text.data(), text.size());
  REQUIRE(length > 0);
  text.resize(static_cast<size_t>(length));
  const auto status = nlohmann::json::parse(text);
  CHECK(status.at("version") == ROCEMU_VERSION);
  CHECK(status.at("devices").at(0).at("name") == "rocemu0");
  CHECK(status.at("devices").at(0).at("objects").at("pds") == 1);
  CHECK(status.at("devices").at(0).at("counters").at("rx_frames") == 0);
  CHECK(status.at("engine").at("turns") > 0);

  CHECK_FALSE(nic.shut_down_asked());
  CHECK(control.call(ROCEMU_OP_SHUTDOWN, HeaderOnly{}).header.status == 0);
  CHECK(soon([&] { return nic.shut_down_asked(); }));
}

TEST_CASE("links of ports without a switch have no impairments") {
  NicFixture nic;
  Client control(nic);
  REQUIRE(control.hello_control().header.status == 0);
  CHECK(control.call(ROCEMU_OP_LINK_SHOW, HeaderOnly{}).header.status == EOPNOTSUPP);
  CHECK(control.call(ROCEMU_OP_LINK_SET, rocemu_link_set{}).header.status == EOPNOTSUPP);
}

}  // namespace rocemu::daemon
