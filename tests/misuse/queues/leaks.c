/* Wrong: what the program made is still there when it ends. The system cleans up behind it; a long-
 * lived program that does so for each connection runs out of them. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  open_pair(&pair);
  struct ibv_mr* const mr = ibv_reg_mr(pair.client.pd, pair.client.buffer, 64, 0);  // <-- leaks
  must(mr != NULL, "ibv_reg_mr");
  if (wrong) return 0;

  must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
  close_pair(&pair);
  return 0;
}
