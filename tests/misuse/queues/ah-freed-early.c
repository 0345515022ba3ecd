/* A posted UD request needs its address handle until it has completed (ibv_create_ah(3)). Wrong:
 * the handle is destroyed after the post. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_ends(&pair);
  struct ibv_qp_init_attr client_qp = usual_qp(&pair.client, IBV_QPT_UD);
  struct ibv_qp_init_attr server_qp = usual_qp(&pair.server, IBV_QPT_UD);
  make_qp(&pair.client, &client_qp);
  make_qp(&pair.server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&pair.client, &pair.server);
  struct ibv_qp_attr to_client = usual_connection(&pair.server, &pair.client);
  connect_end(&pair.client, &to_server);
  connect_end(&pair.server, &to_client);
  struct ibv_ah* const ah = make_ah(&pair.client, &pair.server);
  post_receive(&pair.server, pair.server.buffer, 64 + GRH_BYTES);

  prepare(&send, IBV_WR_SEND, &pair.client, &pair.server, 64);
  send.wr.wr.ud.ah = ah;
  send.wr.wr.ud.remote_qpn = pair.server.qp->qp_num;
  send.wr.wr.ud.remote_qkey = QKEY;
  post_send(&pair.client, &send);
  if (wrong) must(ibv_destroy_ah(ah) == 0, "ibv_destroy_ah");  // <-- ah-freed-early
  take_completion(&pair.client);
  if (!wrong) must(ibv_destroy_ah(ah) == 0, "ibv_destroy_ah");

  if (wrong) drain(&pair.server, 1);
  if (!wrong) take_success(&pair.server);
  close_pair(&pair);
  return 0;
}
