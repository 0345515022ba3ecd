// The verbs that the provider offers, under the names and with the types that libibverbs' table of
// operations has for them. Return values and errno are as the man pages of the ibv_ functions say.
#pragma once

#include <infiniband/verbs.h>

#include <type_traits>

namespace rocemu::provider {

// rdma-core's struct verbs_mr: an ibv_mr and what its registration was.
struct VerbsMr {
  ibv_mr mr;
  int type;  // 0: an ordinary region
  int access;
};
static_assert(sizeof(VerbsMr) == 56);
inline constexpr int kNullMr = 1;
inline constexpr int kImportedMr = 2;

// device_query.cc; rdma-core up to 32 asks for the first member by a verb of its own
int query_device(ibv_context* context, ibv_device_attr* attr);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, size_t attr_bytes);
int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attr);
int query_rt_values(ibv_context* context, ibv_values_ex* values);

// protection_domain.cc
ibv_pd* alloc_pd(ibv_context* context);
int dealloc_pd(ibv_pd* pd);
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr);
int dealloc_td(ibv_td* td);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr);

// memory.cc
ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t bytes, uint64_t iova, int access);
int rereg_mr(VerbsMr* mr, int flags, ibv_pd* pd, void* address, size_t bytes, int access);
int dereg_mr(VerbsMr* mr);
ibv_mr* alloc_null_mr(ibv_pd* pd);
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* ranges,
              uint32_t count);

// imported.cc
ibv_pd* import_pd(ibv_context* context, uint32_t handle);
void unimport_pd(ibv_pd* pd);
ibv_mr* import_mr(ibv_pd* pd, uint32_t handle);
void unimport_mr(ibv_mr* mr);

// memory_window.cc
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* mw);

// device_memory.cc
ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr);
int free_dm(ibv_dm* dm);
ibv_dm* import_dm(ibv_context* context, uint32_t handle);
void unimport_dm(ibv_dm* dm);
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, uint64_t offset, size_t bytes, unsigned access);

// completion_queue.cc
ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr);
int resize_cq(ibv_cq* cq, int cqe);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr);
int destroy_cq(ibv_cq* cq);
int req_notify_cq(ibv_cq* cq, int solicited_only);
// Changes what libibverbs has made of an event that the program reads.
void async_event(ibv_context* context, ibv_async_event* event);

// poll.cc
int poll_cq(ibv_cq* cq, int entries, ibv_wc* completions);

// queue_pair.cc
ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);
int destroy_qp(ibv_qp* qp);

// address_handle.cc
ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr);
int destroy_ah(ibv_ah* ah);

// shared_receive_queue.cc
ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr);
int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask);
int query_srq(ibv_srq* srq, ibv_srq_attr* attr);
int destroy_srq(ibv_srq* srq);
int get_srq_num(ibv_srq* srq, uint32_t* number);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad);
int post_srq_ops(ibv_srq* srq, ibv_ops_wr* op, ibv_ops_wr** bad);

// xrc_domain.cc
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr);
int close_xrcd(ibv_xrcd* xrcd);
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr);

// multicast.cc
int attach_mcast(ibv_qp* qp, const ibv_gid* group, uint16_t lid);
int detach_mcast(ibv_qp* qp, const ibv_gid* group, uint16_t lid);

// flow.cc
ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr);
int destroy_flow(ibv_flow* flow);
ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* attr);
int destroy_counters(ibv_counters* counters);
int attach_counters_point_flow(ibv_counters* counters, ibv_counter_attach_attr* attr,
                               ibv_flow* flow);
int read_counters(ibv_counters* counters, uint64_t* values, uint32_t count, uint32_t flags);

// work_queue.cc
ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attr);
int modify_wq(ibv_wq* wq, ibv_wq_attr* attr);
int destroy_wq(ibv_wq* wq);
ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attr);
int destroy_rwq_ind_table(ibv_rwq_ind_table* table);

// qp_state.cc
int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask);
int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* attr);
int query_ece(ibv_qp* qp, ibv_ece* ece);
int set_ece(ibv_qp* qp, ibv_ece* ece);
int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init);

// post.cc
int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad);

// driver.cc, as the context's memory is laid out by the version of libibverbs
void free_context(ibv_context* context);

// The types that the public header shows.
template <auto function, typename Member>
inline constexpr bool kSameType = std::is_same_v<decltype(function), Member>;
static_assert(kSameType<&poll_cq, decltype(ibv_context_ops::poll_cq)>);
static_assert(kSameType<&req_notify_cq, decltype(ibv_context_ops::req_notify_cq)>);
static_assert(kSameType<&post_send, decltype(ibv_context_ops::post_send)>);
static_assert(kSameType<&post_recv, decltype(ibv_context_ops::post_recv)>);
static_assert(kSameType<&post_srq_recv, decltype(ibv_context_ops::post_srq_recv)>);
static_assert(kSameType<&post_srq_ops, decltype(verbs_context::post_srq_ops)>);
static_assert(kSameType<&create_srq_ex, decltype(verbs_context::create_srq_ex)>);
static_assert(kSameType<&get_srq_num, decltype(verbs_context::get_srq_num)>);
static_assert(kSameType<&open_xrcd, decltype(verbs_context::open_xrcd)>);
static_assert(kSameType<&close_xrcd, decltype(verbs_context::close_xrcd)>);
static_assert(kSameType<&open_qp, decltype(verbs_context::open_qp)>);
static_assert(kSameType<&create_cq_ex, decltype(verbs_context::create_cq_ex)>);
static_assert(kSameType<&create_qp_ex, decltype(verbs_context::create_qp_ex)>);
static_assert(kSameType<&bind_mw, decltype(ibv_context_ops::bind_mw)>);
static_assert(kSameType<&query_rt_values, decltype(verbs_context::query_rt_values)>);
static_assert(kSameType<&alloc_parent_domain, decltype(verbs_context::alloc_parent_domain)>);
static_assert(kSameType<&alloc_td, decltype(verbs_context::alloc_td)>);
static_assert(kSameType<&dealloc_td, decltype(verbs_context::dealloc_td)>);
static_assert(kSameType<&alloc_null_mr, decltype(verbs_context::alloc_null_mr)>);
static_assert(kSameType<&advise_mr, decltype(verbs_context::advise_mr)>);
static_assert(kSameType<&alloc_dm, decltype(verbs_context::alloc_dm)>);
static_assert(kSameType<&free_dm, decltype(verbs_context::free_dm)>);
static_assert(kSameType<&reg_dm_mr, decltype(verbs_context::reg_dm_mr)>);
static_assert(kSameType<&modify_qp_rate_limit, decltype(verbs_context::modify_qp_rate_limit)>);
static_assert(kSameType<&create_flow, decltype(verbs_context::ibv_create_flow)>);
static_assert(kSameType<&create_counters, decltype(verbs_context::create_counters)>);
static_assert(
    kSameType<&attach_counters_point_flow, decltype(verbs_context::attach_counters_point_flow)>);
static_assert(kSameType<&read_counters, decltype(verbs_context::read_counters)>);
static_assert(kSameType<&create_wq, decltype(verbs_context::create_wq)>);
static_assert(kSameType<&modify_wq, decltype(verbs_context::modify_wq)>);
static_assert(kSameType<&create_rwq_ind_table, decltype(verbs_context::create_rwq_ind_table)>);
static_assert(kSameType<&query_device_ex, decltype(verbs_context::query_device_ex)>);

}  // namespace rocemu::provider
