#include "emulator/trace/show/text.h"

#include <array>
#include <cstdio>
#include <ostream>

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

}  // namespace

void show_text(const Trace& trace, const Selection& selection, std::ostream& out) {
  for (const Record& record : trace.records) {
    if (!selection.takes(record)) continue;
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
