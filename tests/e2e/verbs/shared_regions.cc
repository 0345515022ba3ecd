// shared_regions: memory that a NIC may map instead of reaching into the program, which a program
// must not notice. For `rocemu run --share-memory`: elsewhere the memory stays private, and the
// rows that look for that fail.
#include "tests/e2e/tools/row_runner.h"
#include "tests/e2e/verbs/ends.h"

int main(int argc, char** argv) {
  using namespace rocemu::e2e;
  return run_rows(argc, argv, "shared_regions", "memory that a NIC maps", {shared_region_rows()});
}
