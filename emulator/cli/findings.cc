// `rocemu findings`: what was found in the programs of a NIC that is up.
#include "emulator/cli/findings/findings.h"

#include <iostream>

#include "emulator/cli/commands.h"
#include "emulator/cli/findings/nic_checks.h"
#include "emulator/cli/findings/report_files.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/running_nic.h"

namespace rocemu::cli {

int findings(const Options& options) {
  const RunningNic nic = find_running_nic(options);
  if (!or_those_of_nic({}, nic.state_dir).wanted())
    throw Failure(
        "the NIC named '" + nic.name + "' was started without --check: nothing was looked for",
        kFailure);
  const std::vector<FoundOnce> found = read_findings(nic.state_dir);
  if (!options.check.report.empty()) write_report(options.check.report, found);
  std::cout << (options.json ? as_json(found) : as_text(found));
  return found.empty() ? kSuccess : options.check.exit_code;
}

}  // namespace rocemu::cli
