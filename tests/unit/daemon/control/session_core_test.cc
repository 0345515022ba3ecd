#include "emulator/daemon/control/session_core.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "tests/fuzz/nic/inline_engine.h"
#include "tests/fuzz/nic/loopback.h"
#include "verbs_shim/abi/inspect.h"

namespace rocemu::daemon {
namespace {

// Connection management without any.
struct NoCm final : CmProgram {
  device::Result<uint32_t> open_channel(std::unique_ptr<EventWriter>) override {
    return tl::unexpected(ENOMEM);
  }
  int close_channel(uint32_t) override { return EBADF; }
  int command(const rocemu_cm_command&, rocemu_cm_reply&) override { return EBADF; }
  int next_event(uint32_t, rocemu_cm_event&) override { return EBADF; }
  void flush() override {}
};

// A session on a NIC that runs in this thread, and its program.
class Fixture final : private SessionPeer {
 public:
  explicit Fixture(ConnectionKind kind, bool inspects = false) {
    inspection_.watch(0, hca_);
    if (inspects) host_.inspection = &inspection_;
    host_.new_cm_program = [](pid_t) { return std::make_unique<NoCm>(); };
    rocemu_hello hello{};
    hello.header.op = ROCEMU_OP_HELLO;
    hello.header.length = sizeof(hello);
    hello.magic = ROCEMU_ABI_MAGIC;
    hello.abi_version = ROCEMU_ABI_VERSION;
    if (kind == ConnectionKind::fresh) return;
    if (kind == ConnectionKind::control) hello.device_index = ROCEMU_NO_DEVICE;
    if (kind == ConnectionKind::cm) hello.device_index = ROCEMU_CM_SERVICE;
    ask(std::as_bytes(std::span(&hello, 1)), kind == ConnectionKind::context ? 1 : 0);
    REQUIRE(status == 0);
  }
  ~Fixture() override {
    if (!closed) core_.on_end();
    CHECK(finished_);
  }

  // With so many descriptors, each a pipe's write end.
  void ask(std::span<const std::byte> bytes, size_t fd_count) {
    status.reset();
    ReceivedMessage message;
    message.length_bytes = bytes.size();
    std::copy(bytes.begin(), bytes.end(), message.buffer.begin());
    for (; message.fd_count < fd_count; ++message.fd_count) {
      int ends[2];
      REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
      const UniqueFd read_end(ends[0]);
      message.fds[message.fd_count] = UniqueFd(ends[1]);
    }
    core_.on_request(message);
    CHECK(closed != status.has_value());
  }
  // A message of zeros of that operation.
  void ask(const Operation& operation, size_t fd_count) {
    std::vector<std::byte> bytes(operation.message_bytes);
    rocemu_header header{};
    header.op = operation.number;
    header.length = operation.message_bytes;
    std::memcpy(bytes.data(), &header, sizeof(header));
    ask(bytes, fd_count);
  }

  SessionCore& core() { return core_; }

  std::optional<int> status;  // of the answer to the last request
  bool closed = false;

 private:
  pid_t pid() const override { return 0; }
  std::unique_ptr<dma::AddressSpace> reach_memory(UniqueFd, uint64_t, uint64_t) override {
    return dma::AddressSpace::none();
  }
  UniqueFd add_mailbox() override { return UniqueFd(::dup(engine_.engine_page_fd())); }
  void reply(std::span<const std::byte> bytes, std::span<const int>) override {
    REQUIRE(!status);
    rocemu_header header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    CHECK(header.length == bytes.size());
    status = header.status;
  }
  void close(const char*) override {
    closed = true;
    core_.on_end();
  }
  std::shared_ptr<void> hold() override { return nullptr; }
  void finished() override { finished_ = true; }

