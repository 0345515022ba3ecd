/* Two ends of a connection in one program: what the programs beside this folder have in common.
 *
 * Each end has a device, a domain, one CQ with its channel, one QP and one buffer. Whatever fails
 * here ends the program: what a program means to do wrong, it does itself.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  BUFFER_BYTES = 16384,
  QUEUE_DEPTH = 16, /* of each work queue */
  CQ_DEPTH = 64,
  GRH_BYTES = 40,
  QKEY = 0x11111111,
};

struct end {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_mr* mr; /* all of buffer */
  char* buffer;      /* whole pages of its own */
  int gid_index;
};

/* The server's buffer may be reached by the client; the client's own may not. */
struct pair {
  struct end client, server;
};

/* Ends the program with the text and errno unless `condition`. */
void must(bool condition, const char* what);

/* True when the program was called with "wrong", false with "right". */
bool is_wrong(int argc, char** argv);

/* ---- making and ending a pair ---- */

/* Both ends with connected QPs, ready to send. */
void open_pair(struct pair* pair);
void close_pair(struct pair* pair);

/* The same in steps, for who wants a step to be different: everything but the QPs, on the first and
 * the last device; */
void open_ends(struct pair* pair);
/* RC or UD QPs in RESET, as `usual_qp` says or the caller has changed; */
struct ibv_qp_init_attr usual_qp(const struct end* end, enum ibv_qp_type type);
void make_qp(struct end* end, struct ibv_qp_init_attr* how);
/* and from there to RTS with all that a connection to `to` takes, or the caller has changed. */
struct ibv_qp_attr usual_connection(const struct end* from, const struct end* to);
void to_init(struct end* end);
void to_rtr(struct end* end, struct ibv_qp_attr* how);
void to_rts(struct end* end, struct ibv_qp_attr* how);
void connect_end(struct end* end, struct ibv_qp_attr* how);
struct ibv_ah* make_ah(const struct end* from, const struct end* to);

void* whole_pages(size_t bytes);
void close_qp(struct end* end);
void close_end(struct end* end);

/* ---- work ---- */

struct send {
  struct ibv_sge sge;
  struct ibv_send_wr wr;
};

/* A signaled request about the first bytes of `from`'s buffer; with RDMA and atomics, to the first
 * of `to`'s. */
void prepare(struct send* send, enum ibv_wr_opcode opcode, const struct end* from,
             const struct end* to, uint32_t bytes);
void post_send(struct end* end, struct send* send);
void post_receive(struct end* end, void* at, uint32_t bytes);

/* Waits for one completion, of whatever status. */
struct ibv_wc take_completion(struct end* end);
/* Waits for one that must be a success. */
void take_success(struct end* end);
/* Waits for an event of the CQ, which was asked for, and acknowledges it; polls nothing. */
void wait_for_event(struct end* end);
/* Moves the QP to ERR and takes the completions of the `receives` that still are posted. */
void drain(struct end* end, int receives);
