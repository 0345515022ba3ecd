/* Connection management between a program's preload library and rocemud: what librdmacm writes to
 * /dev/infiniband/rdma_cm is handed on as it is, and rocemud is what the kernel's rdma_ucm would
 * be. Commands, their structures and their answers are those of rdma/rdma_user_cm.h, ABI version 4.
 *
 * A connection of its own for each program: a HELLO with device_index ROCEMU_CM_SERVICE and no
 * descriptors, which is answered with one: the mailbox's page (mailbox.h). Closing it, by whatever
 * cause, destroys every channel and every id; peers are told.
 *
 * A channel is one opened /dev/infiniband/rdma_cm. Its file is the read end of a pipe that the
 * program makes; rocemud writes one byte for each event that it queues, so that poll, epoll and
 * O_NONBLOCK work on it as they are. The program reads one byte for each event it gets by
 * CM_NEXT_EVENT, which never waits (EAGAIN). The bytes of events that are withdrawn are taken by
 * rocemud, as far as they are there; as many as the reply says are left to the program.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_CM_H
#define ROCEMU_VERBS_SHIM_ABI_CM_H

#include <stdint.h>

#include "verbs_shim/abi/control.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ROCEMU_CM_SERVICE 0xfffffffeu

enum {
  ROCEMU_CM_IN_MAX = 512,      /* bytes of a command behind its rdma_ucm_cmd_hdr */
  ROCEMU_CM_OUT_MAX = 512,     /* bytes of an answer */
  ROCEMU_CM_OPTION_MAX = 64,   /* bytes of an option's value */
  ROCEMU_CM_EVENT_BYTES = 336, /* struct rdma_ucm_event_resp */
  ROCEMU_CM_ROUTE_BYTES = 208, /* struct rdma_ucm_query_route_resp */
  ROCEMU_CM_SETUP_BYTES = 144, /* struct ib_uverbs_qp_attr */
  ROCEMU_CM_SETUPS = 3,        /* for INIT, RTR and RTS */
};

/* Commands that <rdma/rdma_user_cm.h> has not had for long. */
enum {
  ROCEMU_CM_CMD_RESOLVE_IB_SERVICE = 23,
  ROCEMU_CM_CMD_WRITE_CM_EVENT = 24,
};

/* struct rdma_ucm_write_cm_event, as far as it is used. */
struct rocemu_cm_write_event {
  uint32_t id;
  uint32_t reserved;
  uint32_t event;
  uint32_t status;
  uint64_t argument;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_cm_write_event, 24);

enum rocemu_cm_op {
  ROCEMU_OP_CM_OPEN_CHANNEL = 48,
  ROCEMU_OP_CM_CLOSE_CHANNEL = 49,
  ROCEMU_OP_CM_COMMAND = 50,
  ROCEMU_OP_CM_NEXT_EVENT = 51,
};

/* ---- CM_OPEN_CHANNEL ---- request: a header and one descriptor, the pipe's write end; reply:
 * this.
 * ---- CM_CLOSE_CHANNEL ---- request: this; reply: a header. EBADF no such channel. */
struct rocemu_cm_channel {
  struct rocemu_header header;
  uint32_t channel;
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_cm_channel, 32);

/* Answers that librdmacm asks for behind most events, in advance: those to QUERY_ROUTE and
 * INIT_QP_ATTR about an id. They hold until the program's next other command about the id, or event
 * of it. Bit 0 of `given` is the route's, bit N that of the set-up for enum ibv_qp_state N. */
struct rocemu_cm_answers {
  uint32_t id;
  uint32_t given;
  uint8_t route[ROCEMU_CM_ROUTE_BYTES];
  uint8_t setups[ROCEMU_CM_SETUPS][ROCEMU_CM_SETUP_BYTES];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_cm_answers, 648);

/* ---- CM_NEXT_EVENT ---- request: rocemu_cm_channel; reply: this. RDMA_USER_CM_CMD_GET_EVENT.
 * EAGAIN there is none, EBADF no such channel. */
struct rocemu_cm_event {
  struct rocemu_header header;
  uint8_t event[ROCEMU_CM_EVENT_BYTES];
  struct rocemu_cm_answers answers;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_cm_event, 1008);

/* ---- CM_COMMAND ---- all but GET_EVENT. Pointers and descriptors in `in` are not followed: the
 * value of SET_OPTION is in `option`, the channel of MIGRATE_ID's descriptor in `other_channel`.
 * The status is the errno that write(2) is to fail with. LISTEN, which has no answer in the kernel,
 * is answered for the checker alone: with a uint32_t, `refused` of rocemu_cm_hooks (cm_watch.h). */
struct rocemu_cm_command {
  struct rocemu_header header;
  uint32_t channel;
  uint32_t command;       /* RDMA_USER_CM_CMD_… */
  uint32_t other_channel; /* MIGRATE_ID: where the id comes from; else 0 */
  uint32_t in_bytes;
  uint32_t out_bytes; /* room for the answer */
  uint32_t option_bytes;
  uint8_t in[ROCEMU_CM_IN_MAX];
  uint8_t option[ROCEMU_CM_OPTION_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_cm_command, 624);

struct rocemu_cm_reply {
  struct rocemu_header header;
  uint32_t out_bytes;
  uint32_t withdrawn; /* bytes to take from the pipe: of `other_channel` for MIGRATE_ID */
  uint8_t out[ROCEMU_CM_OUT_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_cm_reply, 544);

#ifdef __cplusplus
}
#endif
#endif
