/* Gives memory back, or seems to, while a receive that names it is posted. Without an argument
 * nothing of what it does takes the memory away, and the checker has nothing to say; with one, it
 * goes in that way, which is found. */
#define _GNU_SOURCE /* mremap */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/misuse/pair/pair.h"

enum { PAGE_BYTES = 4096, MESSAGE_BYTES = 64 };

static const size_t ENDLESS_BYTES = (size_t)1 << 46;

static char* map_pages(int count, int sharing) {
  char* const pages = mmap(NULL, (size_t)count * PAGE_BYTES, PROT_READ | PROT_WRITE,
                           sharing | MAP_ANONYMOUS, -1, 0);
  must(pages != MAP_FAILED, "mmap");
  return pages;
}

static struct ibv_mr* receive_into(struct pair* pair, char* at) {
  struct ibv_mr* const mr = ibv_reg_mr(pair->server.pd, at, MESSAGE_BYTES, IBV_ACCESS_LOCAL_WRITE);
  must(mr != NULL, "ibv_reg_mr");
  struct ibv_sge sge = {(uintptr_t)at, MESSAGE_BYTES, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  must(ibv_post_recv(pair->server.qp, &wr, &bad) == 0, "ibv_post_recv");
  return mr;
}

static void take_message(struct pair* pair, const char* at) {
  struct send send;
  memset(pair->client.buffer, 7, MESSAGE_BYTES);
  prepare(&send, IBV_WR_SEND, &pair->client, &pair->server, MESSAGE_BYTES);
  post_send(&pair->client, &send);
  take_success(&pair->server);
  take_success(&pair->client);
  must(at[0] == 7 && at[MESSAGE_BYTES - 1] == 7, "what was received");
}

static void keep(struct pair* pair) {
  char* const pages = map_pages(2, MAP_PRIVATE);
  char* const shared = map_pages(1, MAP_SHARED);
  struct ibv_mr* const mr = receive_into(pair, pages);
  must(mremap(pages, 2 * PAGE_BYTES, ENDLESS_BYTES, 0) == MAP_FAILED, "so large a mremap fails");
  must(mremap(pages, 2 * PAGE_BYTES, PAGE_BYTES, 0) == pages, "mremap");
  must(mmap(pages, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED, -1, 0) == MAP_FAILED,
       "mmap of no file fails");
  must(mprotect(pages, ENDLESS_BYTES, PROT_NONE) != 0, "so large a mprotect fails");
  must(mprotect(pages, PAGE_BYTES, PROT_READ | PROT_WRITE) == 0, "mprotect");
  take_message(pair, pages);
  must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");

  struct ibv_mr* const of_shared = receive_into(pair, shared);
  must(madvise(shared, PAGE_BYTES, MADV_FREE) != 0, "MADV_FREE of shared memory fails");
  must(madvise(shared, PAGE_BYTES, MADV_DONTNEED) == 0, "madvise");
  take_message(pair, shared);
  must(ibv_dereg_mr(of_shared) == 0, "ibv_dereg_mr");
  close_pair(pair);
}

static void give_away(const char* way, char* page) {
  if (strcmp(way, "moved") == 0)
    must(mremap(page, PAGE_BYTES, PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
                map_pages(1, MAP_PRIVATE)) != MAP_FAILED,
         "mremap");
  if (strcmp(way, "moved-over") == 0)
    must(mremap(map_pages(1, MAP_PRIVATE), PAGE_BYTES, PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
                page) == page,
         "mremap");
  if (strcmp(way, "mapped-over") == 0)
    must(mmap(page, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page,
         "mmap");
  if (strcmp(way, "not-needed") == 0)
    must(madvise(page, PAGE_BYTES, MADV_DONTNEED) == 0, "madvise");
}

int main(int argc, char** argv) {
  struct pair pair;
  open_pair(&pair);
  if (argc == 1) {
    keep(&pair);
  } else {
    char* const page = map_pages(1, MAP_PRIVATE);
    page[0] = 1;
    struct ibv_mr* const mr = receive_into(&pair, page);
    give_away(argv[1], page);
    drain(&pair.server, 1);
    must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
    close_pair(&pair);
  }
  puts("PASS");
  return 0;
}
