/* From RTR on a peer's message may come. Wrong: the server posts its first receive after that, and
 * the message has to be sent again, rnr_retry times at most and each time after a pause. */
#include <time.h>

#include "tests/misuse/pair/pair.h"

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  struct ibv_wc wc;
  open_ends(&pair);
  struct ibv_qp_init_attr client_qp = usual_qp(&pair.client, IBV_QPT_RC);
  struct ibv_qp_init_attr server_qp = usual_qp(&pair.server, IBV_QPT_RC);
  make_qp(&pair.client, &client_qp);
  make_qp(&pair.server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&pair.client, &pair.server);
  struct ibv_qp_attr to_client = usual_connection(&pair.server, &pair.client);
  to_init(&pair.server);
  if (!wrong) post_receive(&pair.server, pair.server.buffer, 64);
  to_rtr(&pair.server, &to_client);
  to_rts(&pair.server, &to_client);
  connect_end(&pair.client, &to_server);

  prepare(&send, IBV_WR_SEND, &pair.client, &pair.server, 64);
  post_send(&pair.client, &send);
  if (wrong) {
    /* The server is busy with something else for a moment. */
    const double begin_ms = now_ms();
    while (now_ms() < begin_ms + 20)
      must(ibv_poll_cq(pair.client.cq, 1, &wc) == 0, "the message went nowhere");
    post_receive(&pair.server, pair.server.buffer, 64);  // <-- receive-too-late
  }

  take_success(&pair.client);
  take_success(&pair.server);
  close_pair(&pair);
  return 0;
}
