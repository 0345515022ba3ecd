// Works out what `rocemu top` shows: the newest report, with rates by what has changed since the
// one before.
//
// 1. The time between two reports is the NIC's own.
// 2. A QP, or a device, that the report before did not have, or whose counts have gone back since,
//    as those of a QP do that was reset or made anew under its old number, has no rates yet.
// 3. Counts of messages come modulo a power of two (docs/control.md) and are taken for less than
//    one time around.
// 4. A QP that waits for its window or an answer behind a port that was paused for half of the time
//    or more waits for that.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/cli/top/report.h"

namespace rocemu::cli::top {

// Each by the second.
struct Rates {
  double tx_bits = 0;  // of a QP: payload; of a device: whole frames
  double rx_bits = 0;
  double messages = 0;         // own requests that were completed, peers' that were carried out
  double retransmissions = 0;  // packets sent again
  double rnrs = 0;             // RNR NAKs, sent and received
};

struct Qp {
  QpReport now;
  std::string program;  // its name; empty: there is none
  std::optional<Rates> rates;
  std::string waits_for;  // empty: nothing
};

struct Program {
  std::int64_t pid = 0;
  std::string name;
  unsigned qps = 0;
  unsigned waiting_qps = 0;  // those that do not just wait for their turn
  std::optional<Rates> rates;
  std::optional<double> oldest_age_us;
  std::string waits_for;  // what its QP with the oldest request waits for, or the first that waits
};

struct Device {
  DeviceReport now;
  std::optional<Rates> rates;
  std::optional<double> paused_share;  // of the time between the reports
};

struct View {
  std::string nic;
  std::string version;
  std::int64_t pid = 0;
  double uptime_s = 0;
  double interval_s = 0;  // 0: there was no report before
  std::vector<Device> devices{};
  std::vector<Program> programs{};
  std::vector<Qp> qps{};
  std::uint64_t qps_not_shown = 0;  // the report has some of a device alone
};

using NameOfProcess = std::function<std::string(std::int64_t pid)>;

// `before` may be null.
View make_view(const Report* before, const Report& now, const NameOfProcess& name_of);

}  // namespace rocemu::cli::top
