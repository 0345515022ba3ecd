// rocemu-lab-wire: what `rocemu lab up --impair` or `--network` puts between its hosts
// (lab_wire.h). Each host's eth0 is a tap of this process.
//
//   rocemu-lab-wire [--impair SPEC]... [--network FILE] PID...
//
// The processes named are in the hosts' network namespaces, h1's first. Prints "ready" when every
// host has its eth0, and runs until it is killed; the interfaces end with it. Needs /dev/net/tun,
// and CAP_SYS_ADMIN and CAP_NET_ADMIN over those namespaces.
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/time.h"
#include "base/unique_fd.h"
#include "emulator/lab/lab_wire.h"

namespace {

using rocemu::kNever;
using rocemu::UniqueFd;
using rocemu::lab::LabWire;

constexpr char kInterface[] = "eth0";
constexpr size_t kMaxFrameBytes = 65536 + 14;
constexpr unsigned kFramesInTurn = 64;  // the most from one host

std::system_error failure(const std::string& what) {
  return {errno, std::generic_category(), what};
}

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// An eth0 in the network namespace of a process. This process stays in that one.
UniqueFd make_tap(const std::string& pid) {
  const std::string space = "/proc/" + pid + "/ns/net";
  const UniqueFd network(::open(space.c_str(), O_RDONLY | O_CLOEXEC));
  if (!network || ::setns(network.get(), CLONE_NEWNET) != 0) throw failure(space);
  UniqueFd tap(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!tap)
    throw failure("/dev/net/tun, of which the interfaces of hosts with impairments are made");
  ifreq request{};
  std::strncpy(request.ifr_name, kInterface, sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (::ioctl(tap.get(), TUNSETIFF, &request) != 0) throw failure("a tap in " + space);
  return tap;
}

void run(LabWire& wire, const std::vector<UniqueFd>& taps) {
  std::vector<pollfd> polled;
  for (const UniqueFd& tap : taps) polled.push_back({tap.get(), POLLIN, 0});
  std::array<std::byte, kMaxFrameBytes> frame;
  while (true) {
    const uint64_t next = wire.next_arrival_ns();
    const uint64_t before = now_ns();
    timespec wait{};
    if (next != kNever && next > before) {
      wait.tv_sec = static_cast<time_t>((next - before) / 1'000'000'000);
      wait.tv_nsec = static_cast<long>((next - before) % 1'000'000'000);
    }
    if (::ppoll(polled.data(), polled.size(), next == kNever ? nullptr : &wait, nullptr) < 0 &&
        errno != EINTR)
      throw failure("ppoll");
    wire.advance(now_ns());
    for (unsigned host = 0; host < taps.size(); ++host) {
      if ((polled[host].revents & POLLIN) == 0) continue;
      for (unsigned i = 0; i < kFramesInTurn; ++i) {
        const ssize_t length = ::read(taps[host].get(), frame.data(), frame.size());
        if (length <= 0) break;
        wire.on_frame(now_ns(), host, {frame.data(), static_cast<size_t>(length)});
      }
    }
  }
}

struct Asked {
  std::vector<rocemu::impairment::Assignment> impair;
  std::optional<rocemu::network::Description> network;
  std::vector<std::string> pids;
};

Asked read_words(const std::vector<std::string_view>& words) {
  Asked asked;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view option = words[i];
    if (option != "--impair" && option != "--network") {
      asked.pids.emplace_back(option);
      continue;
    }
    if (++i == words.size()) throw std::runtime_error(std::string(option) + " needs a value");
    if (option == "--impair") {
      const auto parsed = rocemu::impairment::parse_assignment(words[i]);
      if (!parsed.assignment) throw std::runtime_error(parsed.error);
      asked.impair.push_back(*parsed.assignment);
    } else {
      auto parsed = rocemu::network::read_description(words[i]);
      if (!parsed.description) throw std::runtime_error(parsed.error);
      asked.network = std::move(*parsed.description);
    }
  }
  return asked;
}

int start(const std::vector<std::string_view>& words) {
  const Asked asked = read_words(words);
  const std::vector<std::string>& pids = asked.pids;
  std::vector<UniqueFd> taps;
  LabWire wire(
      static_cast<unsigned>(pids.size()), [&](unsigned host, std::span<const std::byte> frame) {
        // A host that is down does not take the frame, which is lost.
        [[maybe_unused]] const auto written = ::write(taps[host].get(), frame.data(), frame.size());
      });
  if (asked.network && !wire.set_network(*asked.network, now_ns()))
    throw std::runtime_error("the network has fewer hosts than the lab");
  for (const auto& assignment : asked.impair)
    if (!wire.impair(assignment))
      throw std::runtime_error("there is no host '" + assignment.port + "' to impair");
  for (const std::string& pid : pids) taps.push_back(make_tap(pid));
  std::printf("ready\n");
  std::fflush(stdout);
  run(wire, taps);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return start({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
