/* The same by ibv_dereg_mr(): the request completes with IBV_WC_LOC_PROT_ERR, or, when the NIC has
 * looked at the key already, it does not. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  open_pair(&pair);

  char* const memory = pair.server.buffer + 4096;
  struct ibv_mr* const mr = ibv_reg_mr(pair.server.pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
  must(mr != NULL, "ibv_reg_mr");
  struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
  struct ibv_recv_wr receive = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  must(ibv_post_recv(pair.server.qp, &receive, &bad) == 0, "ibv_post_recv");

  if (wrong) must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");  // <-- memory-gone
  drain(&pair.server, 1);
  if (!wrong) must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");

  close_pair(&pair);
  return 0;
}
