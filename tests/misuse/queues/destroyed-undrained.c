/* A QP that is destroyed takes its completions along, read or not (ibv_destroy_qp(3)), and whether
 * its last SEND left is anybody's guess. Wrong: it is destroyed right after the post. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_pair(&pair);
  post_receive(&pair.server, pair.server.buffer, 64);

  prepare(&send, IBV_WR_SEND, &pair.client, &pair.server, 64);
  post_send(&pair.client, &send);
  if (!wrong) take_success(&pair.client);
  if (!wrong) take_success(&pair.server);
  must(ibv_destroy_qp(pair.client.qp) == 0, "ibv_destroy_qp");  // <-- destroyed-undrained

  if (wrong) drain(&pair.server, 1);
  close_qp(&pair.server);
  close_end(&pair.client);
  close_end(&pair.server);
  return 0;
}
