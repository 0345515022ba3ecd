#include "verbs_shim/provider/queues/address_handle.h"

#include <errno.h>
#include <string.h>

#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/device_context.h"

namespace rocemu::provider {

rocemu_ah_attr to_address_vector(const ibv_ah_attr& from) {
  rocemu_ah_attr to = {};
  memcpy(to.dgid, from.grh.dgid.raw, sizeof(to.dgid));
  to.flow_label = from.grh.flow_label;
  to.sgid_index = from.grh.sgid_index;
  to.hop_limit = from.grh.hop_limit;
  to.traffic_class = from.grh.traffic_class;
  to.is_global = from.is_global;
  to.dlid = from.dlid;
  to.sl = from.sl;
  to.src_path_bits = from.src_path_bits;
  to.static_rate = from.static_rate;
  to.port_num = from.port_num;
  return to;
}

// libibverbs fills in the context and the PD; the NIC's handle goes into WQEs.
ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  auto* ah = new_object<ibv_ah>();
  if (ah == nullptr) return nullptr;
  rocemu_create_ah request = {};
  request.pd = pd->handle;
  request.attr = to_address_vector(*attr);
  rocemu_handle_message reply;
  if (const int error = to_context(pd->context).call(ROCEMU_OP_CREATE_AH, request, reply);
      error != 0) {
    delete_object(ah);
    errno = error;
    return nullptr;
  }
  ah->context = pd->context;
  ah->pd = pd;
  ah->handle = reply.handle;
  return ah;
}

int destroy_ah(ibv_ah* ah) {
  rocemu_handle_message request = {};
  request.handle = ah->handle;
  rocemu_handle_message reply;
  const int error = to_context(ah->context).call(ROCEMU_OP_DESTROY_AH, request, reply);
  if (error == 0) delete_object(ah);
  return error;
}

}  // namespace rocemu::provider
