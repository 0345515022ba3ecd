/* Closes memory when its peer has had it, and only then takes the completion: the checker, which
 * looks at what was sent once more, must not fall over it. */
#include <stdio.h>
#include <sys/mman.h>

#include "tests/misuse/pair/pair.h"

enum { ROUNDS = 300, PAGE_BYTES = 4096 };

int main(void) {
  struct pair pair;
  open_pair(&pair);
  char* const page =
      mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(page != MAP_FAILED, "mmap");
  struct ibv_mr* const mr = ibv_reg_mr(pair.client.pd, page, PAGE_BYTES, IBV_ACCESS_LOCAL_WRITE);
  must(mr != NULL, "ibv_reg_mr");
  for (int i = 0; i < ROUNDS; ++i) {
    struct send send;
    prepare(&send, IBV_WR_SEND, &pair.client, &pair.server, 64);
    send.sge.addr = (uintptr_t)page;
    send.sge.lkey = mr->lkey;
    post_receive(&pair.server, pair.server.buffer, 64);
    post_send(&pair.client, &send);
    take_success(&pair.server);
    must(mprotect(page, PAGE_BYTES, PROT_NONE) == 0, "mprotect");
    take_success(&pair.client);
    must(mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE) == 0, "mprotect");
  }
  must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
  close_pair(&pair);
  puts("PASS");
  return 0;
}
