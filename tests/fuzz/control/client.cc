#include "tests/fuzz/control/client.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "tests/fuzz/expect.h"
#include "verbs_shim/abi/mailbox.h"
#include "verbs_shim/abi/memory.h"
#include "verbs_shim/abi/rings.h"
#include "verbs_shim/abi/services.h"

namespace rocemu::fuzz {
namespace {

// Room for the smaller one of two events.
constexpr size_t kPipeBytes = 4096;
constexpr size_t kEventBytes = 16;

template <class Message>
Message as(std::span<const std::byte> bytes) {
  Message message{};
  std::ranges::copy(bytes.first(std::min(bytes.size(), sizeof(message))),
                    std::as_writable_bytes(std::span(&message, 1)).begin());
  return message;
}

}  // namespace

Client::Client(const daemon::SessionHost& host, InlineEngine& engine, int xrc_file, uint64_t token)
    : engine_(engine), xrc_file_(xrc_file), memory_(kMemoryBytes), core_(host, *this) {
  std::array<int, 2> ends{};
  expect(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0, "there is a pipe");
  event_read_ = UniqueFd(ends[0]);
  event_write_ = UniqueFd(ends[1]);
  expect(::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes) == kPipeBytes, "a pipe of a page");
  read_events();
  open_device();
  engine.hca(0).set_token(context_->id(), {token, 0});
}

Client::~Client() {
  if (!finished_) core_.on_end();
  expect(finished_, "a session ends with its program");
}

void Client::open_device() {
  rocemu_hello hello{};
  hello.header = {
      .op = ROCEMU_OP_HELLO, .length = sizeof(hello), .cookie = 7, .status = 0, .reserved = 0};
  hello.magic = ROCEMU_ABI_MAGIC;
  hello.abi_version = ROCEMU_ABI_VERSION;
  ask(std::as_bytes(std::span(&hello, 1)), event_write_.get());
  expect(answer_ && answer_->header().status == 0 && answer_->fds.size() == 4, "a device opens");
  context_ = &engine_.newest_context();
  doorbell_page_ = map(answer_->fds[0].get(), sizeof(rocemu_doorbell_page));
  mailbox_page_ = map(answer_->fds[3].get(), sizeof(rocemu_mailbox));
}

UniqueFd Client::add_mailbox() {
  mailbox_ = std::make_unique<daemon::MailboxServer>();
  return mailbox_->take_fd();
}

