/* Requests of one QP are executed in order; those of two are not. Wrong: two connections WRITE to
 * the same bytes without waiting for each other, and what stands there in the end is luck. */
#include <string.h>

#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair, other;
  struct send send;
  open_pair(&pair);
  /* A second connection between the same ends. */
  other = pair;
  struct ibv_qp_init_attr client_qp = usual_qp(&other.client, IBV_QPT_RC);
  struct ibv_qp_init_attr server_qp = usual_qp(&other.server, IBV_QPT_RC);
  make_qp(&other.client, &client_qp);
  make_qp(&other.server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&other.client, &other.server);
  struct ibv_qp_attr to_client = usual_connection(&other.server, &other.client);
  connect_end(&other.client, &to_server);
  connect_end(&other.server, &to_client);

  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 4096);
  post_send(&pair.client, &send);
  if (!wrong) take_success(&pair.client);
  send.sge.addr += 4096;
  post_send(&other.client, &send);  // <-- remote-race
  if (wrong) take_success(&pair.client);
  take_success(&other.client);

  close_qp(&other.client);
  close_qp(&other.server);
  close_pair(&pair);
  return 0;
}
