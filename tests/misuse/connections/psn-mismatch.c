/* What one end sends first (sq_psn) is what the other expects first (rq_psn). Wrong: they were not
 * exchanged, and the packets are taken for old ones, which are acknowledged and thrown away, or for
 * such that come after a loss. */
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
  to_server.sq_psn = 1000;
  to_client.rq_psn = wrong ? 5000 : 1000;
  connect_end(&pair.client, &to_server);  // <-- psn-mismatch
  connect_end(&pair.server, &to_client);

  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  post_send(&pair.client, &send);
  take_completion(&pair.client);
  close_pair(&pair);
  return 0;
}
