// limits: whether a device has what it says it has, and no more. Objects of every kind are made
// until it refuses, so that this is for a device with small tables and no other user.
#include "tests/e2e/tools/row_runner.h"
#include "tests/e2e/verbs/ends.h"

int main(int argc, char** argv) {
  using namespace rocemu::e2e;
  return run_rows(argc, argv, "limits", "whether a device has what it says", {limit_edge_rows()});
}
