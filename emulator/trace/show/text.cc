#include "emulator/trace/show/text.h"

#include <array>
#include <cstdio>
#include <map>
#include <ostream>
#include <utility>

#include "emulator/trace/show/remarks.h"
#include "emulator/trace/show/vocabulary.h"

namespace rocemu::trace {

namespace {

// With a sign where a record is older than the trace, as those of threads that had begun one are.
std::string seconds_text(const Trace& trace, uint64_t time_ns) {
  const bool is_before = time_ns < trace.header.start_ns;
  const uint64_t ns = is_before ? trace.header.start_ns - time_ns : time_ns - trace.header.start_ns;
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), "%s%llu.%09llu", is_before ? "-" : "",
                static_cast<unsigned long long>(ns / 1'000'000'000),
                static_cast<unsigned long long>(ns % 1'000'000'000));
  return text.data();
}

// Tells which records are of the QPs that are selected.
class Chooser {
 public:
  Chooser(const Trace& trace, const Selection& selection) : selection_(selection) {
    if (selection.programs.empty()) return;
    for (const Record& record : trace.records)
      if (record.qpn != 0 && names_program(record)) programs_[key_of(record)] = record.program;
  }

  bool takes(const Record& record) const {
    if (selection_.everything()) return true;
    const uint16_t program = record.qpn == 0 && names_program(record)
                                 ? record.program
                                 : program_of(record.device, record.qpn);
    if (selection_.takes(record.device, record.qpn, program)) return true;
    return selection_.qpn != 0 && selection_.takes(record.peer_device, record.peer_qpn,
                                                   program_of(record.peer_device, record.peer_qpn));
  }

 private:
  using Key = std::pair<uint16_t, uint32_t>;

  static bool names_program(const Record& record) {
    return record.kind >= Kind::program_began && record.kind < Kind::packet_sent &&
           record.program != kNoProgram;
  }
  static Key key_of(const Record& record) { return {record.device, record.qpn}; }
  uint16_t program_of(uint16_t device, uint32_t qpn) const {
    const auto found = programs_.find({device, qpn});
    return found == programs_.end() ? kNoProgram : found->second;
  }

  const Selection& selection_;
  std::map<Key, uint16_t> programs_;  // whose QPs are
};

}  // namespace

void show_text(const Trace& trace, const Selection& selection, std::ostream& out) {
  const Chooser chooser(trace, selection);
  for (const Record& record : trace.records) {
    if (!chooser.takes(record)) continue;
    out << seconds_text(trace, record.time_ns);
    if (record.device != kNoDevice) out << ' ' << trace.names.text(Table::device, record.device);
    if (record.qpn != 0) out << " QP " << hexadecimal(record.qpn);
    const bool has_program = record.kind < Kind::packet_sent || record.kind == Kind::cm_sent ||
                             record.kind == Kind::cm_received;
    if (has_program && record.program != kNoProgram)
      out << ' ' << program_text(trace.names, record.program);
    out << ' ' << record_text(trace.names, record) << '\n';
  }
}

}  // namespace rocemu::trace
