#include "emulator/daemon/control/connection/mailbox_server.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "verbs_shim/exchange/mailbox_client.h"

namespace rocemu::daemon {
namespace {

using Outcome = exchange::MailboxClient::Outcome;

struct Request {
  rocemu_header header{};
  uint64_t body = 0;
};

Request request_of(uint64_t body) {
  Request request;
  request.header.op = ROCEMU_OP_QUERY_PORT;
  request.header.length = sizeof(request);
  request.header.cookie = body;
  request.body = body;
  return request;
}

// Both sides of a mailbox, and the page as a hostile program sees it.
struct BothSides {
  MailboxServer nic;
  exchange::MailboxClient program;
  rocemu_mailbox* page = nullptr;

  BothSides() {
    const UniqueFd fd = nic.take_fd();
    REQUIRE(program.map(fd.get()) == 0);
    page = static_cast<rocemu_mailbox*>(
        ::mmap(nullptr, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    REQUIRE(page != MAP_FAILED);
  }
  ~BothSides() {
    program.unmap();
    ::munmap(page, sizeof(*page));
  }

  Outcome ask(uint64_t body, Request& reply) {
    const Request request = request_of(body);
    size_t got = 0;
    const Outcome outcome = program.ask(&request.header, &reply.header, sizeof(reply), got);
    if (outcome == Outcome::answered) CHECK(got == sizeof(reply));
    return outcome;
  }
};

std::span<const std::byte> bytes_of(const Request& request) {
  return std::as_bytes(std::span(&request, 1));
}

// Answers one request with what it says plus one.
void serve_one(MailboxServer& nic, bool bears_descriptors, bool& answered) {
  ReceivedMessage message;
  while (!nic.take(message)) std::this_thread::yield();
  Request reply;
  std::memcpy(&reply, message.buffer.data(), sizeof(reply));
  ++reply.body;
  answered = nic.answer(bytes_of(reply), bears_descriptors);
}

}  // namespace

TEST_CASE("a mailbox that nobody attends to is not asked") {
  BothSides both;
  Request reply;
  REQUIRE(both.ask(1, reply) == Outcome::ask_by_socket);
  ReceivedMessage message;
  REQUIRE_FALSE(both.nic.take(message));
}

TEST_CASE("a request that is not taken is withdrawn, and the next ones are not asked in vain") {
  BothSides both;
  both.nic.set_attended(true);
  Request reply;
  REQUIRE(both.ask(1, reply) == Outcome::ask_by_socket);
  ReceivedMessage message;
  REQUIRE_FALSE(both.nic.take(message));
  REQUIRE(both.page->state == ROCEMU_MAILBOX_FREE);
  REQUIRE(both.ask(2, reply) == Outcome::ask_by_socket);
}

TEST_CASE("requests are answered by the mailbox, or by the socket once the program sleeps") {
  BothSides both;
  both.nic.set_attended(true);
  for (uint64_t i = 0; i < 1000; ++i) {
    std::atomic<bool> stop{false};
    bool answered = false;
    Request reply;
    std::thread nic([&] {
      ReceivedMessage message;
      while (!both.nic.take(message))
        if (stop) return;
      Request echo;
      std::memcpy(&echo, message.buffer.data(), sizeof(echo));
      ++echo.body;
      answered = both.nic.answer(bytes_of(echo), false);
    });
    const Outcome outcome = both.ask(i, reply);
    stop = true;
    nic.join();
    REQUIRE(answered == (outcome == Outcome::answered));
    if (outcome == Outcome::answered) {
      REQUIRE(reply.body == i + 1);
      REQUIRE(reply.header.cookie == i);
    } else {
      both.program.settle();
    }
    REQUIRE(both.page->state == ROCEMU_MAILBOX_FREE);
  }
}

TEST_CASE("a reply with descriptors comes by the socket") {
  BothSides both;
  // As the program would have it; by itself it might be too quick to sleep.
  const Request request = request_of(5);
  std::memcpy(both.page->request, &request, sizeof(request));
  both.page->state = ROCEMU_MAILBOX_ASKED;
  bool answered = true;
  serve_one(both.nic, true, answered);
  REQUIRE_FALSE(answered);
  REQUIRE(both.page->state == ROCEMU_MAILBOX_ELSEWHERE);
  both.program.settle();
  REQUIRE(both.page->state == ROCEMU_MAILBOX_FREE);
}

TEST_CASE("what a program that died in its turn left is taken back") {
  BothSides both;
  both.page->state = ROCEMU_MAILBOX_ASKED;
  both.program.withdraw();
  REQUIRE(both.page->state == ROCEMU_MAILBOX_FREE);
  both.page->state = ROCEMU_MAILBOX_TAKEN;
  both.program.withdraw();
  REQUIRE(both.page->state == ROCEMU_MAILBOX_SLEEPING);
  REQUIRE_FALSE(both.nic.answer(bytes_of(request_of(1)), false));
}

TEST_CASE("a request of a hostile length is an empty message, and any state is borne") {
  BothSides both;
  ReceivedMessage message;
  for (const uint32_t length : {0u, 23u, ROCEMU_MAILBOX_BYTES + 1u, 0x7fffffffu, 0xffffffffu}) {
    Request request = request_of(1);
    request.header.length = length;
    std::memcpy(both.page->request, &request, sizeof(request));
    both.page->state = ROCEMU_MAILBOX_ASKED;
    REQUIRE(both.nic.take(message));
    REQUIRE(message.bytes().empty());
  }
  for (const uint32_t state : {0u, 3u, 4u, 5u, 6u, 0xffffffffu}) {
    both.page->state = state;
    REQUIRE_FALSE(both.nic.take(message));
    REQUIRE_FALSE(both.nic.answer(bytes_of(request_of(1)), false));
    REQUIRE(both.page->state == state);
  }
}

TEST_CASE("a reply that is longer than a mailbox comes by the socket") {
  BothSides both;
  both.page->state = ROCEMU_MAILBOX_TAKEN;
  const std::array<std::byte, ROCEMU_MAILBOX_BYTES + 1> reply{};
  REQUIRE_FALSE(both.nic.answer(reply, false));
  REQUIRE(both.page->state == ROCEMU_MAILBOX_ELSEWHERE);
}

}  // namespace rocemu::daemon
