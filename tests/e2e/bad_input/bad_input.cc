// bad_input: does everything a program can do wrong with RC verbs, row by row, and checks that each
// gets the error the man page or the specification names (errno, completion status, QP state, async
// event). Uses the public libibverbs interface alone. Exits 0 when every row passed, 1 otherwise.
#include "tests/e2e/tools/row_runner.h"

int main(int argc, char** argv) {
  using namespace rocemu::e2e;
  return run_rows(argc, argv, "bad_input",
                  "what a program can do wrong, and the error that must follow",
                  {registration_rows(), local_memory_rows(), remote_memory_rows(), receive_rows(),
                   queue_rows(), state_rows(), no_answer_rows(), limit_rows(), window_rows(),
                   handle_rows(), work_queue_rows()});
}
