// Two hosts' connection managers: the commands of hostile programs on one side of each, and on the
// other a network that loses, repeats, alters and makes up MADs. Held against: the bounds that
// limits set, no answer to another program's numbers, time that gets on, and nothing left when the
// programs have gone and everybody has stopped waiting.
#include <array>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/time.h"
#include "emulator/cm/rdma_cm.h"
#include "emulator/daemon/cm_service/cm_commands.h"
#include "emulator/daemon/cm_service/cm_events.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/cm/command.h"
#include "tests/fuzz/expect.h"
#include "tests/unit/cm/seeded.h"

namespace {

using namespace rocemu;
using namespace rocemu::fuzz;

constexpr uint32_t kMaxSteps = 400;
constexpr cm::OwnerId kPrograms = 2;
constexpr size_t kMaxInFlight = 64;
constexpr TimeNs kMs = 1'000'000;

cm::RdmaLimits small_limits() {
  cm::RdmaLimits limits;
  limits.max_ids = 12;
  limits.max_channels = 5;
  limits.max_events = 8;
  limits.max_events_in_all = 20;
  limits.max_groups = 3;
  limits.max_backlog = 3;
  limits.connections.max_connections = 10;
  return limits;
}

wire::Gid ipv4_gid(uint8_t host) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, host}};
}

wire::Gid ipv6_gid(uint8_t host) {
  return {{0xfd, 0x52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host}};
}

cm::Interfaces interfaces_of(uint8_t host) {
  const auto other = static_cast<uint8_t>(3 - host);
  return cm::Interfaces({{0x5200u + host, 5, {{ipv4_gid(host), 112}, {ipv6_gid(host), 64}}}},
                        {ipv4_gid(other), ipv6_gid(other)});
}

// Rings less what was taken or withdrawn: what a program would find in its pipe.
class Pipe final : public cm::EventNotifier {
 public:
  explicit Pipe(int& waiting) : waiting_(waiting) {}
  void notify() noexcept override { ++waiting_; }

 private:
  int& waiting_;
};

class Host {
 public:
  explicit Host(uint8_t number)
      : cm_(interfaces_of(number), cm::test::seeded(number), small_limits()) {}

  cm::RdmaCm& cm() { return cm_; }

  void open_channel(cm::OwnerId owner) {
    (void)cm_.open_channel(owner, std::make_unique<Pipe>(waiting_));
  }

  void command(TimeNs now, cm::OwnerId owner, const rocemu_cm_command& command) {
    if (command.command == kGetEvent) return take_event(owner, command.channel);
    rocemu_cm_reply reply{};
    const int error = daemon::run_cm_command(cm_, now, owner, command, reply);
    expect(error >= 0, "a command succeeds or fails with an errno");
    expect(error == 0 || reply.out_bytes == 0, "what fails has no answer");
    expect(reply.out_bytes <= command.out_bytes, "an answer fits where the program wants it");
    waiting_ -= static_cast<int>(reply.withdrawn);
    expect(waiting_ >= 0, "there is a ring for each event");
  }

  // It has a message of its own.
  void take_event(cm::OwnerId owner, cm::ChannelId channel) {
    rocemu_cm_event event{};
    const int error = daemon::take_event(cm_, owner, channel, event);
    expect(error >= 0, "an event is taken, or an errno says why not");
    expect(error == 0 || event.answers.given == 0, "without an event there are no answers");
    if (error == 0) --waiting_;
    expect(waiting_ >= 0, "there is a ring for each event");
  }

  void close_channel(TimeNs now, cm::OwnerId owner, cm::ChannelId channel) {
    (void)cm_.close_channel(now, owner, channel);
    closed_ = true;  // its pipe is gone with what was in it
  }

  void check() const {
    const cm::RdmaLimits limits = small_limits();
    expect(cm_.ids().size() <= limits.max_ids && cm_.channel_count() <= limits.max_channels &&
               cm_.group_count() <= limits.max_groups &&
               cm_.connections().all().size() <= limits.connections.max_connections,
           "limits hold");
    expect(closed_ || static_cast<size_t>(waiting_) <= limits.max_events_in_all,
           "the events that wait are bounded");
    for (const auto& [handle, id] : cm_.ids())
      expect(cm_.owner_of(id) != 0, "an id has a channel, and that an owner");
  }

 private:
  static constexpr uint32_t kGetEvent = 12;  // RDMA_USER_CM_CMD_GET_EVENT

