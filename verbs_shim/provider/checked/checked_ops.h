// The verbs that are checked. The others are the ordinary ones: checked::NAME is one or the other.
#pragma once

#include "verbs_shim/provider/common/verbs_ops.h"

namespace rocemu::provider::checked {

using namespace ::rocemu::provider;

// objects.cc
ibv_pd* alloc_pd(ibv_context* context);
int dealloc_pd(ibv_pd* pd);
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr);
int dealloc_td(ibv_td* td);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr);
ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t bytes, uint64_t iova, int access);
int rereg_mr(VerbsMr* mr, int flags, ibv_pd* pd, void* address, size_t bytes, int access);
int dereg_mr(VerbsMr* mr);
ibv_mr* alloc_null_mr(ibv_pd* pd);
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, uint64_t offset, size_t bytes, unsigned access);
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* mw);
ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr);
int free_dm(ibv_dm* dm);
ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr);
int destroy_ah(ibv_ah* ah);
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr);
int close_xrcd(ibv_xrcd* xrcd);
ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr);
int destroy_flow(ibv_flow* flow);
ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attr);
int destroy_wq(ibv_wq* wq);
void free_context(ibv_context* context);

// queues.cc
ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr);
int resize_cq(ibv_cq* cq, int cqe);
int destroy_cq(ibv_cq* cq);
ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);
int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask);
int destroy_qp(ibv_qp* qp);
ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr);
int destroy_srq(ibv_srq* srq);

// post.cc
int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad);

// poll.cc
int poll_cq(ibv_cq* cq, int entries, ibv_wc* completions);
int req_notify_cq(ibv_cq* cq, int solicited_only);

// events.cc: libibverbs calls these when the program has read an event, with ibv_get_cq_event and
// ibv_get_async_event.
void cq_event(ibv_cq* cq);
void async_event(ibv_context* context, ibv_async_event* event);

}  // namespace rocemu::provider::checked
