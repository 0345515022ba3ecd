/* Completions may outlive their QP: with some NICs what stood in the CQ when the QP was destroyed
 * is found there by whoever polls next, with the wr_ids of then. Wrong: the QP is moved to ERROR
 * and destroyed, and what its request belonged to is freed, with the flushed request not polled
 * yet. Right: it was polled before. */
#include <stdlib.h>

#include "tests/misuse/pair/pair.h"

struct message {
  char text[200];
};

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  open_pair(&pair);
  struct message* const message = malloc(sizeof(*message));
  must(message != NULL, "malloc");
  struct ibv_sge sge = {(uintptr_t)pair.server.buffer, 64, pair.server.mr->lkey};
  struct ibv_recv_wr receive = {.wr_id = (uintptr_t)message, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  must(ibv_post_recv(pair.server.qp, &receive, &bad) == 0, "ibv_post_recv");

  must(ibv_req_notify_cq(pair.server.cq, 0) == 0, "ibv_req_notify_cq");
  struct ibv_qp_attr to_error = {.qp_state = IBV_QPS_ERR};
  must(ibv_modify_qp(pair.server.qp, &to_error, IBV_QP_STATE) == 0, "ibv_modify_qp");
  wait_for_event(&pair.server); /* the flushed receive stands in the CQ */
  struct ibv_wc completion;
  if (!wrong) must(ibv_poll_cq(pair.server.cq, 1, &completion) == 1, "the flushed receive");
  must(ibv_destroy_qp(pair.server.qp) == 0, "ibv_destroy_qp");
  free(message);

  must(ibv_poll_cq(pair.server.cq, 1, &completion) >= 0, "ibv_poll_cq");  // <-- destroyed-undrained
  close_qp(&pair.client);
  close_end(&pair.client);
  close_end(&pair.server);
  return 0;
}
