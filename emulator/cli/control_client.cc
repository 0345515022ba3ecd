#include "emulator/cli/control_client.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "emulator/cli/process/exit_codes.h"
#include "verbs_shim/abi/control.h"
#include "verbs_shim/abi/fault.h"
#include "verbs_shim/abi/trace.h"
#include "verbs_shim/exchange/message_socket.h"

namespace rocemu::cli {
namespace {

constexpr time_t kTimeout_s = 5;
constexpr off_t kMaxTextBytes = 64 << 20;

}  // namespace

ControlClient::ControlClient(const std::filesystem::path& socket_path) : socket_path_(socket_path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_path.native().size() >= sizeof(address.sun_path)) {
    throw Failure("the socket's path " + socket_path.native() + " is too long for a unix socket",
                  kUsage);
  }
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.native().size());

  socket_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket_) fail(std::strerror(errno));
  const timeval timeout = {kTimeout_s, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    fail(std::strerror(errno));
  }

  rocemu_hello hello = {};
  hello.header.op = ROCEMU_OP_HELLO;
  hello.header.length = sizeof(hello);
  hello.header.cookie = ++cookie_;
  hello.magic = ROCEMU_ABI_MAGIC;
  hello.abi_version = ROCEMU_ABI_VERSION;
  hello.device_index = ROCEMU_NO_DEVICE;
  rocemu_hello_reply reply = {};
  request(&hello, sizeof(hello), &reply, sizeof(reply));
  reply.daemon_version[sizeof(reply.daemon_version) - 1] = '\0';
  if (reply.header.status == EPROTO) {
    throw Failure("the NIC behind " + socket_path.native() + " is rocemud " + reply.daemon_version +
                  " with ABI " + std::to_string(reply.abi_version) + ", this is rocemu " +
                  ROCEMU_VERSION + " with ABI " + std::to_string(ROCEMU_ABI_VERSION) +
                  "; end that NIC and start it again with this rocemu");
  }
}

void ControlClient::fail(const std::string& what) const {
  throw Failure("the NIC behind " + socket_path_.native() + " does not answer (" + what +
                "); see the file log beside it, or end it with rocemu down and start it again");
}

UniqueFd ControlClient::request(const void* message, std::size_t message_bytes, void* reply,
                                std::size_t reply_bytes, std::initializer_list<int> expected,
                                int file) {
  if (!exchange::send_message(socket_.get(), message, message_bytes,
                              {&file, file < 0 ? size_t{0} : size_t{1}}))
    fail(std::strerror(errno));

  std::array<char, ROCEMU_MESSAGE_MAX> buffer;
  UniqueFd descriptor;  // the first one, when more have come
  const exchange::Received received =
      exchange::receive_message(socket_.get(), buffer.data(), buffer.size(), 0, [&](int fd) {
        UniqueFd owned(fd);
        if (!descriptor) descriptor = std::move(owned);
      });
  const ssize_t bytes = received.length_bytes;
  if (bytes < 0) fail(errno == EAGAIN ? "no answer in time" : std::strerror(errno));
  if (bytes == 0) fail("it closed the connection");

  rocemu_header header = {};
  if (static_cast<std::size_t>(bytes) < sizeof(header)) fail("its answer is too short");
  std::memcpy(&header, buffer.data(), sizeof(header));
  rocemu_header asked = {};
  std::memcpy(&asked, message, sizeof(asked));
  if (header.op != asked.op || header.cookie != asked.cookie) fail("it answered something else");
  if (std::ranges::find(expected, header.status) != expected.end()) {
    std::memcpy(reply, &header, sizeof(header));
    return UniqueFd();
  }
  const bool has_body = static_cast<std::size_t>(bytes) == reply_bytes;
  if (header.status != 0 && !(header.status == EPROTO && has_body)) {
    fail(std::string("it refused: ") + std::strerror(header.status));
  }
  if (!has_body || (received.flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    fail("its answer has the wrong size");
  }
  std::memcpy(reply, buffer.data(), reply_bytes);
  return descriptor;
}

UniqueFd ControlClient::simple_request(std::uint32_t op) {
  rocemu_header message = {};
  message.op = op;
  message.length = sizeof(message);
  message.cookie = ++cookie_;
  rocemu_header reply = {};
  return request(&message, sizeof(message), &reply, sizeof(reply));
}

std::string ControlClient::text_request(std::uint32_t op) {
  const UniqueFd file = simple_request(op);
  if (!file) fail("its answer came without the file");
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) fail(std::strerror(errno));
  if (info.st_size <= 0 || info.st_size > kMaxTextBytes) fail("its answer has no sensible size");
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got =
        ::pread(file.get(), text.data() + have, text.size() - have, static_cast<off_t>(have));
    if (got <= 0) fail("its answer cannot be read");
    have += static_cast<std::size_t>(got);
  }
  return text;
}

