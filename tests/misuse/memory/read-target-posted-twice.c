/* What a READ brings is written whenever an answer comes, until its completion. Wrong: two READs
 * that overlap in the memory they bring their bytes to are under way at once. */
#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  struct send first, second;
  open_pair(&pair);

  prepare(&first, IBV_WR_RDMA_READ, &pair.client, &pair.server, 4096);
  prepare(&second, IBV_WR_RDMA_READ, &pair.client, &pair.server, 4096);
  first.wr.wr_id = 1;
  second.wr.wr_id = 2;
  second.sge.addr += wrong ? 2048 : 4096;
  post_send(&pair.client, &first);
  post_send(&pair.client, &second);  // <-- receive-buffer-touched

  take_success(&pair.client);
  take_success(&pair.client);
  close_pair(&pair);
  return 0;
}
