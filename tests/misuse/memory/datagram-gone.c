/* A datagram's memory has to stay until the request has completed, or an answer tells that it has
 * left. Wrong: it is unmapped behind the post. Right: the peer has answered, and no completion was
 * ever asked for. */
#include <sys/mman.h>

#include "tests/misuse/pair/pair.h"

enum { MESSAGE_BYTES = 32 };

static void send_to(struct end* from, struct end* to, struct send* send, struct ibv_ah* ah) {
  send->wr.send_flags = 0;
  send->wr.wr.ud.ah = ah;
  send->wr.wr.ud.remote_qpn = to->qp->qp_num;
  send->wr.wr.ud.remote_qkey = QKEY;
  post_send(from, send);
}

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send question, answer;
  open_ends(&pair);
  struct ibv_qp_init_attr client_qp = usual_qp(&pair.client, IBV_QPT_UD);
  struct ibv_qp_init_attr server_qp = usual_qp(&pair.server, IBV_QPT_UD);
  make_qp(&pair.client, &client_qp);
  make_qp(&pair.server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&pair.client, &pair.server);
  struct ibv_qp_attr to_client = usual_connection(&pair.server, &pair.client);
  connect_end(&pair.client, &to_server);
  connect_end(&pair.server, &to_client);
  struct ibv_ah* const server = make_ah(&pair.client, &pair.server);
  struct ibv_ah* const client = make_ah(&pair.server, &pair.client);
  post_receive(&pair.client, pair.client.buffer, GRH_BYTES + MESSAGE_BYTES);
  post_receive(&pair.server, pair.server.buffer, GRH_BYTES + MESSAGE_BYTES);

  char* const memory = whole_pages(4096);
  struct ibv_mr* const mr = ibv_reg_mr(pair.client.pd, memory, 4096, 0);
  must(mr != NULL, "ibv_reg_mr");
  prepare(&question, IBV_WR_SEND, &pair.client, &pair.server, MESSAGE_BYTES);
  question.sge = (struct ibv_sge){(uintptr_t)memory, MESSAGE_BYTES, mr->lkey};
  send_to(&pair.client, &pair.server, &question, server);
  if (wrong) {
    must(munmap(memory, 4096) == 0, "munmap");  // <-- memory-gone
    drain(&pair.client, 1);
    drain(&pair.server, 1);
  } else {
    take_success(&pair.server);
    prepare(&answer, IBV_WR_SEND, &pair.server, &pair.client, MESSAGE_BYTES);
    send_to(&pair.server, &pair.client, &answer, client);
    take_success(&pair.client);
    must(munmap(memory, 4096) == 0, "munmap");
  }
  must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");

  must(ibv_destroy_ah(server) == 0, "ibv_destroy_ah");
  must(ibv_destroy_ah(client) == 0, "ibv_destroy_ah");
  close_pair(&pair);
  return 0;
}
