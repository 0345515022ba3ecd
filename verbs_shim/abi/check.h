/* The provider tells the checker, librocemu-check.so, which it loads when ROCEMU_CHECK is set, of
 * each verb of the program, before and after it is carried out. Without that variable nothing of
 * this is loaded or called.
 *
 * All hooks may be called from several threads at once. They keep errno, never throw, never call
 * back into the program, and take no lock that is held while the program's code runs. Hooks come in
 * pairs where a lock is kept from the first to the second, which is said at the pair.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_CHECK_H
#define ROCEMU_VERBS_SHIM_ABI_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "verbs_shim/abi/check_files.h"
#include "verbs_shim/abi/garbage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A call of the program's into a verb. `return_address` and `frame` are those of the provider's own
 * function, by which a call that came the same way before is known. */
struct rocemu_check_call {
  const char* verb; /* "ibv_post_send"; static */
  const void* return_address;
  const void* frame;
};

/* Kinds of objects. `made` tells of objects that have no hook of their own. */
enum rocemu_check_kind {
  ROCEMU_CHECK_CONTEXT = 0,
  ROCEMU_CHECK_PD,
  ROCEMU_CHECK_MR,
  ROCEMU_CHECK_MW,
  ROCEMU_CHECK_DM,
  ROCEMU_CHECK_AH,
  ROCEMU_CHECK_CHANNEL,
  ROCEMU_CHECK_CQ,
  ROCEMU_CHECK_QP,
  ROCEMU_CHECK_SRQ,
  ROCEMU_CHECK_WQ,
  ROCEMU_CHECK_XRCD,
  ROCEMU_CHECK_TD,
  ROCEMU_CHECK_FLOW,
  ROCEMU_CHECK_COUNTERS,
  ROCEMU_CHECK_IND_TABLE,
  ROCEMU_CHECK_KINDS
};

/* Services of the provider to the checker, in any thread that holds none of the provider's locks.
 */
struct rocemu_check_services {
  /* A control operation of abi/control.h: 0 or an errno. `request` begins with room for its
   * rocemu_header, which is filled in. */
  int (*control)(struct ibv_context* context, uint32_t op, void* request, size_t request_bytes,
                 void* reply, size_t reply_bytes);
  /* 1 when completions stand in the CQ that nobody has taken. */
  int (*has_completions)(struct ibv_cq* cq);
};

/* A new QP with its capabilities as asked for and as granted. */
struct rocemu_check_qp {
  struct ibv_qp* qp;
  const struct ibv_qp_init_attr_ex* asked;
  const struct ibv_qp_cap* granted;
};

typedef const struct rocemu_check_call* rocemu_check_at;

/* A shadow is the checker's record of an object, which the provider keeps with it and gives back;
 * it may be null, and then hooks do nothing. */
struct rocemu_check_hooks {
  /* Objects. `parent` is what it was made of (a context or PD), or null. `number` is what people
   * know it by: a QPN, an SRQ's number, a descriptor; else the NIC's handle. */
  void (*context_opened)(rocemu_check_at at, struct ibv_context* context,
                         const struct ibv_device_attr* limits, uint32_t max_inline_data);
  void (*made)(rocemu_check_at at, enum rocemu_check_kind kind, struct ibv_context* context,
               void* object, const void* parent, uint32_t number);
  void (*mr_made)(rocemu_check_at at, struct ibv_mr* mr, uint64_t iova, int access);
  void (*mr_changed)(rocemu_check_at at, struct ibv_mr* mr, int flags, void* address, size_t bytes,
                     int access);
  void (*ah_made)(rocemu_check_at at, struct ibv_ah* ah, const struct ibv_ah_attr* attr);
  void* (*cq_made)(rocemu_check_at at, struct ibv_cq* cq, struct ibv_comp_channel* channel,
                   uint32_t asked, int ignores_overrun);
  void* (*srq_made)(rocemu_check_at at, struct ibv_srq* srq,
                    const struct ibv_srq_init_attr_ex* asked, uint32_t max_wr, uint32_t max_sge);
  void* (*qp_made)(rocemu_check_at at, const struct rocemu_check_qp* made);
  void (*cq_resized)(rocemu_check_at at, void* shadow, uint32_t cqe);
  /* A verb that makes or changes something was refused with `error`. `asked` is the verb's own
   * structure (ibv_qp_init_attr_ex, ibv_srq_init_attr_ex, ibv_qp_attr) or null; `value` a number
   * that it was asked for (entries of a CQ, bytes of a region). */
  void (*refused)(rocemu_check_at at, enum rocemu_check_kind kind, struct ibv_context* context,
                  int error, const void* asked, uint64_t value);
  /* Before and after an object is destroyed; `gone` also after that failed, with its error. */
  void (*going)(rocemu_check_at at, enum rocemu_check_kind kind, void* object);
  void (*gone)(rocemu_check_at at, enum rocemu_check_kind kind, void* object, int error);

