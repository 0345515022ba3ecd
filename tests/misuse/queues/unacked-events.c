/* ibv_destroy_cq() waits until all events of the CQ were acknowledged (ibv_ack_cq_events(3)).
 * Wrong: one was not, and the program hangs. */
#include <signal.h>
#include <unistd.h>

#include "tests/misuse/pair/pair.h"

static void give_up(int signal) {
  (void)signal;
  _exit(0);
}

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  struct ibv_cq* cq;
  void* context;
  open_pair(&pair);

  must(ibv_req_notify_cq(pair.client.cq, 0) == 0, "ibv_req_notify_cq");
  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  post_send(&pair.client, &send);
  must(ibv_get_cq_event(pair.client.channel, &cq, &context) == 0, "ibv_get_cq_event");
  if (!wrong) ibv_ack_cq_events(cq, 1);
  take_success(&pair.client);

  close_qp(&pair.client);
  close_qp(&pair.server);
  if (wrong) signal(SIGALRM, give_up);
  if (wrong) alarm(3);
  must(ibv_destroy_cq(pair.client.cq) == 0, "ibv_destroy_cq");  // <-- unacked-events
  must(ibv_destroy_cq(pair.server.cq) == 0, "ibv_destroy_cq");
  must(ibv_destroy_comp_channel(pair.client.channel) == 0, "ibv_destroy_comp_channel");
  must(ibv_destroy_comp_channel(pair.server.channel) == 0, "ibv_destroy_comp_channel");
  must(ibv_dereg_mr(pair.client.mr) == 0, "ibv_dereg_mr");
  must(ibv_dereg_mr(pair.server.mr) == 0, "ibv_dereg_mr");
  must(ibv_dealloc_pd(pair.client.pd) == 0, "ibv_dealloc_pd");
  must(ibv_dealloc_pd(pair.server.pd) == 0, "ibv_dealloc_pd");
  must(ibv_close_device(pair.client.context) == 0, "ibv_close_device");
  must(ibv_close_device(pair.server.context) == 0, "ibv_close_device");
  return 0;
}
