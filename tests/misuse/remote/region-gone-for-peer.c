/* A peer that was given an rkey may use it until it was told, and has confirmed, that it must not.
 * Wrong: the region is deregistered while the peer still writes to it. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_pair(&pair);

  char* const memory = pair.server.buffer + 4096;
  struct ibv_mr* const mr =
      ibv_reg_mr(pair.server.pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  must(mr != NULL, "ibv_reg_mr");
  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  send.wr.wr.rdma.remote_addr = (uintptr_t)memory;
  send.wr.wr.rdma.rkey = mr->rkey;
  if (wrong) must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
  post_send(&pair.client, &send);  // <-- memory-gone
  take_completion(&pair.client);
  if (!wrong) must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");

  close_pair(&pair);
  return 0;
}
