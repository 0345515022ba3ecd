// ibv_create_flow, and the counters of flows: the specs of a flow become values and masks of a
// frame's headers.
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <algorithm>

#include "verbs_shim/abi/services.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/queues/queue_pair.h"
#include "verbs_shim/provider/queues/work_queue.h"

namespace rocemu::provider {
namespace {

struct CounterSet {
  static constexpr uint32_t kMaxIndices = 16;
  ibv_counters counters;
  uint32_t handle;
  uint32_t used;   // indices
  uint32_t flows;  // that name it
  // How often each of ibv_counter_description was attached to an index.
  uint64_t attached[kMaxIndices][2];
};

struct Flow {
  ibv_flow flow;
  QueuePair* queue;
  CounterSet* counters;  // null: none
};

CounterSet& to_set(ibv_counters* counters) { return *reinterpret_cast<CounterSet*>(counters); }

template <typename To, typename From>
void put(To& to, const From& from) {
  static_assert(sizeof(To) >= sizeof(From));
  memcpy(&to, &from, sizeof(from));
}

void add_eth(const ibv_flow_eth_filter& from, rocemu_frame_fields& to) {
  put(to.destination_mac, from.dst_mac);
  put(to.source_mac, from.src_mac);
  put(to.ether_type, from.ether_type);
  put(to.vlan_tci, from.vlan_tag);
}

void add_ipv4(const ibv_flow_ipv4_ext_filter& from, rocemu_frame_fields& to) {
  put(to.source_ip, from.src_ip);
  put(to.destination_ip, from.dst_ip);
  to.protocol = from.proto;
  to.traffic_class = from.tos;
  to.hop_limit = from.ttl;
  to.ip_flags = from.flags;
}

ibv_flow_ipv4_ext_filter extended(const ibv_flow_ipv4_filter& from) {
  ibv_flow_ipv4_ext_filter to = {};
  to.src_ip = from.src_ip;
  to.dst_ip = from.dst_ip;
  return to;
}

void add_ipv6(const ibv_flow_ipv6_filter& from, rocemu_frame_fields& to) {
  put(to.source_ip, from.src_ip);
  put(to.destination_ip, from.dst_ip);
  put(to.flow_label, from.flow_label);
  to.protocol = from.next_hdr;
  to.traffic_class = from.traffic_class;
  to.hop_limit = from.hop_limit;
}

void add_ports(const ibv_flow_tcp_udp_filter& from, rocemu_frame_fields& to) {
  put(to.source_port, from.src_port);
  put(to.destination_port, from.dst_port);
}

void demand(uint8_t rocemu_frame_fields::*field, uint8_t value, rocemu_create_flow& flow) {
  flow.value.*field = value;
  flow.mask.*field = 0xff;
}

int add_action(const ibv_flow_spec& spec, rocemu_create_flow& flow, CounterSet*& counters) {
  switch (static_cast<int>(spec.hdr.type)) {
    case IBV_FLOW_SPEC_ACTION_TAG:
      if (spec.hdr.size != sizeof(spec.flow_tag)) return EINVAL;
      flow.flags |= ROCEMU_FLOW_HAS_TAG;
      flow.tag = spec.flow_tag.tag_id;
      return 0;
    case IBV_FLOW_SPEC_ACTION_DROP:
      flow.flags |= ROCEMU_FLOW_DROPS;
      return 0;
    case IBV_FLOW_SPEC_ACTION_COUNT:
      if (spec.hdr.size != sizeof(spec.flow_count)) return EINVAL;
      counters = &to_set(spec.flow_count.counters);
      flow.counters = counters->handle;
      return 0;
    default:
      return EOPNOTSUPP;
  }
}

// Tunnels, what is inside of them, and ESP are not told apart: EOPNOTSUPP.
int add_spec(const ibv_flow_spec& spec, rocemu_create_flow& flow, CounterSet*& counters) {
  switch (static_cast<int>(spec.hdr.type)) {
    case IBV_FLOW_SPEC_ETH:
      if (spec.hdr.size != sizeof(spec.eth)) return EINVAL;
      add_eth(spec.eth.val, flow.value);
      add_eth(spec.eth.mask, flow.mask);
      if (spec.eth.mask.vlan_tag != 0) demand(&rocemu_frame_fields::tagged, 1, flow);
      return 0;
    case IBV_FLOW_SPEC_IPV4:
      if (spec.hdr.size != sizeof(spec.ipv4)) return EINVAL;
      add_ipv4(extended(spec.ipv4.val), flow.value);
      add_ipv4(extended(spec.ipv4.mask), flow.mask);
      demand(&rocemu_frame_fields::ip_version, 4, flow);
      return 0;
    case IBV_FLOW_SPEC_IPV4_EXT:
      if (spec.hdr.size != sizeof(spec.ipv4_ext)) return EINVAL;
      add_ipv4(spec.ipv4_ext.val, flow.value);
      add_ipv4(spec.ipv4_ext.mask, flow.mask);
      demand(&rocemu_frame_fields::ip_version, 4, flow);
      return 0;
    case IBV_FLOW_SPEC_IPV6:
      if (spec.hdr.size != sizeof(spec.ipv6)) return EINVAL;
      add_ipv6(spec.ipv6.val, flow.value);
      add_ipv6(spec.ipv6.mask, flow.mask);
      demand(&rocemu_frame_fields::ip_version, 6, flow);
      return 0;
    case IBV_FLOW_SPEC_TCP:
    case IBV_FLOW_SPEC_UDP:
      if (spec.hdr.size != sizeof(spec.tcp_udp)) return EINVAL;
      add_ports(spec.tcp_udp.val, flow.value);
      add_ports(spec.tcp_udp.mask, flow.mask);
      demand(&rocemu_frame_fields::protocol,
             spec.hdr.type == IBV_FLOW_SPEC_TCP ? IPPROTO_TCP : IPPROTO_UDP, flow);
      return 0;
    default:
      return add_action(spec, flow, counters);
  }
}

// The specs stand behind `attr`, each with its size. The size of all bounds them, but where it is
// 0, as pyverbs gives it, or that of `attr` alone: libibverbs does not look at it, and programs
// that leave it so work with other devices.
int translate(const ibv_flow_attr& attr, rocemu_create_flow& flow, CounterSet*& counters) {
  if (attr.comp_mask != 0 || attr.flags != 0) return EOPNOTSUPP;
  if (attr.port != 1) return EINVAL;
  if (attr.size != 0 && attr.size < sizeof(attr)) return EINVAL;
  size_t left = attr.size > sizeof(attr) ? attr.size - sizeof(attr) : SIZE_MAX;
  flow.kind = attr.type;
  flow.priority = attr.priority;
  const auto* at = reinterpret_cast<const uint8_t*>(&attr + 1);
  for (unsigned i = 0; i < attr.num_of_specs; ++i) {
    ibv_flow_spec spec = {};
    if (left < sizeof(spec.hdr)) return EINVAL;
    memcpy(&spec.hdr, at, sizeof(spec.hdr));
    if (spec.hdr.size < sizeof(spec.hdr) || spec.hdr.size > left) return EINVAL;
    memcpy(static_cast<void*>(&spec), at, std::min<size_t>(spec.hdr.size, sizeof(spec)));
    if (const int error = add_spec(spec, flow, counters); error != 0) return error;
    at += spec.hdr.size;
    left -= spec.hdr.size;
  }
  return 0;
}

// Notes a flow more, or one less, of what it leads to and counts with.
void count(QueuePair& queue, CounterSet* counters, uint32_t by) {
  __atomic_fetch_add(&queue.flows, by, __ATOMIC_RELAXED);
  if (counters != nullptr) __atomic_fetch_add(&counters->flows, by, __ATOMIC_RELAXED);
}

int change(ibv_context* context, rocemu_op op, uint32_t handle) {
  rocemu_handle_message request = {};
  request.handle = handle;
  rocemu_handle_message reply;
  return to_context(context).call(op, request, reply);
}

}  // namespace

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr) {
  QueuePair& queue = to_queue_pair(qp);
  rocemu_create_flow request = {};
  CounterSet* counters = nullptr;
  int error = translate(*attr, request, counters);
  if (queue.scaling != nullptr) {
    address_flow(*queue.scaling, request);
  } else {
    request.qp_count = 1;
    request.qps[0] = qp->handle;
  }
  auto* flow = error == 0 ? new_object<Flow>() : nullptr;
  if (error == 0 && flow == nullptr) error = ENOMEM;
  rocemu_handle_message reply;
  if (error == 0) {
    count(queue, counters, 1);
    error = to_context(qp->context).call(ROCEMU_OP_CREATE_FLOW, request, reply);
    if (error != 0) count(queue, counters, -1u);
  }
  if (error != 0) {
    if (flow != nullptr) delete_object(flow);
    errno = error;
    return nullptr;
  }
  flow->flow.context = qp->context;
  flow->flow.handle = reply.handle;
  flow->queue = &queue;
  flow->counters = counters;
  return &flow->flow;
}

