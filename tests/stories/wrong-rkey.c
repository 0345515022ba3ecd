/* A key that was right yesterday: the server registers its buffer anew, and the client goes on with
 * the old rkey. The request fails, the QP with it, and what was posted behind is flushed. */
#include <stdio.h>

#include "tests/misuse/pair/pair.h"

enum { WRITES = 6, STALE_FROM = 3, BYTES = 2048 };

int main(void) {
  struct pair pair;
  struct send send;
  open_pair(&pair);
  struct ibv_mr* const old = ibv_reg_mr(pair.server.pd, pair.server.buffer, BUFFER_BYTES,
                                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  must(old != NULL, "ibv_reg_mr");
  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, BYTES);
  send.wr.wr.rdma.rkey = old->rkey;
  for (send.wr.wr_id = 1; send.wr.wr_id <= WRITES; ++send.wr.wr_id) {
    if (send.wr.wr_id == STALE_FROM) {
      for (int done = 1; done < STALE_FROM; ++done) take_success(&pair.client);
      must(ibv_dereg_mr(old) == 0, "ibv_dereg_mr");
    }
    post_send(&pair.client, &send);
  }
  for (int left = WRITES - STALE_FROM + 1; left > 0; --left) {
    const struct ibv_wc wc = take_completion(&pair.client);
    printf("WRITE %d: %s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status));
  }
  close_pair(&pair);
  return 0;
}
