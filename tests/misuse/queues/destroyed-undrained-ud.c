/* A datagram needs no answer, but its completion and its memory are as much the NIC's as any other
 * request's until it was polled. Wrong: the QP is destroyed with its last datagram outstanding, as
 * UCX does with the one by which it connects. Right: the completion was polled. */
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
  if (!wrong) take_success(&pair.client);
  must(ibv_destroy_qp(pair.client.qp) == 0, "ibv_destroy_qp");  // <-- destroyed-undrained
  must(ibv_destroy_ah(ah) == 0, "ibv_destroy_ah");

  if (wrong) drain(&pair.server, 1);
  if (!wrong) take_success(&pair.server);
  close_qp(&pair.server);
  close_end(&pair.client);
  close_end(&pair.server);
  return 0;
}
