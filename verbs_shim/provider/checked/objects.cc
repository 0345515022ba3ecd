// The verbs that make, change and destroy objects other than CQs, QPs and SRQs (queues.cc).
#include <errno.h>

#include "verbs_shim/provider/checked/checked_ops.h"
#include "verbs_shim/provider/checked/checker.h"
#include "verbs_shim/provider/checked/destroying.h"

namespace rocemu::provider::checked {
namespace {

// Tells of an object that has no hook of its own, or that it was refused.
template <typename T>
T* told(rocemu_check_at at, rocemu_check_kind kind, ibv_context* context, T* object,
        const void* parent, uint32_t number, uint64_t value = 0) {
  if (object == nullptr) {
    hooks->refused(at, kind, context, errno, nullptr, value);
  } else {
    hooks->made(at, kind, context, object, parent, number);
  }
  return object;
}

ibv_mr* told(rocemu_check_at at, ibv_context* context, ibv_mr* mr, uint64_t iova, int access,
             size_t bytes) {
  if (mr == nullptr) {
    hooks->refused(at, ROCEMU_CHECK_MR, context, errno, nullptr, bytes);
  } else {
    hooks->mr_made(at, mr, iova, access);
  }
  return mr;
}

}  // namespace

ibv_pd* alloc_pd(ibv_context* context) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_alloc_pd");
  ibv_pd* pd = provider::alloc_pd(context);
  return told(&at, ROCEMU_CHECK_PD, context, pd, nullptr, pd == nullptr ? 0 : pd->handle);
}

int dealloc_pd(ibv_pd* pd) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_dealloc_pd");
  return destroying(at, ROCEMU_CHECK_PD, pd, [&] { return provider::dealloc_pd(pd); });
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_alloc_td");
  return told(&at, ROCEMU_CHECK_TD, context, provider::alloc_td(context, attr), nullptr, 0);
}

int dealloc_td(ibv_td* td) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_dealloc_td");
  return destroying(at, ROCEMU_CHECK_TD, td, [&] { return provider::dealloc_td(td); });
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_alloc_parent_domain");
  return told(&at, ROCEMU_CHECK_PD, context, provider::alloc_parent_domain(context, attr), attr->pd,
              0);
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t bytes, uint64_t iova, int access) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_reg_mr");
  ibv_mr* mr = provider::reg_mr(pd, address, bytes, iova, access);
  return told(&at, pd->context, mr, iova, access, bytes);
}

int rereg_mr(VerbsMr* mr, int flags, ibv_pd* pd, void* address, size_t bytes, int access) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_rereg_mr");
  const int error = provider::rereg_mr(mr, flags, pd, address, bytes, access);
  if (error == 0) hooks->mr_changed(&at, &mr->mr, flags, address, bytes, access);
  return error;
}

int dereg_mr(VerbsMr* mr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_dereg_mr");
  return destroying(at, ROCEMU_CHECK_MR, mr, [&] { return provider::dereg_mr(mr); });
}

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_alloc_null_mr");
  return told(&at, pd->context, provider::alloc_null_mr(pd), 0, IBV_ACCESS_LOCAL_WRITE, 0);
}

// Its addresses are of the device's memory, not of the program's.
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, uint64_t offset, size_t bytes, unsigned access) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_reg_dm_mr");
  ibv_mr* mr = provider::reg_dm_mr(pd, dm, offset, bytes, access);
  return told(&at, pd->context, mr, 0, static_cast<int>(access), bytes);
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_alloc_mw");
  ibv_mw* mw = provider::alloc_mw(pd, type);
  return told(&at, ROCEMU_CHECK_MW, pd->context, mw, pd, mw == nullptr ? 0 : mw->handle);
}

int dealloc_mw(ibv_mw* mw) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_dealloc_mw");
  return destroying(at, ROCEMU_CHECK_MW, mw, [&] { return provider::dealloc_mw(mw); });
}

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_alloc_dm");
  return told(&at, ROCEMU_CHECK_DM, context, provider::alloc_dm(context, attr), nullptr, 0,
              attr->length);
}

int free_dm(ibv_dm* dm) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_free_dm");
  return destroying(at, ROCEMU_CHECK_DM, dm, [&] { return provider::free_dm(dm); });
}

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_create_ah");
  ibv_ah* ah = provider::create_ah(pd, attr);
  if (ah == nullptr) {
    hooks->refused(&at, ROCEMU_CHECK_AH, pd->context, errno, nullptr, 0);
  } else {
    hooks->ah_made(&at, ah, attr);
  }
  return ah;
}

int destroy_ah(ibv_ah* ah) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_destroy_ah");
  return destroying(at, ROCEMU_CHECK_AH, ah, [&] { return provider::destroy_ah(ah); });
}

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_open_xrcd");
  return told(&at, ROCEMU_CHECK_XRCD, context, provider::open_xrcd(context, attr), nullptr, 0);
}

int close_xrcd(ibv_xrcd* xrcd) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_close_xrcd");
  return destroying(at, ROCEMU_CHECK_XRCD, xrcd, [&] { return provider::close_xrcd(xrcd); });
}

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_create_flow");
  return told(&at, ROCEMU_CHECK_FLOW, qp->context, provider::create_flow(qp, attr), nullptr, 0);
}

int destroy_flow(ibv_flow* flow) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_destroy_flow");
  return destroying(at, ROCEMU_CHECK_FLOW, flow, [&] { return provider::destroy_flow(flow); });
}

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_create_wq");
  ibv_wq* wq = provider::create_wq(context, attr);
  return told(&at, ROCEMU_CHECK_WQ, context, wq, attr->pd, wq == nullptr ? 0 : wq->wq_num);
}

int destroy_wq(ibv_wq* wq) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_destroy_wq");
  return destroying(at, ROCEMU_CHECK_WQ, wq, [&] { return provider::destroy_wq(wq); });
}

void free_context(ibv_context* context) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_close_device");
  destroying(at, ROCEMU_CHECK_CONTEXT, context, [&] {
    provider::free_context(context);
    return 0;
  });
}

}  // namespace rocemu::provider::checked
