/* The ACK timeout has to outlast what the peer and the network may take. Wrong: one end gives up
 * after some hundred microseconds, the other after a second, so one has failed long before the
 * other knows. */
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
  if (wrong) to_server.timeout = 1;
  if (wrong) to_server.retry_cnt = 1;
  connect_end(&pair.client, &to_server);  // <-- timeout-mismatch
  connect_end(&pair.server, &to_client);

  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  post_send(&pair.client, &send);
  take_completion(&pair.client);
  close_pair(&pair);
  return 0;
}
