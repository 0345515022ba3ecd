// The main function of a program of rows: options, the two devices, a verdict a row, an exit code.
// After each row a QP pair that was connected before the first one must still carry traffic.
#pragma once

#include <initializer_list>
#include <span>

#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {

// 0 when every row passed, 1 when one did not, 2 for a bad command line.
int run_rows(int argc, char** argv, const char* program, const char* purpose,
             std::initializer_list<std::span<const Row>> sets);

}  // namespace rocemu::e2e