  cm::RdmaCm cm_;
  int waiting_ = 0;
  bool closed_ = false;
};

class Network {
 public:
  explicit Network(ByteSource& input) : input_(input) {}

  void run() {
    for (Host& host : hosts_)
      for (cm::OwnerId owner = 1; owner <= kPrograms; ++owner) host.open_channel(owner);
    for (uint32_t i = 0; i < kMaxSteps && !input_.empty(); ++i) {
      step();
      for (const Host& host : hosts_) host.check();
    }
    end();
  }

 private:
  void step() {
    const uint8_t choice = input_.u8();
    Host& host = hosts_[choice % kHosts];
    const cm::OwnerId owner = 1 + choice / 2 % kPrograms;
    switch (choice / 4 % 16) {
      case 0:
        return host.open_channel(owner);
      case 1:
        if (choice < 0xe0) return pass();
        return host.close_channel(now_, owner, input_.below(6));
      case 2:
        return pass();
      case 3:
        return forge(host);
      case 4:
      case 5:
      case 6:
        return deliver();
      default:
        return host.command(now_, owner, draw_command(input_));
    }
  }

  void pass() {
    now_ += input_.pick<TimeNs>({kMs, 60 * kMs, 5000 * kMs, 400'000 * kMs});
    for (Host& host : hosts_) host.cm().on_timeout(now_);
  }

  void collect() {
    cm::OutgoingMad mad;
    for (Host& host : hosts_) {
      while (host.cm().next_mad(mad)) {
        last_ = mad;
        if (in_flight_.size() < kMaxInFlight) in_flight_.push_back(mad);
      }
    }
  }

  void arrive(const cm::OutgoingMad& mad) {
    for (Host& host : hosts_) {
      const auto place = host.cm().interfaces().find(mad.route.remote);
      if (!place) continue;
      host.cm().on_mad(now_, {place->device, mad.route.remote, mad.route.local}, mad.mad);
    }
  }

  // What is under way arrives, but for what this network does to it.
  void deliver() {
    collect();
    for (size_t count = in_flight_.size(); count > 0; --count) {
      cm::OutgoingMad mad = in_flight_.front();
      in_flight_.pop_front();
      const uint8_t fate = input_.u8();
      if (fate >= 0xf8) continue;
      if (fate >= 0xf0) arrive(mad);
      if (fate >= 0xe0) alter(mad);
      arrive(mad);
    }
  }

  void alter(cm::OutgoingMad& mad) {
    for (uint32_t count = 1 + input_.below(3); count > 0; --count)
      mad.mad[input_.u8()] = std::byte{input_.u8()};
  }

  // The last message again, about another connection or of another kind.
  void forge(Host& host) {
    cm::OutgoingMad mad = last_;
    alter(mad);
    const std::vector<std::byte> cut(mad.mad.begin(),
                                     mad.mad.end() - (input_.u8() < 0xf0 ? 0 : input_.u8()));
    const wire::Gid& to = host.cm().interfaces().device(0).addresses[input_.below(2)].gid;
    host.cm().on_mad(now_, {input_.below(2), to, mad.route.local}, cut);
  }

  // The programs end, and all that waits for something stops waiting.
  void end() {
    for (Host& host : hosts_)
      for (cm::OwnerId owner = 1; owner <= kPrograms; ++owner) host.cm().close_owner(now_, owner);
    for (uint32_t turns = 0;; ++turns) {
      collect();
      while (!in_flight_.empty()) {
        const cm::OutgoingMad mad = in_flight_.front();
        in_flight_.pop_front();
        arrive(mad);
        collect();
      }
      const TimeNs next = std::min(hosts_[0].cm().next_deadline(), hosts_[1].cm().next_deadline());
      if (next == kNever) break;
      expect(turns < 10'000, "whoever waits stops waiting");
      now_ = std::max(now_ + 1, next);
      for (Host& host : hosts_) host.cm().on_timeout(now_);
    }
    for (Host& host : hosts_)
      expect(host.cm().ids().empty() && host.cm().channel_count() == 0 &&
                 host.cm().group_count() == 0 && host.cm().connections().all().empty(),
             "nothing is left of a program");
  }

  ByteSource& input_;
  TimeNs now_ = kMs;
  std::array<Host, kHosts> hosts_{Host(1), Host(2)};
  std::deque<cm::OutgoingMad> in_flight_;
  cm::OutgoingMad last_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  ByteSource input(data, size_bytes);
  Network(input).run();
  return 0;
}
