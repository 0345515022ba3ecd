/* lkeys and rkeys are numbers of the machine's order, in the structures of verbs at least. Wrong:
 * a key that came out of a message in network order goes into a request as it is. */
#include <arpa/inet.h>

#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_pair(&pair);

  const uint32_t in_the_message = htonl(pair.client.mr->lkey);
  prepare(&send, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  send.sge.lkey = wrong ? in_the_message : ntohl(in_the_message);
  post_send(&pair.client, &send);  // <-- byte-order
  take_completion(&pair.client);

  close_pair(&pair);
  return 0;
}
