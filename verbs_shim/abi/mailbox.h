/* A second way for a request and its reply, beside the socket of control.h: a page of memory that
 * both sides look at. A thread that is woken costs several times what most requests do, so both
 * sides look for a while before they sleep.
 *
 * The page comes with the reply to HELLO. It is there to be used when `attended` is not 0 and
 * neither the request nor its reply bears a descriptor; the socket always serves. A program has one
 * request on its way, by either.
 *
 *   state     set by  from      meaning
 *   FREE      program           nothing on its way
 *   ASKED     program FREE      there is a request
 *   TAKEN     NIC     ASKED     the NIC has copied it
 *   ANSWERED  NIC     TAKEN     there is the reply
 *   ELSEWHERE NIC     TAKEN     the reply is in the socket (it bears descriptors, or is too long)
 *   FREE      program ASKED     withdrawn: the NIC has not come by
 *   SLEEPING  program TAKEN     the program waits at the socket: the reply is to come there
 *
 * TAKEN and ASKED are left by compare and exchange alone, as either side may.
 *
 * `state` and `attended` are written by releases and read by acquires, and the exchanges are both:
 * what was written of the request or the reply before is there for whoever sees the new state.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_MAILBOX_H
#define ROCEMU_VERBS_SHIM_ABI_MAILBOX_H

#include <stdint.h>

#include "verbs_shim/abi/control.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rocemu_mailbox_state {
  ROCEMU_MAILBOX_FREE = 0,
  ROCEMU_MAILBOX_ASKED = 1,
  ROCEMU_MAILBOX_TAKEN = 2,
  ROCEMU_MAILBOX_ANSWERED = 3,
  ROCEMU_MAILBOX_ELSEWHERE = 4,
  ROCEMU_MAILBOX_SLEEPING = 5,
};

enum { ROCEMU_MAILBOX_BYTES = 2016 }; /* the most of a request, and of a reply, with headers */

struct rocemu_mailbox {
  uint32_t state;    /* enum rocemu_mailbox_state */
  uint32_t attended; /* written by the NIC: whether it looks here by itself */
  uint8_t reserved[56];
  uint8_t request[ROCEMU_MAILBOX_BYTES];
  uint8_t reply[ROCEMU_MAILBOX_BYTES];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_mailbox, 4096);

#ifdef __cplusplus
}
#endif
#endif
