/* A GID belongs to a network: a link-local one reaches no further than the next router, and a
 * table's entry 0 often is one. Wrong: the client takes index 0 because it was there, while the
 * server has chosen. */
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
  if (wrong) to_server.ah_attr.grh.sgid_index = 0;
  if (wrong) to_server.timeout = 8; /* it need not take long to fail */
  if (wrong) to_server.retry_cnt = 1;
  connect_end(&pair.client, &to_server);  // <-- gid-index
  connect_end(&pair.server, &to_client);

  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  post_send(&pair.client, &send);
  take_completion(&pair.client);
  close_pair(&pair);
  return 0;
}
