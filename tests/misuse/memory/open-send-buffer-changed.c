/* The same in memory that peers may write to: there a change may be theirs, and the finding waits
 * until the NIC has said that none ever wrote there. */
#include <string.h>

#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send, theirs;
  open_pair(&pair);
  post_receive(&pair.client, pair.client.buffer, 64);

  prepare(&send, IBV_WR_SEND, &pair.server, &pair.client, 64);
  post_send(&pair.server, &send);  // <-- send-buffer-changed
  if (wrong) strcpy(pair.server.buffer, "the next message");
  take_success(&pair.server);
  take_success(&pair.client);

  /* What a peer changes, in another place, is no mistake. */
  post_receive(&pair.client, pair.client.buffer, 64);
  send.sge.addr += 4096;
  prepare(&theirs, IBV_WR_RDMA_WRITE, &pair.client, &pair.server, 64);
  theirs.sge.addr += 4096;
  theirs.wr.wr.rdma.remote_addr += 4096;
  post_send(&pair.client, &theirs);
  post_send(&pair.server, &send);
  take_success(&pair.client);
  take_success(&pair.client);
  take_success(&pair.server);
  close_pair(&pair);
  return 0;
}
