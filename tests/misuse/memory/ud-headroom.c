/* The first 40 bytes of a UD receive are the GRH's (IBTA 11.4.1.2): the payload begins behind them.
 * Wrong: the buffer is as long as the message, and the datagram is lost. */
#include <string.h>

#include "tests/misuse/pair/pair.h"

enum { MESSAGE_BYTES = 32 };

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

  char* const buffer = pair.server.buffer;
  const uint32_t bytes = MESSAGE_BYTES + (wrong ? 0 : GRH_BYTES);
  post_receive(&pair.server, buffer, bytes);  // <-- ud-headroom
  strcpy(pair.client.buffer, "hello");
  prepare(&send, IBV_WR_SEND, &pair.client, &pair.server, MESSAGE_BYTES);
  send.wr.wr.ud.ah = ah;
  send.wr.wr.ud.remote_qpn = pair.server.qp->qp_num;
  send.wr.wr.ud.remote_qkey = QKEY;
  post_send(&pair.client, &send);
  take_success(&pair.client);
  if (wrong) drain(&pair.server, 1);
  if (!wrong) take_success(&pair.server);
  if (!wrong) must(strcmp(buffer + GRH_BYTES, "hello") == 0, "not the message");

  must(ibv_destroy_ah(ah) == 0, "ibv_destroy_ah");
  close_pair(&pair);
  return 0;
}
