/* An atomic's remote address has to be a multiple of 8 (IBTA C9-176). Wrong: the counter stands
 * behind a header of 4 bytes. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_pair(&pair);

  prepare(&send, IBV_WR_ATOMIC_FETCH_AND_ADD, &pair.client, &pair.server, 8);
  send.wr.wr.atomic.remote_addr += wrong ? 4 : 8;
  post_send(&pair.client, &send);  // <-- unaligned-atomic
  take_completion(&pair.client);

  close_pair(&pair);
  return 0;
}
