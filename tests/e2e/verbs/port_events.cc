// port_events: what a program is told of its port. The rows need someone who changes the device's
// network; the environment names commands that do so, for instance "ip link set eth0 down":
//   PORT_DOWN, PORT_UP     take the link away and give it back
//   GID_ADD, GID_DELETE    give each device one more address, and take it away
// A row whose command is not named is skipped. Runs on any device, as verbs does.
#include "tests/e2e/tools/row_runner.h"
#include "tests/e2e/verbs/ends.h"

int main(int argc, char** argv) {
  using namespace rocemu::e2e;
  return run_rows(argc, argv, "port_events", "what a program is told of its port", {port_rows()});
}
