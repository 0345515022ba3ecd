/* Each posted receive needs a place of its own. Wrong: the same one is posted for two, so the
 * second message is written over the first, before or while the program reads it. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send send;
  open_pair(&pair);

  char* const buffer = pair.client.buffer;
  post_receive(&pair.client, buffer, 64);
  post_receive(&pair.client, buffer + 64, 64);
  post_receive(&pair.client, buffer + (wrong ? 64 : 128), 64);  // <-- receive-buffer-touched

  prepare(&send, IBV_WR_SEND, &pair.server, &pair.client, 64);
  for (int message = 0; message < 3; ++message) {
    post_send(&pair.server, &send);
    take_success(&pair.client);
    take_success(&pair.server);
  }
  close_pair(&pair);
  return 0;
}
