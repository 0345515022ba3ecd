// What Gsi asks a port's network for the MADs it sends, and what leaves.
#include "emulator/daemon/cm_service/gsi.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <thread>

#include "base/time.h"
#include "emulator/daemon/attachment/gid_directory.h"
#include "tests/unit/daemon/nic_fixture.h"

namespace rocemu::daemon {
namespace {

using Kind = Attachment::Answer::Kind;

// A network that says nothing until the test answers.
class SlowNetwork final : public Attachment {
 public:
  struct Question {
    wire::Gid destination;
    Answered answered;
  };

  device::PortConfig describe(const device::PortConfig& before) override { return before; }
  void find(const device::PortConfig&, const wire::Gid& destination, Answered answered) override {
    questions.push_back({destination, std::move(answered)});
  }
  void answer(size_t question, Kind kind) { questions[question].answered({kind, {}}); }

  std::vector<Question> questions;
};

class CountingPort final : public dpdk_io::Port {
 public:
  unsigned receive(uint64_t, std::span<rte_mbuf*>) noexcept override { return 0; }
  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override {
    frames += static_cast<unsigned>(burst.size());
    return dead_.transmit(now_ns, burst);
  }
  int poll_fd() const noexcept override { return -1; }
  bool has_work() const noexcept override { return false; }
  uint64_t next_arrival_ns() const noexcept override { return kNever; }
  const dpdk_io::PortStats& stats() const noexcept override { return dead_.stats(); }

  std::atomic<unsigned> frames{0};

 private:
  DeadPort dead_;
};

class GsiFixture {
 public:
  GsiFixture() : engine_(nic_.pool()), finder_(io, network, devices_[0].port) {
    engine_.add_device(
        std::make_unique<device::Hca>(devices_[0], transport::TransportLimits{}, gids_), port_,
        false);
    gsi.emplace(io, engine_, devices_, gids_, std::vector<PathFinder*>{&finder_},
                [](const cm::Route&, std::span<const std::byte>) {});
    engine_.start();
  }
  ~GsiFixture() { end(); }

  void end() {
    engine_.stop();
    gsi.reset();
  }

  void send_to(uint16_t number) {
    wire::Gid remote;
    remote.bytes = {0xfd, 0x52};
    remote.bytes[14] = static_cast<uint8_t>(number >> 8);
    remote.bytes[15] = static_cast<uint8_t>(number);
    std::vector<cm::OutgoingMad> mads{{{0, devices_[0].port.gids[0].gid, remote}, {}}};
    gsi->send(mads);
  }
  // Neither less nor more.
  bool frames_leave(unsigned count) {
    for (int waited_ms = 0; waited_ms < 10'000 && port_.frames < count; ++waited_ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return port_.frames == count;
  }

  // What the network has not answered holds timers of the io_context, which outlives it as in
  // Daemon.
  boost::asio::io_context io;
  SlowNetwork network;
  std::optional<Gsi> gsi;

 private:
  NicFixture nic_;
  std::vector<device::HcaConfig> devices_{device::default_config(0)};
  GidDirectory gids_;
  CountingPort port_;
  Engine engine_;
  PathFinder finder_;
};

TEST_CASE("Many MADs for one address are one search, at whose end all leave") {
  GsiFixture nic;
  for (int i = 0; i < 20; ++i) nic.send_to(1);
  nic.send_to(2);
  REQUIRE(nic.network.questions.size() == 2);
  nic.network.answer(0, Kind::found);
  CHECK(nic.frames_leave(20));
  nic.network.answer(1, Kind::unreachable);
  CHECK(nic.frames_leave(20));
  nic.send_to(2);
  CHECK(nic.network.questions.size() == 3);
}

TEST_CASE("Beyond the most searches a MAD goes where the way is known, or not at all") {
  const size_t most = PendingMadsLimits{}.max_searches;
  GsiFixture nic;
  for (uint16_t i = 0; i < most + 2; ++i) nic.send_to(i);
  REQUIRE(nic.network.questions.size() == most + 2);
  nic.network.answer(most, Kind::found);
  CHECK(nic.frames_leave(1));
  nic.network.answer(most + 1, Kind::not_yet);
  nic.network.answer(0, Kind::unreachable);
  nic.send_to(0);  // a search again
  nic.send_to(0);
  CHECK(nic.network.questions.size() == most + 3);
}

TEST_CASE("An answer that comes after the end finds nobody") {
  GsiFixture nic;
  for (uint16_t i = 0; i < PendingMadsLimits{}.max_searches + 1; ++i) nic.send_to(i);
  nic.end();
  nic.network.answer(0, Kind::found);
  nic.network.answer(nic.network.questions.size() - 1, Kind::found);
  CHECK(nic.frames_leave(0));
}

}  // namespace
}  // namespace rocemu::daemon
