/* A WRITE tells the peer nothing, and in which order its bytes become visible is up to the NIC, the
 * bus and the cache (IBTA o9-20). Wrong: the server waits until the last byte has changed, and
 * reads the first ones. It goes well for long: hence a thousand times. */
#include <string.h>

#include "tests/misuse/pair/pair.h"

enum { MESSAGE_BYTES = 4096, ROUNDS = 1000 };

static void bring_one(struct pair* pair, bool wrong) {
  struct send send;
  memset(pair->server.buffer, 0, MESSAGE_BYTES);
  if (!wrong) post_receive(&pair->server, pair->server.buffer + MESSAGE_BYTES, 0);
  prepare(&send, wrong ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM, &pair->client,
          &pair->server, MESSAGE_BYTES);
  post_send(&pair->client, &send);  // <-- polled-memory
  if (wrong) {
    const volatile char* last = pair->server.buffer + MESSAGE_BYTES - 1;
    while (*last != 'x') {
    }
  } else {
    take_success(&pair->server);
  }
  must(pair->server.buffer[0] == 'x', "the last byte came before the first");
  take_success(&pair->client);
}

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  open_pair(&pair);
  memset(pair.client.buffer, 'x', MESSAGE_BYTES);
  for (int round = 0; round < ROUNDS; ++round) bring_one(&pair, wrong);
  close_pair(&pair);
  return 0;
}
