// A fault that somebody asks for: what is to go wrong, of whom, and when. The text form is
// grammar.h's; when it strikes is trigger.h's affair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/net/ip_address.h"
#include "base/time.h"

namespace rocemu::fault {

enum class Kind : uint8_t {
  qp_error,
  cq_error,
  device_fatal,
  port_down,
  no_traffic,
  no_answer,
  pause,
  slow,
  gid_removed,
  gid_changed,
  call_fails,
  call_slow,
  post_fails,
  completion_late,
  completion_status,
  event_late,
  event_lost,
  kill,
};

// The course of a fault once its time has come.
enum class Nature : uint8_t {
  moment,  // strikes and is over
  state,   // lasts, for a time or until it is taken back
  filter,  // strikes some of the events that it is about
};

// The things that are counted until a moment or a state begins.
enum class Counted : uint8_t { nothing, requests, packets };

inline constexpr uint32_t kCertain = 1'000'000;  // parts per million
inline constexpr uint64_t kDefaultSeed = 1;

struct When {
  std::optional<TimeNs> at_ns{};    // since the NIC began
  TimeNs after_ns = 0;              // since the fault was asked for
  TimeNs for_ns = 0;                // duration; 0: until it is taken back
  TimeNs every_ns = 0;              // from one beginning to the next; 0: it begins once
  std::optional<uint32_t> times{};  // the most times that it begins (filter: strikes)
  Counted counted = Counted::nothing;
  uint32_t count = 0;  // number of the request or packet; filter: of the first event struck
  uint32_t probability_ppm = kCertain;
  uint64_t seed = kDefaultSeed;

  bool operator==(const When&) const = default;
};

// The QPs, CQs and calls that a fault is about. Empty: all of the device's.
struct Whom {
  std::optional<uint32_t> qpn{};
  std::optional<uint32_t> pid{};
  std::string program;  // its name, as /proc/PID/comm has it
  std::optional<IpAddress> peer{};

  bool everybody() const { return *this == Whom{}; }
  bool operator==(const Whom&) const = default;
};

struct What {
  Kind kind{};
  uint8_t status = 0;             // enum ibv_wc_status
  std::optional<uint8_t> from{};  // the status that is changed; empty: whichever
  int error = 0;                  // errno
  TimeNs delay_ns = 0;
  uint64_t rate_bits_per_s = 0;
  std::string call;   // one of call_names(), or any
  std::string queue;  // send, receive, or any
  std::string event;  // srq-limit, last-wqe, or any
  bool transmit = true;
  bool receive = true;
  uint32_t gid_index = 0;
  IpAddress gid;  // the new one

  bool operator==(const What&) const = default;
};

inline constexpr char kAllDevices[] = "all";
inline constexpr char kAny[] = "any";

struct Spec {
  std::string device;
  What what;
  Whom whom;
  When when;
  std::string quirks;  // the family whose quirk it is; empty: somebody asked for it by itself

  bool operator==(const Spec&) const = default;
};

}  // namespace rocemu::fault
