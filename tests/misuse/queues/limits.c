/* What a QP takes inline is what ibv_create_qp() wrote back to its attributes, which differs from
 * NIC to NIC. Wrong: the program sends 512 bytes inline, as it could where it was written. */
#include "tests/misuse/pair/pair.h"

enum { MESSAGE_BYTES = 512 };

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  struct ibv_send_wr* bad;
  open_ends(&pair);
  struct ibv_qp_init_attr client_qp = usual_qp(&pair.client, IBV_QPT_RC);
  struct ibv_qp_init_attr server_qp = usual_qp(&pair.server, IBV_QPT_RC);
  client_qp.cap.max_inline_data = 64;
  make_qp(&pair.client, &client_qp);
  make_qp(&pair.server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&pair.client, &pair.server);
  struct ibv_qp_attr to_client = usual_connection(&pair.server, &pair.client);
  connect_end(&pair.client, &to_server);
  connect_end(&pair.server, &to_client);

  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, MESSAGE_BYTES);
  const bool is_inline = wrong || MESSAGE_BYTES <= client_qp.cap.max_inline_data;
  if (is_inline) send.wr.send_flags |= IBV_SEND_INLINE;
  const int error = ibv_post_send(pair.client.qp, &send.wr, &bad);  // <-- limits
  must(wrong == (error != 0), "ibv_post_send");
  if (error == 0) take_success(&pair.client);

  close_pair(&pair);
  return 0;
}