  std::vector<device::HcaConfig> devices_{fuzz::small_device()};
  fuzz::Loopback wire_{devices_[0].port};
  inspection::Inspection inspection_{1};
  device::Hca hca_{devices_[0], {}, wire_, inspection_.decorate(0)};
  fuzz::InlineEngine engine_{hca_};
  fuzz::NoAdministration administration_;
  SessionHost host_{devices_, engine_, administration_};
  SessionCore core_{host_, *this};
  bool finished_ = false;
};

constexpr ConnectionKind kKinds[] = {ConnectionKind::fresh, ConnectionKind::control,
                                     ConnectionKind::context, ConnectionKind::cm};

}  // namespace

TEST_CASE("each operation is refused on connections of another kind") {
  for (const Operation& operation : operations()) {
    for (const ConnectionKind kind : kKinds) {
      if (kind == operation.connection || operation.number == ROCEMU_OP_HELLO) continue;
      CAPTURE(operation.number, static_cast<int>(kind));
      Fixture session(kind);
      session.ask(operation, operation.min_fds);
      // Those of connection management are unknown elsewhere, and before a hello nothing is known.
      const bool unknown = kind == ConnectionKind::fresh || kind == ConnectionKind::cm ||
                           operation.connection == ConnectionKind::cm;
      CHECK(session.closed == unknown);
      if (!unknown) CHECK(session.status == EINVAL);
    }
  }
}

TEST_CASE("each operation is refused with too few or too many descriptors") {
  for (const Operation& operation : operations()) {
    if (operation.number == ROCEMU_OP_HELLO) continue;
    CAPTURE(operation.number);
    Fixture session(operation.connection);
    session.ask(operation, operation.max_fds + 1u);
    CHECK(session.status == EINVAL);
    if (operation.min_fds == 0) continue;
    session.ask(operation, operation.min_fds - 1u);
    CHECK(session.status == EINVAL);
  }
}

TEST_CASE("each operation answers a message of zeros once") {
  for (const Operation& operation : operations()) {
    CAPTURE(operation.number);
    Fixture session(operation.connection);
    session.ask(operation, operation.min_fds);
    CHECK(session.status.has_value());
  }
}

TEST_CASE(
    "a hello is refused with descriptors it has no use for, and for a device that is not there") {
  Fixture session(ConnectionKind::fresh);
  rocemu_hello hello{};
  hello.header.op = ROCEMU_OP_HELLO;
  hello.header.length = sizeof(hello);
  hello.magic = ROCEMU_ABI_MAGIC;
  hello.abi_version = ROCEMU_ABI_VERSION;
  hello.device_index = ROCEMU_CM_SERVICE;
  session.ask(std::as_bytes(std::span(&hello, 1)), 1);
  CHECK(session.status == EINVAL);  // no descriptors come with it
  hello.device_index = 1;
  session.ask(std::as_bytes(std::span(&hello, 1)), 1);
  CHECK(session.status == ENODEV);
}

TEST_CASE("a call for which the engine has no memory fails alone") {
  Fixture session(ConnectionKind::context);
  bool done = false;
  session.status.reset();
  session.core().on_engine([]() -> int { throw std::bad_alloc(); }, [&](int) { done = true; });
  CHECK(session.status == ENOMEM);
  session.status.reset();
  session.core().on_engine(
      [] { return std::vector<int>(std::vector<int>().max_size() + 1).size(); },
      [&](size_t) { done = true; });
  CHECK(session.status == ENOMEM);
  CHECK_FALSE(done);
  session.core().on_engine([] { return 7; }, [&](int seven) { done = seven == 7; });
  CHECK(done);
}

TEST_CASE("only a NIC that inspects says what it has seen") {
  constexpr struct {
    uint32_t number;
    int status;  // of one that inspects, to a message of zeros
  } kOperations[] = {
      {ROCEMU_OP_INSPECT_QP, ENOENT}, {ROCEMU_OP_TAKE_FINDINGS, 0}, {ROCEMU_OP_WAS_WRITTEN, 0}};
  const bool inspects = GENERATE(false, true);
  for (const auto& [number, status] : kOperations) {
    CAPTURE(number);
    const auto all = operations();
    const auto operation =
        std::find_if(all.begin(), all.end(), [&](const auto& o) { return o.number == number; });
    REQUIRE(operation != all.end());
    Fixture session(ConnectionKind::context, inspects);
    session.ask(*operation, 0);
    CHECK(session.status == (inspects ? status : EOPNOTSUPP));
  }
}

}  // namespace rocemu::daemon
