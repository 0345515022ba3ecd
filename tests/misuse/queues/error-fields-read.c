/* Of a completion that failed only wr_id, status, qp_num and vendor_err are valid (ibv_poll_cq(3)).
 * Wrong: the program asks for the opcode to see what it was that failed. */
#include <stdio.h>

#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_ends(&pair);
  struct ibv_cq_init_attr_ex cq_attr = {.cqe = CQ_DEPTH, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
  struct ibv_cq_ex* const cq = ibv_create_cq_ex(pair.client.context, &cq_attr);
  must(cq != NULL, "ibv_create_cq_ex");
  struct ibv_qp_init_attr client_qp = usual_qp(&pair.client, IBV_QPT_RC);
  struct ibv_qp_init_attr server_qp = usual_qp(&pair.server, IBV_QPT_RC);
  client_qp.send_cq = client_qp.recv_cq = ibv_cq_ex_to_cq(cq);
  make_qp(&pair.client, &client_qp);
  make_qp(&pair.server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&pair.client, &pair.server);
  struct ibv_qp_attr to_client = usual_connection(&pair.server, &pair.client);
  connect_end(&pair.client, &to_server);
  connect_end(&pair.server, &to_client);

  /* Fails: it is longer than what the region holds. */
  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  send.wr.wr.rdma.remote_addr += BUFFER_BYTES - 32;
  post_send(&pair.client, &send);

  struct ibv_poll_cq_attr poll = {0};
  while (ibv_start_poll(cq, &poll) != 0) {
  }
  must(cq->status == IBV_WC_REM_ACCESS_ERR, "the WRITE went through");
  if (wrong) printf("failed: opcode %d\n", ibv_wc_read_opcode(cq));  // <-- error-fields-read
  if (!wrong) printf("failed: %s\n", ibv_wc_status_str(cq->status));
  ibv_end_poll(cq);

  close_qp(&pair.client);
  close_qp(&pair.server);
  must(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0, "ibv_destroy_cq");
  close_end(&pair.client);
  close_end(&pair.server);
  return 0;
}
