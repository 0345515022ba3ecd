/* A SEND's buffer is the NIC's from the post until its completion was polled: it may fetch the
 * bytes late, and again when a packet is lost. Wrong: the next message is written into it at once.
 * */
#include <string.h>

#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_pair(&pair);
  post_receive(&pair.server, pair.server.buffer, 64);

  strcpy(pair.client.buffer, "the first message");
  prepare(&send, IBV_WR_SEND, &pair.client, &pair.server, 64);
  post_send(&pair.client, &send);  // <-- send-buffer-changed
  if (wrong) strcpy(pair.client.buffer, "the next message");
  take_success(&pair.client);
  if (!wrong) strcpy(pair.client.buffer, "the next message");

  take_success(&pair.server);
  close_pair(&pair);
  return 0;
}
