// Receive work queues, tables of them, and QPs that spread what they receive over such a table
// (ibv_create_wq(3), ibv_create_rwq_ind_table(3)). To the NIC a work queue is a raw packet QP that
// sends nothing; tables and the QPs over them exist in the program alone, until a flow names them.
#pragma once

#include <infiniband/verbs.h>

#include "verbs_shim/abi/services.h"

namespace rocemu::provider {

struct WorkQueue {
  ibv_wq wq;
  ibv_qp* qp;      // the QP that does this queue's work
  uint32_t users;  // places in tables
};

struct IndirectionTable {
  ibv_rwq_ind_table table;
  uint32_t users;  // QPs
  uint32_t size;
  WorkQueue* queues[ROCEMU_FLOW_RECEIVERS_MAX];
};

// The part of a QP over a table that is beyond its ibv_qp.
struct Scaling {
  IndirectionTable* table;
  uint32_t hash_fields;
  uint8_t key[ROCEMU_HASH_KEY_BYTES];
};

// Fills in whom the flow goes to.
void address_flow(const Scaling& scaling, rocemu_create_flow& flow);

// For ibv_create_qp_ex with a table: 0 or an errno value, and the Scaling.
int make_scaling(const ibv_qp_init_attr_ex& attr, Scaling*& scaling);
void release(Scaling* scaling);

}  // namespace rocemu::provider
