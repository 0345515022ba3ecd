// The HCA model: one device with one port. Owns what programs make, checks what they ask, and joins
// it to the transport.
//
// The engine thread alone calls it. Every call answers at once; errors are positive errno values.
// Their meaning is that of the man page of the verb, ibv_X(3) for X() where no other source stands.
// A context cannot name another's objects, and no handle is ever another object's
// (objects/handle_table.h).
//
// Three errors mean the same everywhere, and a call says only what it adds to them:
//   ENOENT  the context, or an object that a handle names, does not exist.
//   EBUSY   (destroying calls, where they say so) other objects still refer to this one.
//   ENOMEM  (creating calls) the device's limit for such objects is reached, or the program's
//           share of it: three quarters, where there are 256 or more, of contexts, PDs, regions,
//           windows, channels, address handles and XRC domains, with all its contexts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "emulator/device/attributes/device_config.h"
#include "emulator/device/attributes/qp_attributes.h"
#include "emulator/device/hca_parts.h"
#include "emulator/device/interface/host_interface.h"
#include "emulator/device/interface/qp_report.h"
#include "emulator/device/interface/resource_report.h"
#include "emulator/device/interface/specs.h"
#include "emulator/dma/address_space.h"
#include "emulator/transport/endpoint.h"

namespace rocemu::device {

// Checks that need the configuration alone, so that the control plane can refuse before it makes
// queue memory. 0, or EINVAL when a number is 0 that may not be, or over the limit; of check_qp()
// also EOPNOTSUPP for a type that this device does not have.
int check_dm(const DeviceLimits& limits, uint64_t length_bytes);
int check_cq(const DeviceLimits& limits, const CqSpec& spec);
int check_qp(const DeviceLimits& limits, const QpSpec& spec);
int check_srq(const DeviceLimits& limits, const SrqSpec& spec);
// The request without the queues that its service or an SRQ makes needless.
QpSpec without_unused_queues(QpSpec spec);

class Hca {
 public:
  // `resolver` outlives the device.
  Hca(const HcaConfig& config, const transport::TransportLimits& limits, AddressResolver& resolver,
      const HcaParts& parts = {});
  ~Hca();
  Hca(const Hca&) = delete;
  Hca& operator=(const Hca&) = delete;

  const HcaConfig& config() const;

  // The port is now so: programs get the events that follow from the difference. QPs keep the
  // addresses they have. Never fails.
  void set_port(const PortConfig& port);

  // A context takes over the program's memory and its async event pipe. `program` is a number that
  // all its contexts have; 0: it is not known, and all such are one. ENOMEM alone.
  Result<ContextId> open_context(std::unique_ptr<dma::AddressSpace> memory,
                                 std::unique_ptr<EventChannel> async_events, uint64_t program = 0);
  // Destroys the context and all its objects. Unknown ids are ignored.
  void close_context(ContextId context);
  // Destroys up to `objects` of what the context still has; false when that was not all, and the
  // call is to be made again, or close_context() to do the rest. Users go before what they use.
  bool clear_context(ContextId context, uint32_t objects);

  // The program's memory as it opened the context; null when there is none of that id.
  const dma::AddressSpace* memory_of(ContextId context) const;

  // Objects of another context (ibv_import_device(3), ibv_import_pd(3)). The first token a context
  // is given stays; unknown ids are ignored.
  void set_token(ContextId context, const ContextToken& token);
  std::optional<ContextToken> token(ContextId context) const;
  // Imports are from the context that has `token` from now on. ENOENT: nobody has it; EALREADY: a
  // context is joined.
  int join_context(ContextId context, const ContextToken& token);
  // `there` is a handle of the joined context: ENOENT as well while none is joined.
  Result<Handle> import_pd(ContextId context, Handle there);
  // EINVAL: the region is of another protection domain than `pd`.
  Result<ImportedMr> import_mr(ContextId context, Handle pd, Handle there) const;
  // ENOMEM: the context has kMaxImportedDms.
  Result<ImportedDm> import_dm(ContextId context, Handle there);

  Result<Handle> alloc_pd(ContextId context);
  int dealloc_pd(ContextId context, Handle pd);  // EBUSY

