/* A CQ that is full when a completion comes is lost, and its QPs with it. Wrong: the CQ has room
 * for the receives alone, and a SEND is posted beside them: all is well until all of them are over
 * at once, as when the connection breaks. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_ends(&pair);
  const int cqe = wrong ? QUEUE_DEPTH : 2 * QUEUE_DEPTH;
  struct ibv_cq* const cq = ibv_create_cq(pair.client.context, cqe, NULL, NULL, 0);
  must(cq != NULL, "ibv_create_cq");
  struct ibv_qp_init_attr client_qp = usual_qp(&pair.client, IBV_QPT_RC);
  struct ibv_qp_init_attr server_qp = usual_qp(&pair.server, IBV_QPT_RC);
  client_qp.send_cq = client_qp.recv_cq = cq;
  make_qp(&pair.client, &client_qp);
  make_qp(&pair.server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&pair.client, &pair.server);
  struct ibv_qp_attr to_client = usual_connection(&pair.server, &pair.client);
  connect_end(&pair.client, &to_server);
  connect_end(&pair.server, &to_client);

  for (int receive = 0; receive < QUEUE_DEPTH; ++receive)
    post_receive(&pair.client, pair.client.buffer + 64 * receive, 64);
  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  post_send(&pair.client, &send);  // <-- cq-too-small
  struct ibv_wc wc;
  while (ibv_poll_cq(cq, 1, &wc) == 0) {
  }
  must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));

  close_qp(&pair.client);
  close_qp(&pair.server);
  must(ibv_destroy_cq(cq) == 0, "ibv_destroy_cq");
  close_end(&pair.client);
  close_end(&pair.server);
  return 0;
}
