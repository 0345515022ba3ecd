/* Who sends keys and addresses to a peer has to agree with it on the order of their bytes. Wrong:
 * one side swaps them, the other does not. */
#include <arpa/inet.h>

#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_pair(&pair);

  const uint32_t on_the_wire = htonl(pair.server.mr->rkey);
  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  send.wr.wr.rdma.rkey = wrong ? on_the_wire : ntohl(on_the_wire);
  post_send(&pair.client, &send);  // <-- byte-order
  take_completion(&pair.client);

  close_pair(&pair);
  return 0;
}