  // EINVAL: access flags that are unknown or allow a peer to write what the program may not
  // (ibv_reg_mr(3)); a range that wraps round or is over max_mr_size; a file of another length or
  // place in a page; device memory outside of its bytes or not zero-based (ibv_alloc_dm(3)).
  Result<MrKeys> reg_mr(ContextId context, const MrSpec& spec);
  // `spec` holds the new values of what `flags` (ReregFlags) name; the keys stay. EINVAL as for
  // reg_mr(), and for unknown flags; EOPNOTSUPP: no region of program memory; EBUSY: windows are
  // bound to it. The registration is then as it was.
  Result<MrKeys> rereg_mr(ContextId context, Handle mr, uint32_t flags, const MrSpec& spec);
  // A region of the context or of the one that it has joined. EBUSY while windows are bound to it.
  int dereg_mr(ContextId context, Handle mr);
  // Looks whether `length_bytes` from `iova` on of an on-demand region may be prefetched, for
  // writing or not; answers their address in the program. ENOENT: no such region; EFAULT: outside
  // of it; EPERM: it may not be written, or is another PD's (ibv_advise_mr(3)).
  Result<uint64_t> check_prefetch(ContextId context, Handle pd, wire::LKey lkey, uint64_t iova,
                                  uint64_t length_bytes, bool for_writing) const;

  // `type` is of ibv_mw_type: EINVAL for others. The keys have no lkey.
  Result<MrKeys> alloc_mw(ContextId context, Handle pd, uint32_t type);
  int dealloc_mw(ContextId context, Handle mw);
  // EINVAL as for check_dm(); ENOMEM: not so much is left of max_dm_size.
  Result<Handle> alloc_dm(ContextId context, std::unique_ptr<DeviceMemory> memory);
  int free_dm(ContextId context, Handle dm);  // EBUSY while regions of it are registered

  // ibv_create_comp_channel(3).
  Result<Handle> create_channel(ContextId context, std::unique_ptr<EventChannel> channel);
  int destroy_channel(ContextId context, Handle channel);  // EBUSY
  // EINVAL as for check_cq().
  Result<Handle> create_cq(ContextId context, const CqSpec& spec,
                           std::unique_ptr<CompletionRing> ring);
  // Completions that the program has not taken go over to `ring`. EINVAL as well: it does not hold
  // them, or the program has taken some meanwhile. EINPROGRESS: there are many, and the call is to
  // be made again in another turn. `ring` is taken when it succeeds, and stays the caller's else.
  int resize_cq(ContextId context, Handle cq, TimeNs now, std::unique_ptr<CompletionRing>& ring);
  int moderate_cq(ContextId context, Handle cq, const CqModeration& moderation);  // ibv_modify_cq
  Result<EventCounts> destroy_cq(ContextId context, Handle cq);                   // EBUSY

  // EINVAL and EOPNOTSUPP as for check_qp(); EINVAL as well: a part that the service needs is not
  // named, or one is that it has no use for. EOPNOTSUPP as well: of raw packets on a port that does
  // not carry them.
  Result<CreatedQp> create_qp(ContextId context, const QpSpec& spec,
                              std::unique_ptr<WorkQueues> queues);
  // Answers the state after the change. EINVAL: `cur_qp_state` is wrong, there is no such
  // transition or it does not take these attributes (IBTA vol 1, 11.2.5.2, table 91), or a value is
  // out of range; EHOSTUNREACH: nobody has the peer's address. The QP is then as it was.
  Result<transport::QpState> modify_qp(ContextId context, Handle qp, uint32_t attr_mask,
                                       const QpAttr& attr);
  // ibv_modify_qp_rate_limit(3); a rate of 0 ends it, as does RESET. EINVAL as well: the QP has no
  // send queue, is in RESET or ERROR, or the rate is over kMaxRateKbps.
  int limit_qp_rate(ContextId context, Handle qp, const transport::RateLimit& limit);
  Result<QpAttr> query_qp(ContextId context, Handle qp) const;
  Result<wire::Qpn> qp_number(ContextId context, Handle qp) const;
  // Tells whose QP it is and what it was set to, whoever asks; its state is the one last asked for.
  // Empty: there is none of that number.
  std::optional<QpDescription> describe_qp(wire::Qpn qpn) const;
  Result<EventCounts> destroy_qp(ContextId context,
                                 Handle qp);  // EBUSY in a multicast group or flow

