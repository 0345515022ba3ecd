// Makes what verb_table calls verbs with, and tells what came of a call.
#pragma once

#include <cerrno>
#include <functional>
#include <span>
#include <string>

#include "tests/e2e/tools/verbs_objects.h"

namespace rocemu::e2e {

inline constexpr unsigned kRemoteAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
inline constexpr unsigned kAccess = kRemoteAccess | IBV_ACCESS_MW_BIND;

// Bench is what the verbs are called with: a device opened, and one of each basic object, with an
// RC QP that is connected to itself.
struct Bench {
  Device device;
  Memory memory{8192};
  MrPtr mr;
  ChannelPtr channel;
  CqPtr cq;
  QpPtr qp;

  explicit Bench(const std::string& name) : device(open_device(name, 1)) {
    mr = register_memory(pd(), memory.data(), memory.bytes(), kAccess);
    channel.reset(ibv_create_comp_channel(context()));
    cq.reset(ibv_create_cq(context(), 64, nullptr, channel.get(), 0));
    qp.reset(make_qp(IBV_QPT_RC));
    if (qp == nullptr) throw std::runtime_error("ibv_create_qp fails");
    RcOptions options;
    options.access = kRemoteAccess;
    connect_one(qp.get(), device, options, device.gid, device.port.lid, qp->qp_num);
  }
  ibv_context* context() const { return device.context.get(); }
  ibv_pd* pd() const { return device.pd.get(); }

  ibv_qp* make_qp(ibv_qp_type type) const {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {4, 4, 1, 1, 0};
    init.qp_type = type;
    return ibv_create_qp(pd(), &init);
  }
  ibv_sge sge() const { return {memory.address(), 64, mr->lkey}; }
};

template <typename T>
int outcome(T* object) {
  return object != nullptr ? 0 : errno;
}
// And gives the object back.
template <typename T, typename Destroy>
int outcome(T* object, Destroy destroy) {
  if (object == nullptr) return errno;
  return destroy(object);
}

// A verb by its name in the table, and a correct call of it: 0 or an errno value.
struct Probe {
  const char* verb;
  std::function<int(const Bench&)> call;
};

std::span<const Probe> memory_probes();
std::span<const Probe> queue_probes();
std::span<const Probe> request_probes();

// Posts the request, with so many bytes of the memory unless it has no data, and a receive if it
// takes one; 0 when all of it has completed.
int post_and_poll(const Bench& b, ibv_send_wr wr, bool takes_receive, uint32_t bytes = 64);

}  // namespace rocemu::e2e