void Client::reply(std::span<const std::byte> bytes, std::span<const int> fds) {
  expect(!answer_, "a request has one answer");
  answer_.emplace();
  if (std::exchange(asked_by_mailbox_, false)) {
    auto& page = *reinterpret_cast<rocemu_mailbox*>(mailbox_page_.get());
    const bool answered = mailbox_->answer(bytes, !fds.empty());
    expect(answered == fds.empty(), "an answer without descriptors comes by the mailbox");
    expect(page.state == (answered ? ROCEMU_MAILBOX_ANSWERED : ROCEMU_MAILBOX_ELSEWHERE),
           "the mailbox says where the answer is");
    page.state = ROCEMU_MAILBOX_FREE;
    if (answered) bytes = std::as_bytes(std::span(page.reply)).first(bytes.size());
  }
  answer_->bytes.assign(bytes.begin(), bytes.end());
  for (const int fd : fds) answer_->fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void Client::close(const char* why) {
  expect(why != nullptr, "the end of a session has a reason");
  core_.on_end();
}

// Those that the operation wants, and those that it may have as the message itself says here: the
// file of an XRC domain by the cookie, the pipe of a CQ's own channel by one of the sizes.
int Client::descriptor_for(const rocemu_header& header, std::span<const std::byte> datagram) const {
  switch (header.op) {
    case ROCEMU_OP_CREATE_CHANNEL:
    case ROCEMU_OP_REG_FILE_MR:
      return event_write_.get();
    case ROCEMU_OP_CREATE_CQ:
      return as<rocemu_create_cq>(datagram).cqe == 3 ? event_write_.get() : -1;
    case ROCEMU_OP_OPEN_XRCD:
      return (header.cookie & 1) != 0 ? xrc_file_ : -1;
    default:
      return -1;
  }
}

bool Client::ask_by_mailbox(std::span<const std::byte> datagram) {
  const auto header = as<rocemu_header>(datagram);
  if (mailbox_page_ == nullptr || datagram.size() < sizeof(header) ||
      header.length != datagram.size() || datagram.size() > ROCEMU_MAILBOX_BYTES)
    return false;
  auto& page = *reinterpret_cast<rocemu_mailbox*>(mailbox_page_.get());
  std::memcpy(page.request, datagram.data(), datagram.size());
  page.state = ROCEMU_MAILBOX_ASKED;
  daemon::ReceivedMessage message;
  expect(mailbox_->take(message), "a request in the mailbox is found");
  asked_by_mailbox_ = true;
  core_.on_request(message);
  core_.on_replied();
  return true;
}

void Client::ask(std::span<const std::byte> datagram, int fd) {
  answer_.reset();
  if (fd < 0 && ask_by_mailbox(datagram)) return;
  daemon::ReceivedMessage message;
  message.length_bytes = datagram.size();
  std::copy(datagram.begin(), datagram.end(), message.buffer.begin());
  if (fd >= 0) message.fds[message.fd_count++] = UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  core_.on_request(message);
  core_.on_replied();
}

bool Client::send(std::span<const std::byte> datagram) {
  const auto request = daemon::check_request(datagram, daemon::ConnectionKind::context);
  ask(datagram, request ? descriptor_for(request->header, datagram) : -1);
  if (!request) {
    expect(daemon::to_string(request.error()) != nullptr, "each fault of a message has a name");
    expect(finished_ && !answer_, "a malformed message ends the session");
    return false;
  }
  expect(answer_.has_value() && !finished_, "a request has an answer");
  const rocemu_header header = answer_->header();
  expect(header.op == request->header.op && header.cookie == request->header.cookie &&
             header.length == answer_->bytes.size(),
         "an answer names its request");
  if (request->error != 0) {
    expect(header.status == request->error, "what is reserved is refused");
  } else if (request->operation.connection != daemon::ConnectionKind::context) {
    expect(header.status == EINVAL, "other connections' requests are refused");
  } else {
    check_answer(model_, datagram, *answer_);
  }
  return true;
}

void Client::scan_doorbells() {
  context_->doorbells().scan(UINT32_MAX, [&](wire::Qpn qpn) {
    expect(
        std::ranges::any_of(model_.qps, [&](const auto& qp) { return qp.second.qpn == qpn.value; }),
        "a doorbell rings for a QP of its own context");
    engine_.hca(0).endpoint().on_doorbell(qpn);
  });
}

void Client::read_events() {
  std::array<std::byte, kPipeBytes> bytes{};
  while (::read(event_read_.get(), bytes.data(), bytes.size()) > 0) {
  }
  constexpr size_t kFilled = kPipeBytes - kEventBytes;
  expect(::write(event_write_.get(), bytes.data(), kFilled) == kFilled, "an empty pipe has room");
}

void Client::scribble(uint32_t index, std::span<const std::byte> entry) {
  auto& page = *reinterpret_cast<rocemu_doorbell_page*>(doorbell_page_.get());
  page.groups[0].summary = ~uint64_t{0};
  page.groups[0].words[0] |= uint64_t{1} << (index % 64);
  // Request by request over the first slot, which is enough of a program here.
  const auto post = [entry](std::byte* memory) {
    auto& header = *reinterpret_cast<rocemu_queue_header*>(memory);
    std::memcpy(memory + sizeof(header), entry.data(), entry.size());
    ++header.sq_producer;
    ++header.rq_producer;
  };
  for (const auto& [handle, srq] : model_.srqs) post(srq.memory.get());
  if (model_.qps.empty()) return;
  const Model::Qp& qp = std::next(model_.qps.begin(), index % model_.qps.size())->second;
  if (qp.memory == nullptr) return;
  page.groups[0].words[0] |= uint64_t{1} << qp.doorbell;
  post(qp.memory.get());
}

}  // namespace rocemu::fuzz