  // hca_ah.cc. EINVAL: no global address of this port's network; EHOSTUNREACH: nobody has it.
  Result<Handle> create_ah(ContextId context, Handle pd, const AhAttr& attr);
  int destroy_ah(ContextId context, Handle ah);

  // hca_multicast.cc: ibv_attach_mcast(3). EINVAL: no UD QP, no multicast address, or, to detach,
  // not attached. Attaching twice is no error.
  int attach_multicast(ContextId context, Handle qp, const wire::Gid& group);
  int detach_multicast(ContextId context, Handle qp, const wire::Gid& group);

  // hca_flows.cc: ibv_create_flow(3), ibv_create_counters(3). EINVAL as well: the flow's kind, its
  // fields or the number of its QPs is wrong, or one of them takes no raw packets. ENOMEM also when
  // the context has its share.
  Result<Handle> create_flow(ContextId context, const FlowSpec& spec);
  int destroy_flow(ContextId context, Handle flow);
  Result<Handle> create_counters(ContextId context);
  int destroy_counters(ContextId context, Handle counters);  // EBUSY
  Result<transport::FlowCounters> read_counters(ContextId context, Handle counters) const;

  // hca_srq.cc: ibv_create_srq(3), ibv_modify_srq(3). EINVAL as for check_srq().
  Result<CreatedSrq> create_srq(ContextId context, const SrqSpec& spec,
                                std::unique_ptr<ReceiveRing> ring);
  // Receives that wait go over to `ring`, which holds `max_wr`. EINVAL: that is 0, over the
  // device's limit or under the SRQ's, or fewer than wait. EINPROGRESS as for resize_cq().
  int resize_srq(ContextId context, Handle srq, uint32_t max_wr,
                 std::unique_ptr<ReceiveRing>& ring);
  // ibv_post_srq_ops(3): the handle of what was added, or 0. EINVAL: no tag-matching SRQ, unknown
  // operations or flags, a buffer longer than max_msg_size. ENOMEM: it has max_tags.
  Result<uint32_t> change_tags(ContextId context, Handle srq, const TagOp& op);
  int set_srq_limit(ContextId context, Handle srq, uint32_t limit);  // EINVAL: over max_wr
  Result<uint32_t> srq_limit(ContextId context, Handle srq) const;
  Result<EventCounts> destroy_srq(ContextId context, Handle srq);  // EBUSY

  // hca_xrc.cc: ibv_open_xrcd(3), with the errors of Linux (ib_uverbs_open_xrcd). EAGAIN: the file
  // has no domain and none is to be made; EINVAL: it has one and the caller wants to be the first,
  // or there is no file and none is to be made.
  Result<Handle> open_xrcd(ContextId context, const XrcdSpec& spec);
  int close_xrcd(ContextId context, Handle xrcd);  // EBUSY
  // Another handle for an XRC_RECV QP: EINVAL when the domain has none of that number.
  Result<CreatedQp> open_qp(ContextId context, Handle xrcd, wire::Qpn qpn, uint64_t user_pointer);

  // The data path: frames, doorbells, timers.
  transport::Endpoint& endpoint();
  // Counts of one QP since it was made. ENOENT alone.
  Result<transport::Counters> qp_counters(ContextId context, Handle qp) const;
  // To be called after every call into endpoint() and before the engine sleeps: makes completions
  // visible and sends the events that programs wait for. True when an event could not be written
  // and the call has to be repeated soon.
  bool publish_completions(TimeNs now);
  // True when something waits for it that came about otherwise than by a frame: a completion of a
  // request that sends nothing.
  bool has_news() const;
  // The time at which publish_completions() is to be called again because events are held back;
  // kNever: none are.
  TimeNs next_held_event() const;

  ObjectCounts counts() const;
  // The QPs' reports by number; where there are more than `most` QPs, some of them.
  std::vector<QpReport> report_qps(TimeNs now, size_t most) const;
  // hca_inventory.cc: up to `most` objects of a kind, from a place on. An object that is there from
  // the first page to the last is on one of them, and on two where its table grew meanwhile.
  ResourcePage list_resources(ResourceKind kind, ResourceCursor from, size_t most) const;
  // Counts of a QP, whoever has it, since it was made. Empty: there is none of that number.
  std::optional<transport::Counters> counters_of(wire::Qpn qpn) const;

 private:
  friend class FaultAccess;  // fault_access.h
  friend class TraceAccess;  // trace_access.h

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocemu::device
