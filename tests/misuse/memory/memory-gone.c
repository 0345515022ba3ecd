/* Memory has to stay as long as a request that names it is posted. Wrong: it is unmapped while a
 * receive waits for a message. A NIC has pinned the pages and writes into them, where nobody finds
 * the message. */
#include <sys/mman.h>

#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  open_pair(&pair);

  char* const memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(memory != MAP_FAILED, "mmap");
  struct ibv_mr* const mr = ibv_reg_mr(pair.server.pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
  must(mr != NULL, "ibv_reg_mr");
  struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
  struct ibv_recv_wr receive = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  must(ibv_post_recv(pair.server.qp, &receive, &bad) == 0, "ibv_post_recv");

  if (wrong) must(munmap(memory, 4096) == 0, "munmap");  // <-- memory-gone
  drain(&pair.server, 1);
  must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
  if (!wrong) must(munmap(memory, 4096) == 0, "munmap");

  close_pair(&pair);
  return 0;
}
