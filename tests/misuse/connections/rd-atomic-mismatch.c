/* A requester may have as many READs and atomics under way as the responder keeps answers for
 * (max_rd_atomic at one end, max_dest_rd_atomic at the other). Wrong: the client's number is larger
 * than the server's. One READ at a time goes well. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_ends(&pair);
  struct ibv_qp_init_attr client_qp = usual_qp(&pair.client, IBV_QPT_RC);
  struct ibv_qp_init_attr server_qp = usual_qp(&pair.server, IBV_QPT_RC);
  make_qp(&pair.client, &client_qp);
  make_qp(&pair.server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&pair.client, &pair.server);
  struct ibv_qp_attr to_client = usual_connection(&pair.server, &pair.client);
  to_server.max_rd_atomic = 16;
  to_client.max_dest_rd_atomic = wrong ? 1 : 16;
  connect_end(&pair.client, &to_server);  // <-- rd-atomic-mismatch
  connect_end(&pair.server, &to_client);

  prepare(&send, IBV_WR_RDMA_READ, &pair.client, &pair.server, 64);
  post_send(&pair.client, &send);
  take_success(&pair.client);
  close_pair(&pair);
  return 0;
}
