#include "emulator/daemon/control/connection/mailbox_poller.h"

#include <sched.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/unit/daemon/nic_fixture.h"
#include "verbs_shim/abi/mailbox.h"

namespace rocemu::daemon {
namespace {

constexpr int kPatienceMs = 10'000;

// The mailbox of a context, used by hand: without the patience of the provider, so that what is to
// be seen doesn't depend on who is quicker.
class Page {
 public:
  explicit Page(const Client::Reply& hello) {
    REQUIRE(hello.fds.size() == 4);
    void* address = ::mmap(nullptr, sizeof(rocemu_mailbox), PROT_READ | PROT_WRITE, MAP_SHARED,
                           hello.fds[3].get(), 0);
    REQUIRE(address != MAP_FAILED);
    page_ = static_cast<rocemu_mailbox*>(address);
  }
  ~Page() { ::munmap(page_, sizeof(*page_)); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  bool attended() const { return __atomic_load_n(&page_->attended, __ATOMIC_ACQUIRE) != 0; }
  uint32_t state() const { return __atomic_load_n(&page_->state, __ATOMIC_ACQUIRE); }
  void set_state(uint32_t state) { __atomic_store_n(&page_->state, state, __ATOMIC_RELEASE); }

  // False: it has been taken.
  bool withdraw() {
    uint32_t asked = ROCEMU_MAILBOX_ASKED;
    return __atomic_compare_exchange_n(&page_->state, &asked, uint32_t{ROCEMU_MAILBOX_FREE}, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  }

  template <class Message>
  void ask(uint32_t op, Message message) {
    message.header.op = op;
    message.header.length = sizeof(message);
    std::memcpy(page_->request, &message, sizeof(message));
    set_state(ROCEMU_MAILBOX_ASKED);
  }
  rocemu_header reply_header() const {
    rocemu_header header;
    std::memcpy(&header, page_->reply, sizeof(header));
    return header;
  }

 private:
  rocemu_mailbox* page_ = nullptr;
};

template <class Condition>
bool soon(Condition condition) {
  for (int waited_ms = 0; waited_ms < kPatienceMs; ++waited_ms) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// Asks by the page whenever the NIC attends to it, until a request is taken there.
template <class Message>
bool asked_by_page(Client& client, Page& page, uint32_t op, const Message& message) {
  return soon([&] {
    if (client.call(ROCEMU_OP_QUERY_DEVICE, HeaderOnly{}).header.status != 0) return false;
    page.ask(op, message);
    for (int looks = 0; looks < 1'000'000; ++looks)
      if (page.state() != ROCEMU_MAILBOX_ASKED) return true;
    return !page.withdraw();
  });
}

// With one core the NIC never looks by itself, so that there is nothing to be seen.
bool nothing_to_see() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0 || CPU_COUNT(&cores) > 1) return false;
  WARN("SKIPPED: one core only");
  return true;
}

}  // namespace

TEST_CASE("a request by the mailbox is answered there, but not a while after the last one") {
  if (nothing_to_see()) return;
  NicFixture nic;
  Client client(nic);
  Page page(client.hello());
  REQUIRE(asked_by_page(client, page, ROCEMU_OP_ALLOC_PD, rocemu_handle_message{}));
  REQUIRE(soon([&] { return page.state() == ROCEMU_MAILBOX_ANSWERED; }));
  CHECK(page.reply_header().op == ROCEMU_OP_ALLOC_PD);
  CHECK(page.reply_header().status == 0);
  CHECK(nic.counts().pds == 1);

  REQUIRE(soon([&] { return !page.attended(); }));
  page.ask(ROCEMU_OP_ALLOC_PD, rocemu_handle_message{});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(page.withdraw());
  CHECK(client.call(ROCEMU_OP_QUERY_DEVICE, HeaderOnly{}).header.status == 0);
}

TEST_CASE("a request by the mailbox that is not well formed ends the connection") {
  if (nothing_to_see()) return;
  NicFixture nic;
  Client client(nic);
  Page page(client.hello());
  REQUIRE(asked_by_page(client, page, 0xffff, HeaderOnly{}));
  CHECK(client.receive().ended);
  CHECK(nic.empty_soon());
}

TEST_CASE("more programs than the NIC attends to at once are served all the same") {
  NicFixture nic;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<Client>(nic));
    REQUIRE(clients.back()->hello().header.status == 0);
  }
  for (int round = 0; round < 20; ++round) {
    for (auto& client : clients) client->send(ROCEMU_OP_QUERY_DEVICE, HeaderOnly{});
    for (auto& client : clients) REQUIRE(client->receive().header.status == 0);
  }
}

TEST_CASE("a program that ends while the NIC attends to it leaves nothing") {
  NicFixture nic;
  for (int i = 0; i < 50; ++i) {
    Client client(nic);
    REQUIRE(client.hello().header.status == 0);
    REQUIRE(client.call(ROCEMU_OP_ALLOC_PD, rocemu_handle_message{}).header.status == 0);
  }
  CHECK(nic.empty_soon());
}

}  // namespace rocemu::daemon
