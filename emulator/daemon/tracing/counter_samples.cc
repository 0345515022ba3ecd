#include "emulator/daemon/tracing/counter_samples.h"

#include <string_view>

#include "emulator/trace/format/names.h"

namespace rocemu::daemon {
namespace {

using transport::Counters;
using transport::TraceEvent;

struct Row {
  std::string_view name;
  TraceEvent event;
  TraceEvent other;  // counts as well, where it is another
};
// By their numbers in Table::counter.
constexpr Row kRows[] = {
    {"sent_bytes", TraceEvent::payload_sent, TraceEvent::payload_sent},
    {"rcvd_bytes", TraceEvent::payload_received, TraceEvent::payload_received},
    {"sent_pkts", TraceEvent::sent, TraceEvent::sent},
    {"rcvd_pkts", TraceEvent::received, TraceEvent::received},
    {"retransmitted_pkts", TraceEvent::retransmitted, TraceEvent::retransmitted},
    {"out_of_sequence", TraceEvent::out_of_sequence, TraceEvent::out_of_sequence},
    {"out_of_buffer", TraceEvent::rnr_nak_sent, TraceEvent::no_receive},
    {"rnr_nak_retry_err", TraceEvent::rnr_nak_received, TraceEvent::rnr_nak_received},
    {"local_ack_timeout_err", TraceEvent::ack_timeout, TraceEvent::ack_timeout},
    {"np_ecn_marked_roce_packets", TraceEvent::ecn_marked, TraceEvent::ecn_marked},
    {"np_cnp_sent", TraceEvent::cnp_sent, TraceEvent::cnp_sent},
    {"rp_cnp_handled", TraceEvent::cnp_handled, TraceEvent::cnp_handled},
};
static_assert(std::size(kRows) == kSampledCounters);

uint64_t value_of(const Row& row, const Counters& counters) {
  return counters[row.event] + (row.other == row.event ? 0 : counters[row.other]);
}

trace::Record record_of(size_t counter, TimeNs now, uint64_t value) {
  trace::Record record;
  record.kind = trace::Kind::counter;
  record.time_ns = now;
  record.program = static_cast<uint16_t>(counter);
  record.value = value;
  return record;
}

}  // namespace

std::vector<trace::Record> counter_names() {
  std::vector<trace::Record> all;
  for (size_t i = 0; i < kSampledCounters; ++i) {
    const auto records =
        trace::name_records(trace::Table::counter, static_cast<uint16_t>(i), kRows[i].name);
    all.insert(all.end(), records.begin(), records.end());
  }
  return all;
}

void CounterSamples::begin(TimeNs now, const Counters& counters) {
  last_ns_ = now;
  for (size_t i = 0; i < kSampledCounters; ++i) counters_[i] = {value_of(kRows[i], counters)};
}

void CounterSamples::sample(TimeNs now, const Counters& counters, trace::DeviceRecorder& recorder) {
  for (size_t i = 0; i < kSampledCounters; ++i) {
    Counter& counter = counters_[i];
    const uint64_t value = value_of(kRows[i], counters);
    if (value == counter.value) continue;
    if (!counter.is_told) recorder.record(record_of(i, last_ns_, counter.value));
    recorder.record(record_of(i, now, value));
    counter = {value, true};
  }
  last_ns_ = now;
}

}  // namespace rocemu::daemon
