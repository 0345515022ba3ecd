// `rocemu fault`: faults of a NIC that is up.
#include <algorithm>
#include <charconv>
#include <iostream>

#include "emulator/cli/commands.h"
#include "emulator/cli/control_client.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/running_nic.h"
#include "emulator/cli/status_view.h"
#include "emulator/fault/grammar.h"
#include "emulator/fault/kinds.h"
#include "emulator/fault/quirks.h"

namespace rocemu::cli {
namespace {

int list(ControlClient& nic, const Options& options) {
  const Json faults = nic.faults();
  std::cout << (options.json ? faults.dump(2) + "\n" : faults_text(faults));
  return kSuccess;
}

int clear(ControlClient& nic, const Options& options) {
  const std::string& which = options.fault.back();
  uint32_t id = 0;
  const char* const end = which.data() + which.size();
  const bool is_id = std::from_chars(which.data(), end, id).ptr == end && id > 0;
  if (options.fault.size() != 2 || (!is_id && which != fault::kAllDevices))
    throw Failure("which one? write: rocemu fault clear ID, or all; rocemu fault list shows them",
                  kUsage);
  nic.clear_fault(id);
  const Json report = {{"cleared", which}};
  if (options.json) std::cout << report.dump() << '\n';
  return kSuccess;
}

int add(ControlClient& nic, const Options& options) {
  std::string text;
  for (const std::string& word : options.fault) text += (text.empty() ? "" : " ") + word;
  const fault::ParsedFaults parsed = fault::parse_faults(text);
  if (!parsed.error.empty()) throw Failure(parsed.error, kUsage);
  const std::vector<uint32_t> ids = nic.add_fault(text);
  if (options.json) {
    const Json report = {{"ids", ids}};
    std::cout << report.dump() << '\n';
    return kSuccess;
  }
  for (size_t i = 0; i < ids.size(); ++i)
    std::cout << "fault " << ids[i] << ": " << fault::to_text(parsed.faults[i]) << '\n';
  return kSuccess;
}

}  // namespace

int fault(const Options& options) {
  ControlClient nic(find_running_nic(options).socket());
  if (options.fault.front() == "list" && options.fault.size() == 1) return list(nic, options);
  if (options.fault.front() == "clear") return clear(nic, options);
  return add(nic, options);
}

std::string fault_help() {
  std::string text = R"(
WHAT goes wrong with DEVICE, or with all, and when:
)";
  size_t width = 0;
  for (const fault::KindRow& row : fault::kinds()) width = std::max(width, row.name.size());
  for (const fault::KindRow& row : fault::kinds())
    text += "  " + std::string(row.name) + std::string(width + 2 - row.name.size(), ' ') +
            std::string(row.what) + "\n";
  text += "  quirks=FAMILY" + std::string(width > 11 ? width - 11 : 2, ' ') +
          "what such devices do otherwise:";
  for (const std::string_view family : fault::quirk_families()) text += " " + std::string(family);
  return text + R"(

Whose:  qp=NUMBER  pid=PID  program=NAME  peer=ADDRESS
When:   at=TIME (of the NIC's life)  after=TIME  for=TIME  every=TIME  times=N  p=PERCENT  seed=N
        request=N  packet=N  nth=N (of the calls, completions or events that it is about)
What each takes besides is in docs/faults.md.
Without --name and --socket: the NIC of $ROCEMU_DIR if that is set, else the one named 'default'.

Examples:
  rocemu fault rocemu0 port-down for=200ms every=1s
  rocemu fault rocemu0 qp-error status=retry-exc-err program=ib_write_bw request=1000
  rocemu fault all call-fails call=create-qp errno=ENOMEM nth=3
  rocemu fault list --json
  rocemu fault clear 1)";
}

}  // namespace rocemu::cli
