/* ibv_post_send() stops at the first request it can't take, and says by bad_wr which; that one and
 * the rest of the list were not posted (ibv_post_send(3)). Wrong: the QP is not in RTS yet, and
 * nobody looks at what the call says. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send first, second;
  struct ibv_send_wr* bad;
  open_ends(&pair);
  struct ibv_qp_init_attr client_qp = usual_qp(&pair.client, IBV_QPT_RC);
  struct ibv_qp_init_attr server_qp = usual_qp(&pair.server, IBV_QPT_RC);
  make_qp(&pair.client, &client_qp);
  make_qp(&pair.server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&pair.client, &pair.server);
  struct ibv_qp_attr to_client = usual_connection(&pair.server, &pair.client);
  connect_end(&pair.server, &to_client);
  to_init(&pair.client);
  to_rtr(&pair.client, &to_server);

  prepare(&first, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  prepare(&second, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  first.wr.next = &second.wr;
  if (wrong) ibv_post_send(pair.client.qp, &first.wr, &bad);  // <-- post-in-error
  to_rts(&pair.client, &to_server);
  must(ibv_post_send(pair.client.qp, &first.wr, &bad) == 0, "ibv_post_send");

  take_success(&pair.client);
  take_success(&pair.client);
  close_pair(&pair);
  return 0;
}
