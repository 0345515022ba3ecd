/* A consumer that is slower than its producer: it looks after each message for 2 ms before it polls
 * the next one and posts its receive anew. The producer sends as fast as it may. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "tests/misuse/pair/pair.h"

enum { MESSAGES = 20, RECEIVES = 4, UNDER_WAY = 6, BYTES = 1024, WORK_NS = 2000000 };

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void* consume(void* argument) {
  struct end* const server = argument;
  for (int taken = 0; taken < MESSAGES; ++taken) {
    const struct ibv_wc wc = take_completion(server);
    must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    const struct timespec work = {.tv_nsec = WORK_NS};
    nanosleep(&work, NULL);
    if (taken + RECEIVES < MESSAGES) post_receive(server, (char*)(uintptr_t)wc.wr_id, BYTES);
  }
  return NULL;
}

int main(void) {
  struct pair pair;
  struct send send;
  pthread_t consumer;
  open_pair(&pair);
  for (int i = 0; i < RECEIVES; ++i)
    post_receive(&pair.server, pair.server.buffer + (size_t)i * BYTES, BYTES);
  must(pthread_create(&consumer, NULL, consume, &pair.server) == 0, "pthread_create");

  const double begin_ms = now_ms();
  prepare(&send, IBV_WR_SEND, &pair.client, &pair.server, BYTES);
  for (int sent = 0; sent < MESSAGES; ++sent) {
    if (sent >= UNDER_WAY) take_success(&pair.client);
    send.wr.wr_id = (uint64_t)sent + 1;
    post_send(&pair.client, &send);
  }
  for (int left = UNDER_WAY; left > 0; --left) take_success(&pair.client);
  printf("%d messages in %.1f ms\n", MESSAGES, now_ms() - begin_ms);

  must(pthread_join(consumer, NULL) == 0, "pthread_join");
  close_pair(&pair);
  return 0;
}
