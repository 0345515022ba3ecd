/* A context and all made from it belong to the process that opened it (ibv_fork_init(3)). Wrong: a
 * child goes on with its parent's QP; both write to the same rings. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/misuse/pair/pair.h"

static void write_something(struct pair* pair) {
  struct send send;
  prepare(&send, IBV_WR_RDMA_WRITE, &pair->client, &pair->server, 64);
  post_send(&pair->client, &send);  // <-- fork
  take_success(&pair->client);
}

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  open_pair(&pair);

  const pid_t child = fork();
  must(child >= 0, "fork");
  if (child == 0) {
    if (wrong) write_something(&pair);
    _exit(0);
  }
  must(waitpid(child, NULL, 0) == child, "waitpid");
  if (!wrong) write_something(&pair);

  close_pair(&pair);
  return 0;
}
