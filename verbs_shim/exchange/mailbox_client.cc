#include "verbs_shim/exchange/mailbox_client.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/cpu_relax.h"

namespace rocemu::exchange {
namespace {

// Patience costs as much as putting a thread to sleep and waking it. The program shares its core
// with others, the NIC perhaps among them, so it must not cost more.
constexpr int64_t kPatienceNs = 20'000;
constexpr size_t kPageBytes = ROCEMU_MAILBOX_BYTES;
constexpr unsigned kLooksPerClock = 16;
// The NIC and the program may have one core between them for a while.
constexpr unsigned kCallsToSkip = 16;

int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

uint32_t look_at(const uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }

void put(uint32_t& word, uint32_t value) { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }

bool change(uint32_t& word, uint32_t from, uint32_t to) {
  return __atomic_compare_exchange_n(&word, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

}  // namespace

int MailboxClient::map(int fd) {
  const int error = memory_.map(fd, sizeof(rocemu_mailbox), PROT_READ | PROT_WRITE);
  if (error == 0) page_ = static_cast<rocemu_mailbox*>(memory_.address);
  return error;
}

void MailboxClient::unmap() {
  page_ = nullptr;
  memory_.unmap();
}

MailboxClient::Outcome MailboxClient::ask(const rocemu_header* request, rocemu_header* reply,
                                          size_t reply_bytes, size_t& got) {
  if (page_ == nullptr) return Outcome::ask_by_socket;
  if (calls_to_skip_ > 0) --calls_to_skip_;
  if (calls_to_skip_ > 0 || request->length > ROCEMU_MAILBOX_BYTES ||
      look_at(page_->attended) == 0 || look_at(page_->state) != ROCEMU_MAILBOX_FREE) {
    withdraw();
    return Outcome::ask_by_socket;
  }
  memcpy(page_->request, request, request->length);
  put(page_->state, ROCEMU_MAILBOX_ASKED);
  return wait(reply, reply_bytes, got);
}

MailboxClient::Outcome MailboxClient::wait(rocemu_header* reply, size_t reply_bytes, size_t& got) {
  const int64_t until = now_ns() + kPatienceNs;
  unsigned looks = 0;
  while (true) {
    const uint32_t state = look_at(page_->state);
    if (state == ROCEMU_MAILBOX_ANSWERED) {
      rocemu_header header;
      memcpy(&header, page_->reply, sizeof(header));
      got = header.length < kPageBytes ? header.length : kPageBytes;
      memcpy(static_cast<void*>(reply), page_->reply, got < reply_bytes ? got : reply_bytes);
      put(page_->state, ROCEMU_MAILBOX_FREE);
      return Outcome::answered;
    }
    if (state == ROCEMU_MAILBOX_ELSEWHERE) return Outcome::reply_by_socket;
    cpu_relax();
    if (++looks % kLooksPerClock != 0 || now_ns() < until) continue;
    if (change(page_->state, ROCEMU_MAILBOX_ASKED, ROCEMU_MAILBOX_FREE)) {
      calls_to_skip_ = kCallsToSkip;
      return Outcome::ask_by_socket;
    }
    if (change(page_->state, ROCEMU_MAILBOX_TAKEN, ROCEMU_MAILBOX_SLEEPING))
      return Outcome::reply_by_socket;
  }
}

void MailboxClient::withdraw() {
  if (page_ == nullptr) return;
  if (!change(page_->state, ROCEMU_MAILBOX_ASKED, ROCEMU_MAILBOX_FREE))
    change(page_->state, ROCEMU_MAILBOX_TAKEN, ROCEMU_MAILBOX_SLEEPING);
}

void MailboxClient::settle() {
  if (page_ != nullptr) put(page_->state, ROCEMU_MAILBOX_FREE);
}

}  // namespace rocemu::exchange
