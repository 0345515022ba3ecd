/* Arming a CQ asks for an event at the next completion that comes; what is in the CQ already brings
 * none (ibv_req_notify_cq(3)). Wrong: the program arms and waits without the poll in between. It
 * would sleep for ever here if no second message came. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  struct ibv_wc wc;
  open_pair(&pair);
  post_receive(&pair.server, pair.server.buffer, 64);
  post_receive(&pair.server, pair.server.buffer + 64, 64);
  prepare(&send, IBV_WR_SEND, &pair.client, &pair.server, 64);

  must(ibv_poll_cq(pair.server.cq, 1, &wc) == 0, "a completion before there was a message");
  post_send(&pair.client, &send);
  take_success(&pair.client); /* the message is there */
  must(ibv_req_notify_cq(pair.server.cq, 0) == 0, "ibv_req_notify_cq");
  if (!wrong) take_success(&pair.server);
  post_send(&pair.client, &send);
  wait_for_event(&pair.server);  // <-- lost-wakeup

  take_success(&pair.client);
  take_success(&pair.server);
  if (wrong) take_success(&pair.server);
  close_pair(&pair);
  return 0;
}
