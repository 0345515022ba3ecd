// faults: what programs see of each fault that can be asked for (docs/faults.md), that everything
// works again afterwards, and that nothing is left. To be run over a NIC with `rocemu run`; $ROCEMU
// names the command.
#include "tests/e2e/faults/fault_rows.h"
#include "tests/e2e/tools/row_runner.h"

int main(int argc, char** argv) {
  using namespace rocemu::e2e;
  return run_rows(argc, argv, "faults", "what programs see of faults",
                  {queue_fault_rows(), port_fault_rows(), call_fault_rows()});
}
