/* A correct program of two threads, to be compiled as a CI does, with one sanitizer or another:
 * SEND, WRITE and READ between the first and the last device, small messages and large ones. With
 * an argument it ends with a mistake that a sanitizer or valgrind has to find. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/misuse/pair/pair.h"

enum { SMALL_BYTES = 8, LARGE_BYTES = 4000, ROUNDS = 20, IN_FLIGHT = QUEUE_DEPTH / 2 };

/* One thread posts and the other one takes the completions. What is sent is the second one's
 * memory, what is received is the first one's: neither touches the other's. */
struct slot {
  char bytes[LARGE_BYTES];
};

struct side {
  struct end* end;
  struct slot* slots; /* from malloc, and never written before they are received into */
  struct ibv_mr* mr;
};

static struct side sender, receiver;
/* How many rounds may be posted: what they send is there, and the rounds before are completed.
 * Whoever waits for it sleeps: in a loop of sched_yield, beside another thread that sleeps often
 * for a short while, Linux 6.18 was seen to keep other sessions (sched(7), "The autogroup
 * feature"), a NIC of `rocemu up` among them, from the core for a minute. */
static int rounds_ready;
static pthread_mutex_t rounds_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more_rounds = PTHREAD_COND_INITIALIZER;

static uint32_t bytes_of(int slot) { return slot % 2 == 0 ? SMALL_BYTES : LARGE_BYTES; }

static void open_side(struct side* side, struct end* end) {
  side->end = end;
  side->slots = malloc(IN_FLIGHT * sizeof(struct slot));
  must(side->slots != NULL, "malloc");
  side->mr =
      ibv_reg_mr(end->pd, side->slots, IN_FLIGHT * sizeof(struct slot), IBV_ACCESS_LOCAL_WRITE);
  must(side->mr != NULL, "ibv_reg_mr");
}

static void close_side(struct side* side) {
  must(ibv_dereg_mr(side->mr) == 0, "ibv_dereg_mr");
  free(side->slots);
}

static struct ibv_sge sge_of(const struct side* side, int slot) {
  return (struct ibv_sge){(uintptr_t)&side->slots[slot], bytes_of(slot), side->mr->lkey};
}

static void receive_into(int slot) {
  struct ibv_sge sge = sge_of(&receiver, slot);
  struct ibv_recv_wr wr = {.wr_id = (uint64_t)slot, .sg_list = &sge, .num_sge = 1}, *bad;
  must(ibv_post_recv(receiver.end->qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void send_from(int slot) {
  struct ibv_sge sge = sge_of(&sender, slot);
  struct ibv_send_wr wr = {.wr_id = (uint64_t)slot,
                           .sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_SEND,
                           .send_flags = IBV_SEND_SIGNALED},
                     *bad;
  must(ibv_post_send(sender.end->qp, &wr, &bad) == 0, "ibv_post_send");
}

static void allow_rounds(int rounds) {
  pthread_mutex_lock(&rounds_lock);
  rounds_ready = rounds;
  pthread_cond_signal(&more_rounds);
  pthread_mutex_unlock(&rounds_lock);
}

static void await_round(int round) {
  pthread_mutex_lock(&rounds_lock);
  while (rounds_ready <= round) pthread_cond_wait(&more_rounds, &rounds_lock);
  pthread_mutex_unlock(&rounds_lock);
}

static void* complete(void* nothing) {
  for (int round = 0; round < ROUNDS; ++round) {
    for (int slot = 0; slot < IN_FLIGHT; ++slot)
      memset(&sender.slots[slot], round + slot, bytes_of(slot));
    allow_rounds(round + 1);
    for (int i = 0; i < IN_FLIGHT; ++i) {
      take_success(receiver.end);
      take_success(sender.end);
    }
  }
  allow_rounds(ROUNDS + 1);
  return nothing;
}

static void check_and_clear(int round) {
  for (int slot = 0; slot < IN_FLIGHT; ++slot) {
    for (uint32_t at = 0; at < bytes_of(slot); ++at)
      must(receiver.slots[slot].bytes[at] == (char)(round + slot), "what was received");
    memset(&receiver.slots[slot], -1, bytes_of(slot));
  }
}

static void exchange(void) {
  pthread_t thread;
  must(pthread_create(&thread, NULL, complete, NULL) == 0, "pthread_create");
  for (int round = 0; round < ROUNDS; ++round) {
    await_round(round);
    for (int slot = 0; slot < IN_FLIGHT; ++slot) {
      receive_into(slot);
      send_from(slot);
    }
    await_round(round + 1);
    check_and_clear(round);
  }
  must(pthread_join(thread, NULL) == 0, "pthread_join");
}

static void write_and_read(struct pair* pair) {
  struct send send;
  memset(pair->client.buffer, 7, BUFFER_BYTES);
  prepare(&send, IBV_WR_RDMA_WRITE, &pair->client, &pair->server, BUFFER_BYTES);
  post_send(&pair->client, &send);
  take_success(&pair->client);
  memset(pair->client.buffer, 0, BUFFER_BYTES);
  send.wr.opcode = IBV_WR_RDMA_READ;
  post_send(&pair->client, &send);
  take_success(&pair->client);
  must(pair->client.buffer[0] == 7 && pair->client.buffer[BUFFER_BYTES - 1] == 7, "what was read");
}

static void* count(void* counter) {
  for (int i = 0; i < 100000; ++i) ++*(volatile int*)counter;
  return NULL;
}

/* Through volatile pointers, so that no compiler sees what comes. */
static void make_mistake(const char* kind) {
  char* volatile memory = malloc(8);
  volatile int large = 0x7fffffff;
  if (strcmp(kind, "overflow") == 0) memory[8] = 1;
  for (int i = 0; strcmp(kind, "leak") == 0 && i < 100; ++i) memory = malloc(100);
  if (strcmp(kind, "undefined") == 0) large = large + 1;
  if (strcmp(kind, "uninitialised") == 0 && memory[3] == 1) puts("one");
  if (strcmp(kind, "race") == 0) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, count, (void*)&large) == 0, "pthread_create");
    count((void*)&large);
    must(pthread_join(thread, NULL) == 0, "pthread_join");
  }
  free(memory);
}

/* While memory behind it is registered: what the checker watches begins in front of that. */
static void free_twice(void) {
  char* volatile memory = malloc(8);
  free(memory);
  free(memory);
}

int main(int argc, char** argv) {
  struct pair pair;
  open_pair(&pair);
  open_side(&sender, &pair.client);
  open_side(&receiver, &pair.server);
  exchange();
  write_and_read(&pair);
  if (argc > 1 && strcmp(argv[1], "double-free") == 0) {
    puts("traffic: done");
    fflush(stdout);
    post_receive(&pair.server, pair.server.buffer, BUFFER_BYTES);
    free_twice();
  }
  close_side(&sender);
  close_side(&receiver);
  close_pair(&pair);
  puts("traffic: done");
  fflush(stdout);
  if (argc > 1) make_mistake(argv[1]);
  return 0;
}
