/* A receive's buffer is the NIC's from the post until its completion was polled. Wrong: it is
 * cleared after the post, when a message may be there already, or half of one. */
#include <string.h>

#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_pair(&pair);

  char* const buffer = pair.client.buffer;
  memset(buffer, 'x', 1024); /* what stood there before */
  if (!wrong) memset(buffer, 0, 1024);
  post_receive(&pair.client, buffer, 1024);  // <-- receive-buffer-touched
  if (wrong) memset(buffer, 0, 1024);

  prepare(&send, IBV_WR_SEND, &pair.server, &pair.client, 16);
  post_send(&pair.server, &send);
  take_success(&pair.server);
  take_success(&pair.client);
  close_pair(&pair);
  return 0;
}