int destroy_flow(ibv_flow* flow) {
  auto* own = reinterpret_cast<Flow*>(flow);
  // Both may be destroyed as soon as the NIC has let go of them.
  count(*own->queue, own->counters, -1u);
  const int error = change(flow->context, ROCEMU_OP_DESTROY_FLOW, flow->handle);
  if (error != 0) {
    count(*own->queue, own->counters, 1);
    return error;
  }
  delete_object(own);
  return 0;
}

ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* attr) {
  auto* set = attr->comp_mask == 0 ? new_object<CounterSet>() : nullptr;
  int error = attr->comp_mask != 0 ? EOPNOTSUPP : set == nullptr ? ENOMEM : 0;
  rocemu_handle_message request = {};
  rocemu_handle_message reply;
  if (error == 0) error = to_context(context).call(ROCEMU_OP_CREATE_COUNTERS, request, reply);
  if (error != 0) {
    if (set != nullptr) delete_object(set);
    errno = error;
    return nullptr;
  }
  set->counters.context = context;
  set->handle = reply.handle;
  return &set->counters;
}

int destroy_counters(ibv_counters* counters) {
  CounterSet& set = to_set(counters);
  if (const int error = change(counters->context, ROCEMU_OP_DESTROY_COUNTERS, set.handle);
      error != 0)
    return error;
  delete_object(&set);
  return 0;
}

