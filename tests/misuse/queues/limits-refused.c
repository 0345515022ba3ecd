/* How much a device takes inline no query tells, and it differs by an order of magnitude. Wrong:
 * the program asks for what its first device had, and gives up over a bare EINVAL; right: for less.
 */
#include "tests/misuse/pair/pair.h"

enum { WISH_BYTES = 4096 };

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  open_ends(&pair);
  for (uint32_t bytes = WISH_BYTES; pair.client.qp == NULL && bytes > 0; bytes /= 2) {
    struct ibv_qp_init_attr how = usual_qp(&pair.client, IBV_QPT_RC);
    how.cap.max_inline_data = bytes;
    pair.client.qp = ibv_create_qp(pair.client.pd, &how);  // <-- limits
    if (wrong) break;
  }
  must(wrong == (pair.client.qp == NULL), "ibv_create_qp");

  if (pair.client.qp != NULL) ibv_destroy_qp(pair.client.qp);
  close_end(&pair.client);
  close_end(&pair.server);
  return 0;
}