Json ControlClient::json_request(std::uint32_t op, Json::value_t type) {
  Json answer = Json::parse(text_request(op), nullptr, /*allow_exceptions=*/false);
  if (answer.type() == type) return answer;
  throw Failure(
      "the NIC behind " + socket_path_.native() + " answered with something that is no JSON " +
      (type == Json::value_t::array ? "array" : "object") + "; update rocemu and rocemud together");
}

Json ControlClient::status() { return json_request(ROCEMU_OP_STATUS, Json::value_t::object); }

std::string ControlClient::metrics() { return text_request(ROCEMU_OP_METRICS); }

Json ControlClient::links() { return json_request(ROCEMU_OP_LINK_SHOW, Json::value_t::array); }

void ControlClient::set_link(const std::string& text) {
  rocemu_link_set message = {};
  if (text.size() >= sizeof(message.assignment))
    throw Failure("'" + text + "' is too long", kUsage);
  message.header.op = ROCEMU_OP_LINK_SET;
  message.header.length = sizeof(message);
  message.header.cookie = ++cookie_;
  text.copy(message.assignment, sizeof(message.assignment) - 1);
  rocemu_header reply = {};
  request(&message, sizeof(message), &reply, sizeof(reply), {ENODEV});
  if (reply.status != ENODEV) return;
  throw Failure("the NIC has no device '" + text.substr(0, text.find_first_of(".:")) +
                    "'; rocemu link show lists them",
                kUsage);
}

Json ControlClient::faults() { return json_request(ROCEMU_OP_FAULT_LIST, Json::value_t::array); }

std::vector<std::uint32_t> ControlClient::add_fault(const std::string& text) {
  rocemu_fault_add message = {};
  if (text.size() >= sizeof(message.text)) throw Failure("'" + text + "' is too long", kUsage);
  message.header.op = ROCEMU_OP_FAULT_ADD;
  message.header.length = sizeof(message);
  message.header.cookie = ++cookie_;
  text.copy(message.text, sizeof(message.text) - 1);
  rocemu_fault_reply reply = {};
  request(&message, sizeof(message), &reply, sizeof(reply), {ENODEV, ENOSPC});
  if (reply.header.status == ENODEV)
    throw Failure("the NIC has no device '" + text.substr(0, text.find_first_of(" ,")) +
                      "'; rocemu status lists them",
                  kUsage);
  if (reply.header.status == ENOSPC)
    throw Failure("the NIC has as many faults as it can; rocemu fault clear takes them back");
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < reply.count; ++i) ids.push_back(reply.first_id + i);
  return ids;
}

void ControlClient::clear_fault(std::uint32_t id) {
  rocemu_handle_message message = {};
  message.header.op = ROCEMU_OP_FAULT_CLEAR;
  message.header.length = sizeof(message);
  message.header.cookie = ++cookie_;
  message.handle = id;
  rocemu_handle_message reply = {};
  request(&message, sizeof(message), &reply, sizeof(reply), {ENOENT});
  if (reply.header.status == ENOENT)
    throw Failure("the NIC has no fault " + std::to_string(id) + "; rocemu fault list shows them",
                  kUsage);
}

void ControlClient::start_trace(int file, const std::string& filter, std::uint64_t max_bytes) {
  rocemu_trace_start message = {};
  if (filter.size() >= sizeof(message.filter)) throw Failure("too many filters", kUsage);
  message.header.op = ROCEMU_OP_TRACE_START;
  message.header.length = sizeof(message);
  message.header.cookie = ++cookie_;
  message.max_bytes = max_bytes;
  filter.copy(message.filter, sizeof(message.filter) - 1);
  rocemu_header reply = {};
  request(&message, sizeof(message), &reply, sizeof(reply), {ENODEV, EALREADY, EBADF}, file);
  if (reply.status == ENODEV)
    throw Refusal("the NIC has no such device; rocemu status lists them", kUsage);
  if (reply.status == EALREADY)
    throw Refusal("the NIC is traced already; rocemu trace stop ends that");
  if (reply.status == EBADF) throw Refusal("a trace wants a regular file", kUsage);
}

ControlClient::TraceEnd ControlClient::stop_trace() {
  rocemu_header message = {};
  message.op = ROCEMU_OP_TRACE_STOP;
  message.length = sizeof(message);
  message.cookie = ++cookie_;
  rocemu_trace_reply reply = {};
  request(&message, sizeof(message), &reply, sizeof(reply), {ENOENT, EALREADY});
  if (reply.header.status == ENOENT)
    throw Failure("the NIC is not traced; rocemu trace start begins that", kWrongState);
  if (reply.header.status == EALREADY) throw Failure("the trace is being ended already");
  return {reply.written_bytes, reply.lost_records, static_cast<int>(reply.write_error)};
}

void ControlClient::shutdown() { simple_request(ROCEMU_OP_SHUTDOWN); }

}  // namespace rocemu::cli