// Says which value stands at an index of what is read, or of which values the sum; the flow names
// its counters itself, when it is made (IBV_FLOW_SPEC_ACTION_COUNT), and not here.
int attach_counters_point_flow(ibv_counters* counters, ibv_counter_attach_attr* attr,
                               ibv_flow* flow) {
  CounterSet& set = to_set(counters);
  if (attr->comp_mask != 0 || flow != nullptr || attr->counter_desc > IBV_COUNTER_BYTES)
    return EOPNOTSUPP;
  if (attr->index >= CounterSet::kMaxIndices) return EINVAL;
  if (__atomic_load_n(&set.flows, __ATOMIC_RELAXED) != 0) return EBUSY;
  ++set.attached[attr->index][attr->counter_desc];
  set.used = std::max(set.used, attr->index + 1);
  return 0;
}

int read_counters(ibv_counters* counters, uint64_t* values, uint32_t count, uint32_t flags) {
  const CounterSet& set = to_set(counters);
  if ((flags & ~uint32_t{IBV_READ_COUNTERS_ATTR_PREFER_CACHED}) != 0 || count > set.used)
    return EINVAL;
  rocemu_handle_message request = {};
  request.handle = set.handle;
  rocemu_counters_reply reply;
  if (const int error = to_context(counters->context).call(ROCEMU_OP_READ_COUNTERS, request, reply);
      error != 0)
    return error;
  for (uint32_t i = 0; i < count; ++i)
    values[i] = set.attached[i][IBV_COUNTER_PACKETS] * reply.packets +
                set.attached[i][IBV_COUNTER_BYTES] * reply.bytes;
  return 0;
}

}  // namespace rocemu::provider
