/* After fork() parent and child share their pages until one of them writes. Which of them the NIC
 * then still reaches depends on the kernel and on ibv_fork_init(), with which the child has no such
 * pages at all. Wrong: the child uses registered memory. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/misuse/pair/pair.h"

int main(int argc, char** argv) {
  const bool wrong = is_wrong(argc, argv);
  struct pair pair;
  open_pair(&pair);
  char* const memory = whole_pages(4096);

  const pid_t child = fork();
  must(child >= 0, "fork");
  if (child == 0) {
    strcpy(wrong ? pair.client.buffer : memory, "the child's own");  // <-- fork
    _exit(0);
  }
  must(waitpid(child, NULL, 0) == child, "waitpid");

  close_pair(&pair);
  return 0;
}
