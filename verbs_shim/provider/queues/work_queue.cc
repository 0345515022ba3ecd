#include "verbs_shim/provider/queues/work_queue.h"

#include <errno.h>
#include <string.h>

#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/queues/queue_pair.h"

namespace rocemu::provider {
namespace {

WorkQueue& to_work_queue(ibv_wq* wq) { return *reinterpret_cast<WorkQueue*>(wq); }

int post_wq_recv(ibv_wq* wq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return post_recv(to_work_queue(wq).qp, request, bad);
}

int move(ibv_qp* qp, ibv_qp_state state, int mask = 0) {
  ibv_qp_attr attr = {};
  attr.qp_state = state;
  attr.port_num = 1;
  return modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

int move_to(WorkQueue& queue, ibv_wq_state state) {
  if (state == IBV_WQS_ERR) return move(queue.qp, IBV_QPS_ERR);
  if (state == IBV_WQS_RESET) return move(queue.qp, IBV_QPS_RESET);
  if (state != IBV_WQS_RDY || queue.wq.state != IBV_WQS_RESET) return EINVAL;
  const int error = move(queue.qp, IBV_QPS_INIT, IBV_QP_PORT);
  return error != 0 ? error : move(queue.qp, IBV_QPS_RTR);
}

uint32_t add(uint32_t& users, uint32_t by) {
  return __atomic_add_fetch(&users, by, __ATOMIC_RELAXED);
}

}  // namespace

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attr) {
  const bool has_flags = (attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS) != 0;
  int error = 0;
  if ((attr->comp_mask & ~uint32_t{IBV_WQ_INIT_ATTR_FLAGS}) != 0 ||
      (has_flags && attr->create_flags != 0)) {
    error = EOPNOTSUPP;
  } else if (attr->wq_type != IBV_WQT_RQ || attr->pd == nullptr || attr->cq == nullptr ||
             attr->max_wr == 0) {
    error = EINVAL;
  }
  auto* queue = error == 0 ? new_object<WorkQueue>() : nullptr;
  if (error == 0 && queue == nullptr) error = ENOMEM;
  if (error == 0) {
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = attr->cq;
    init.cap.max_recv_wr = attr->max_wr;
    init.cap.max_recv_sge = attr->max_sge;
    init.qp_type = IBV_QPT_RAW_PACKET;
    queue->qp = create_qp(attr->pd, &init);
    if (queue->qp == nullptr) error = errno;
    attr->max_wr = init.cap.max_recv_wr;
    attr->max_sge = init.cap.max_recv_sge;
  }
  if (error != 0) {
    if (queue != nullptr) delete_object(queue);
    errno = error;
    return nullptr;
  }
  ibv_wq& wq = queue->wq;
  wq.context = context;
  wq.pd = attr->pd;
  wq.cq = attr->cq;
  wq.wq_num = queue->qp->qp_num;
  wq.handle = queue->qp->handle;
  wq.state = IBV_WQS_RESET;
  wq.wq_type = IBV_WQT_RQ;
  wq.post_recv = post_wq_recv;
  to_queue_pair(queue->qp).work_queue = &wq;
  return &wq;
}

// The NIC tells of the QP, which the program knows as a work queue.
void async_event(ibv_context*, ibv_async_event* event) {
  if (event->event_type != IBV_EVENT_QP_FATAL) return;
  ibv_wq* const wq = to_queue_pair(event->element.qp).work_queue;
  if (wq == nullptr) return;
  if (wq->state == IBV_WQS_RDY) wq->state = IBV_WQS_ERR;  // it may have been reset since
  event->event_type = IBV_EVENT_WQ_FATAL;
  event->element.wq = wq;
}

int modify_wq(ibv_wq* wq, ibv_wq_attr* attr) {
  constexpr uint32_t kKnown = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
  if ((attr->attr_mask & ~kKnown) != 0) return EOPNOTSUPP;
  if ((attr->attr_mask & IBV_WQ_ATTR_CURR_STATE) != 0 && attr->curr_wq_state != wq->state)
    return EINVAL;
  if ((attr->attr_mask & IBV_WQ_ATTR_STATE) == 0 || attr->wq_state == wq->state) return 0;
  if (const int error = move_to(to_work_queue(wq), attr->wq_state); error != 0) return error;
  wq->state = attr->wq_state;
  return 0;
}

int destroy_wq(ibv_wq* wq) {
  WorkQueue& queue = to_work_queue(wq);
  if (add(queue.users, 0) != 0) return EBUSY;
  if (const int error = destroy_qp(queue.qp); error != 0) return error;
  delete_object(&queue);
  return 0;
}

ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attr) {
  constexpr uint32_t kMaxLog = 7;
  static_assert(1u << kMaxLog == ROCEMU_FLOW_RECEIVERS_MAX);
  bool right =
      attr->comp_mask == 0 && attr->log_ind_tbl_size <= kMaxLog && attr->ind_tbl != nullptr;
  for (uint32_t i = 0; right && i < 1u << attr->log_ind_tbl_size; ++i)
    right = attr->ind_tbl[i] != nullptr && attr->ind_tbl[i]->context == context;
  auto* table = right ? new_object<IndirectionTable>() : nullptr;
  if (table == nullptr) {
    errno = right ? ENOMEM : EINVAL;
    return nullptr;
  }
  table->table.context = context;
  table->size = 1u << attr->log_ind_tbl_size;
  for (uint32_t i = 0; i < table->size; ++i) {
    table->queues[i] = &to_work_queue(attr->ind_tbl[i]);
    add(table->queues[i]->users, 1);
  }
  return &table->table;
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* table) {
  auto& own = *reinterpret_cast<IndirectionTable*>(table);
  if (add(own.users, 0) != 0) return EBUSY;
  for (uint32_t i = 0; i < own.size; ++i) add(own.queues[i]->users, -1u);
  delete_object(&own);
  return 0;
}

void address_flow(const Scaling& scaling, rocemu_create_flow& flow) {
  const IndirectionTable& table = *scaling.table;
  flow.qp_count = static_cast<uint16_t>(table.size);
  for (uint32_t i = 0; i < table.size; ++i) flow.qps[i] = table.queues[i]->wq.handle;
  flow.hash_fields = scaling.hash_fields;
  memcpy(flow.hash_key, scaling.key, sizeof(flow.hash_key));
}

int make_scaling(const ibv_qp_init_attr_ex& attr, Scaling*& scaling) {
  constexpr uint64_t kFields = 0xff;  // addresses and ports; not the inner ones, and no SPI
  const ibv_rx_hash_conf& conf = attr.rx_hash_conf;
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_RX_HASH) == 0 || attr.qp_type != IBV_QPT_RAW_PACKET ||
      attr.rwq_ind_tbl == nullptr || conf.rx_hash_key == nullptr)
    return EINVAL;
  if (conf.rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ ||
      (conf.rx_hash_fields_mask & ~kFields) != 0)
    return EOPNOTSUPP;
  if (conf.rx_hash_key_len != ROCEMU_HASH_KEY_BYTES) return EINVAL;
  scaling = new_object<Scaling>();
  if (scaling == nullptr) return ENOMEM;
  scaling->table = reinterpret_cast<IndirectionTable*>(attr.rwq_ind_tbl);
  scaling->hash_fields = static_cast<uint32_t>(conf.rx_hash_fields_mask);
  memcpy(scaling->key, conf.rx_hash_key, sizeof(scaling->key));
  add(scaling->table->users, 1);
  return 0;
}

void release(Scaling* scaling) {
  add(scaling->table->users, -1u);
  delete_object(scaling);
}

}  // namespace rocemu::provider
