/* Both ends of a connection have to use the same path MTU: packets are as long as the sender's
 * says. Wrong: one end takes its port's, the other what it negotiated. Short messages go through.
 * */
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
  if (wrong) to_server.path_mtu = IBV_MTU_2048;
  connect_end(&pair.client, &to_server);  // <-- mtu-mismatch
  connect_end(&pair.server, &to_client);

  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  post_send(&pair.client, &send);
  take_success(&pair.client);
  close_pair(&pair);
  return 0;
}
