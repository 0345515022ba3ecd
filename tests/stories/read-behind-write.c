/* A value is written by one connection and read back by another one at once. On a good network the
 * READ comes behind the WRITE and finds it done; but nothing orders requests of two QPs. */
#include <stdio.h>
#include <string.h>

#include "tests/misuse/pair/pair.h"

enum { ROUNDS = 12, BYTES = 64 };

static void open_second(struct pair* second, const struct pair* first) {
  *second = *first;
  struct ibv_qp_init_attr client_qp = usual_qp(&second->client, IBV_QPT_RC);
  struct ibv_qp_init_attr server_qp = usual_qp(&second->server, IBV_QPT_RC);
  make_qp(&second->client, &client_qp);
  make_qp(&second->server, &server_qp);
  struct ibv_qp_attr to_server = usual_connection(&second->client, &second->server);
  struct ibv_qp_attr to_client = usual_connection(&second->server, &second->client);
  connect_end(&second->client, &to_server);
  connect_end(&second->server, &to_client);
}

int main(void) {
  struct pair writer, reader;
  struct send write, read;
  open_pair(&writer);
  open_second(&reader, &writer);
  /* What is read stands apart from what is written. */
  prepare(&write, IBV_WR_RDMA_WRITE, &writer.client, &writer.server, BYTES);
  prepare(&read, IBV_WR_RDMA_READ, &reader.client, &reader.server, BYTES);
  char* const written = writer.client.buffer;
  char* const seen = writer.client.buffer + 4096;
  read.sge.addr = (uintptr_t)seen;

  for (int round = 1; round <= ROUNDS; ++round) {
    write.wr.wr_id = read.wr.wr_id = (uint64_t)round;
    snprintf(written, BYTES, "record %d", round);
    post_send(&writer.client, &write);
    post_send(&reader.client, &read);
    take_success(&writer.client); /* one CQ has the completions of both */
    take_success(&writer.client);
    if (strcmp(seen, written) != 0) printf("wrote '%s', read '%s'\n", written, seen);
  }

  close_qp(&reader.client);
  close_qp(&reader.server);
  close_pair(&writer);
  return 0;
}
