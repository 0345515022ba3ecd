// Traces for tests, as they are read from a file: each passes through the format's writer and
// reader.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/verbs/numbers.h"
#include "emulator/trace/format/reader.h"
#include "emulator/trace/format/writer.h"
#include "emulator/wire/opcode.h"

namespace rocemu::trace {

// Two devices, QP 0x11 of the first connected to QP 0x12 of the second.
class TraceBuilder {
 public:
  static constexpr uint32_t kA = 0x11, kB = 0x12;
  static constexpr uint64_t kStartNs = 1'000'000;

  explicit TraceBuilder(Clock clock = Clock::monotonic) : clock_(clock) {
    name(Table::device, 0, "rocemu0", 4096);
    name(Table::device, 1, "rocemu1", 4096);
    name(Table::address, 0, "10.77.0.1");
    name(Table::address, 1, "10.77.0.2");
    name(Table::program, 0, "sender", 100);
    name(Table::program, 1, "receiver", 200);
    name(Table::rule, 1, "bad_rkey");
    name(Table::rule, 2, "receiver_not_ready");
    name(Table::impairment, 1, "loss=1%");
    name(Table::counter, 1, "out_of_buffer");
  }

  // Both QPs are created and connected, at the trace's beginning.
  TraceBuilder& connected() {
    for (const uint16_t device : {0, 1}) {
      Record& created = add(0, Kind::qp_created, device);
      created.code = verbs::qp_type::kRc;
      created.program = device;
      Record& state = add(0, Kind::qp_state, device);
      state.code = static_cast<uint8_t>(verbs::QpState::ready_to_send);
      state.peer_qpn = qpn_of(1 - device);
      state.peer_device = static_cast<uint16_t>(1 - device);
      state.length_bytes = 1024;
      state.count = QpTimers{7, 7, 14}.packed();
    }
    return *this;
  }

  void name(Table table, uint16_t number, std::string_view text, uint32_t detail = 0) {
    for (const Record& record : name_records(table, number, text, detail))
      records_.push_back(record);
  }

  // A record of device 0's QP kA or device 1's kB, `us` after the trace's beginning. What it
  // returns holds until the next one is added.
  Record& add(uint64_t us, Kind kind, uint16_t device = 0) {
    Record& record = records_.emplace_back();
    record.time_ns = kStartNs + us * 1000;
    record.kind = kind;
    record.device = device;
    record.qpn = qpn_of(device);
    return record;
  }
  Record& request(uint64_t us, Kind kind, uint32_t number, uint16_t device = 0) {
    Record& record = add(us, kind, device);
    record.request = number;
    record.wr_id = 0x100 + number;
    record.opcode = kind >= Kind::completion_pushed ? 0 : verbs::wr_opcode::kSend;
    record.length_bytes = 64;
    record.program = device;
    return record;
  }
  Record& packet(uint64_t us, Kind kind, uint32_t psn, uint16_t device = 0,
                 wire::Operation operation = wire::Operation::send_only) {
    Record& record = add(us, kind, device);
    record.psn = psn;
    record.opcode = static_cast<uint8_t>(operation);
    record.peer_qpn = qpn_of(1 - device);
    record.peer_device = static_cast<uint16_t>(1 - device);
    if (operation == wire::Operation::acknowledge) {
      record.flags = flag::kResponse | flag::kHasAeth;
      record.code = 0x1f;
    } else {
      record.length_bytes = 64;
    }
    return record;
  }
  // Sent by `device`, seen by the other a microsecond later.
  void crossing(uint64_t us, uint32_t psn, uint16_t device = 0,
                wire::Operation operation = wire::Operation::send_only) {
    packet(us, Kind::packet_sent, psn, device, operation);
    Record seen = packet(us + 1, Kind::packet_received, psn, device, operation);
    seen.device = static_cast<uint16_t>(1 - device);
    seen.qpn = qpn_of(1 - device);
    seen.peer_qpn = qpn_of(device);
    seen.peer_device = device;
    records_.back() = seen;
  }
  std::vector<Record>& records() { return records_; }

  Trace read() const {
    char path[] = "/tmp/rocemu-trace-XXXXXX";
    UniqueFd file(::mkstemp(path));
    Writer writer(std::move(file), make_header(clock_, kStartNs, 1'700'000'000'000'000'000, "test"),
                  uint64_t{1} << 30);
    writer.append(records_);
    Record last;
    last.kind = Kind::stopped;
    last.time_ns = records_.empty() ? kStartNs : records_.back().time_ns;
    writer.finish(last);
    Trace trace = load(path);
    std::filesystem::remove(path);
    return trace;
  }

 private:
  static uint32_t qpn_of(int device) { return device == 0 ? kA : kB; }

  Clock clock_;
  std::vector<Record> records_;
};

}  // namespace rocemu::trace
