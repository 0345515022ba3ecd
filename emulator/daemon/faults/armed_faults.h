// ArmedFaults are the faults that somebody asked for and has not taken back, with their triggers.
// It says which of them are active, and which strike an event; it does nothing to a device.
//
// Any thread may call it. Time comes in as a parameter, so that it runs in virtual time as well.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/net/ip_address.h"
#include "base/time.h"
#include "emulator/fault/spec.h"
#include "emulator/fault/trigger.h"

namespace rocemu::daemon {

// Who says which device, QP, program and peer an event is about.
struct Who {
  uint32_t device = 0;
  uint32_t qpn = 0;   // 0: it is not about a QP
  pid_t program = 0;  // 0: not known
  std::optional<IpAddress> peer{};
};

// A fault begins or ends.
struct FaultChange {
  uint32_t id = 0;
  fault::Spec spec;
  bool begins = false;
};

// FaultNeeds says what has to stand ready at a device for the faults that are active.
struct FaultNeeds {
  bool completions = false;
  bool requests = false;  // counted
  bool events = false;
  bool posts = false;
  bool rates = false;    // the rates of QPs are limited
  bool packets = false;  // counted, or dropped by whom they are for
  bool drops_received = false;
  bool drops_sent = false;
  bool holds_received = false;
  bool holds_sent = false;
  uint64_t rate_bits_per_s = 0;  // the whole device's; 0: no limit

  bool port() const {
    return packets || drops_received || drops_sent || holds_received || holds_sent ||
           rate_bits_per_s > 0;
  }
  bool operator==(const FaultNeeds&) const = default;
};

class ArmedFaults {
 public:
  static constexpr size_t kMax = 256;

  // `devices` by index. `name_of` tells a program's name.
  ArmedFaults(std::vector<std::string> devices, TimeNs nic_began_ns,
              std::function<std::string(pid_t)> name_of)
      : devices_(std::move(devices)), nic_began_ns_(nic_began_ns), name_of_(std::move(name_of)) {}

  // True for `all` and the names of devices.
  bool knows(const std::string& device) const;
  bool concerns(const fault::Spec& spec, const Who& who) const;
  // Returns the ids of the new faults, in order; empty when there would be more than kMax. Faults
  // that are over make room.
  std::vector<uint32_t> add(std::vector<fault::Spec> specs, TimeNs now_ns);
  // Takes the fault `id` back; 0: all. Returns the ends of what was active, or nothing when there
  // is no such fault.
  std::optional<std::vector<FaultChange>> remove(uint32_t id);

  std::vector<FaultChange> on_time(TimeNs now_ns);
  // The time at which on_time() has to be called.
  TimeNs next_ns() const;
  // A request was taken, or a packet came by.
  std::vector<FaultChange> on_count(fault::Counted counted, const Who& who, TimeNs now_ns);
  // The first fault of that kind that strikes the event, which counts for all of them. `about` says
  // whether its What is about it.
  using About = std::function<bool(const fault::What&)>;
  std::optional<fault::What> strike(fault::Kind kind, const Who& who, const About& about);
  // True when a state of that kind is active for `who`.
  bool active(fault::Kind kind, const Who& who) const;

  // Visits all active faults of a device.
  void for_each_active(uint32_t device, const std::function<void(const fault::Spec&)>& visit) const;
  FaultNeeds needs(uint32_t device) const;
  // True when an active fault may be about a call or a post.
  bool any_of_calls() const;

  struct Report {
    uint32_t id = 0;
    fault::Spec spec;
    fault::Trigger::State state{};
    uint64_t strikes = 0;
  };
  std::vector<Report> report() const;

 private:
  struct Armed {
    uint32_t id;
    fault::Spec spec;
    fault::Trigger trigger;
  };

  bool of_device(const fault::Spec& spec, uint32_t device) const;

  const std::vector<std::string> devices_;
  const TimeNs nic_began_ns_;
  const std::function<std::string(pid_t)> name_of_;
  mutable std::mutex mutex_;
  std::vector<Armed> faults_;
  uint32_t next_id_ = 1;
};

}  // namespace rocemu::daemon
