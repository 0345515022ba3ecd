/* An rkey is the peer's to give. Wrong: the client tries the keys next to one it knows. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  enum { GUESSES = 4 };
  for (int guess = 0; guess < GUESSES; ++guess) {
    struct pair pair;
    struct send send;
    open_pair(&pair);
    prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
    if (wrong) send.wr.wr.rdma.rkey += 0x100 * (uint32_t)(guess + 1);
    post_send(&pair.client, &send);  // <-- key-guessing
    take_completion(&pair.client);
    close_pair(&pair);
  }
  return 0;
}
