/* The slots of unsignaled requests are free again when the completion of a signaled one behind them
 * was polled. Wrong: no request is ever signaled, so the queue fills up, and stays full. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  struct ibv_send_wr* bad;
  open_pair(&pair);

  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  for (int request = 1; request <= 64 * QUEUE_DEPTH; ++request) {
    const bool is_signaled = !wrong && request % (QUEUE_DEPTH / 2) == 0;
    send.wr.send_flags = is_signaled ? IBV_SEND_SIGNALED : 0;
    if (ibv_post_send(pair.client.qp, &send.wr, &bad) != 0) break;  // <-- queue-full
    if (is_signaled) take_success(&pair.client);
  }

  if (wrong) drain(&pair.client, 0);
  close_pair(&pair);
  return 0;
}