  /* QPs. */
  void (*qp_modifying)(rocemu_check_at at, void* shadow, const struct ibv_qp_attr* attr, int mask);
  void (*qp_modified)(rocemu_check_at at, void* shadow, const struct ibv_qp_attr* attr, int mask,
                      int error);

  /* Posting. The first of each pair keeps the queue's lock until the second, which is told what the
   * NIC made of the list: `error`, and with it `bad`, the first request that was not taken.
   * Requests built by ibv_wr_start and so on come as the same list. */
  void (*sends_posting)(rocemu_check_at at, void* shadow, const struct ibv_send_wr* list);
  void (*sends_posted)(rocemu_check_at at, void* shadow, const struct ibv_send_wr* list, int error,
                       const struct ibv_send_wr* bad);
  void (*receives_posting)(rocemu_check_at at, void* shadow, const struct ibv_recv_wr* list);
  void (*receives_posted)(rocemu_check_at at, void* shadow, const struct ibv_recv_wr* list,
                          int error, const struct ibv_recv_wr* bad);
  void (*srq_receives_posting)(rocemu_check_at at, void* shadow, const struct ibv_recv_wr* list);
  void (*srq_receives_posted)(rocemu_check_at at, void* shadow, const struct ibv_recv_wr* list,
                              int error, const struct ibv_recv_wr* bad);

  /* Completions, with the CQ locked, so in the order in which they are taken; 0 of them when there
   * were none, and then the CQ is not locked. The checker writes over what has no meaning in those
   * that failed. */
  void (*polled)(rocemu_check_at at, void* shadow, struct ibv_wc* completions, int count);
  /* After a poll that gave failed completions, with nothing locked. */
  void (*failures_polled)(rocemu_check_at at, void* shadow);
  /* A read_ function of ibv_cq_ex for a field that has no meaning, as the completion failed. 1 when
   * the program is to get garbage. */
  int (*meaningless_read)(rocemu_check_at at, void* shadow, const char* field,
                          const struct ibv_wc* completion);
  /* `had_completions`: whether completions stood in the CQ just before. */
  void (*armed)(rocemu_check_at at, void* shadow, int solicited_only, int had_completions);

  /* Events. `waiting`: ibv_get_cq_event is about to block on this channel's descriptor. */
  void (*waiting)(rocemu_check_at at, int channel_fd);
  void (*cq_event_taken)(rocemu_check_at at, void* shadow);
  void (*async_event_taken)(rocemu_check_at at, struct ibv_context* context,
                            const struct ibv_async_event* event);

  /* Memory that is about to be unmapped or freed: `how` is "munmap", "free" ... */
  void (*memory_going)(rocemu_check_at at, const void* address, size_t bytes, const char* how);
};

/* The library's one entry: null when it can't check, which it has said on standard error. Once for
 * a process; `services` are kept by reference. */
const struct rocemu_check_hooks* rocemu_check_start_v1(
    const struct rocemu_check_services* services);
#define ROCEMU_CHECK_START "rocemu_check_start_v1"

#ifdef __cplusplus
}
#endif
#endif
