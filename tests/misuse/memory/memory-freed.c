/* The same by free(): an allocator gives the memory to the next who asks, and the message is
 * written over what that one keeps there. */
#include <stdlib.h>

#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  open_pair(&pair);

  char* const memory = malloc(1000);
  must(memory != NULL, "malloc");
  struct ibv_mr* const mr = ibv_reg_mr(pair.server.pd, memory, 1000, IBV_ACCESS_LOCAL_WRITE);
  must(mr != NULL, "ibv_reg_mr");
  struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
  struct ibv_recv_wr receive = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  must(ibv_post_recv(pair.server.qp, &receive, &bad) == 0, "ibv_post_recv");

  if (wrong) free(memory);  // <-- memory-gone
  drain(&pair.server, 1);
  must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
  if (!wrong) free(memory);

  close_pair(&pair);
  return 0;
}
