// The HCA model: one device with one port. Owns what programs make, checks what they ask, and joins
// it to the transport.
//
// The engine thread alone calls it. Every call answers at once; errors are positive errno values as
// the man page of the verb names them. Handles are numbers of one context; a context cannot name
// another's objects.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "base/time.h"
#include "emulator/device/attributes.h"
#include "emulator/device/qp_attributes.h"
#include "emulator/device/queues.h"
#include "emulator/dma/address_space.h"
#include "emulator/dma/mapped_file.h"
#include "emulator/transport/endpoint.h"

namespace rocemu::device {

template <class T>
using Result = tl::expected<T, int>;  // int: a positive errno

using ContextId = uint32_t;
using Handle = uint32_t;

// Who has an address: the answer decides the frames' destination.
class AddressResolver {
 public:
  virtual ~AddressResolver() = default;
  // False when nobody has `gid`.
  virtual bool resolve(const wire::Gid& gid, wire::MacAddress& mac) noexcept = 0;
};

// Device memory: the bytes themselves, which the program sees as well.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual std::span<std::byte> bytes() noexcept = 0;
  // What a program maps; valid as long as this is there.
  virtual int descriptor() const noexcept = 0;
};

// What a context is known by to those that its program lets join it.
using ContextToken = std::array<uint64_t, 2>;

// What a region's keys lead to.
enum class MrKind : uint8_t { program_memory, device_memory, null };

struct MrSpec {
  Handle pd = 0;
  uint32_t access = 0;  // ibv_access_flags
  uint64_t address = 0;
  uint64_t length_bytes = 0;
  uint64_t iova = 0;
  MrKind kind = MrKind::program_memory;
  Handle dm = 0;  // of device memory; `address` is then an offset in it
  // Of program memory that is mapped here: its bytes. Kept until the region has gone.
  std::shared_ptr<const dma::MappedFile> file = nullptr;
};

struct ImportedMr {
  wire::LKey lkey{};
  wire::RKey rkey{};
  uint64_t length_bytes = 0;
};

struct ImportedDm {
  Handle dm = 0;
  uint64_t length_bytes = 0;
  int descriptor = -1;  // the memory's
};

// What ibv_rereg_mr(3) changes: the numbers of ibv_rereg_mr_flags.
enum ReregFlags : uint32_t {
  kChangeTranslation = 1,
  kChangePd = 2,
  kChangeAccess = 4,
};

struct MrKeys {
  Handle mr = 0;
  wire::LKey lkey{};
  wire::RKey rkey{};
};

struct CqSpec {
  uint32_t cqe = 0;
  Handle channel = 0;  // 0: none
  uint32_t comp_vector = 0;
  uint64_t user_pointer = 0;
};

struct SrqSpec {
  Handle pd = 0;
  bool xrc = false;
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
  Handle xrcd = 0;  // XRC alone, as is the CQ
  Handle cq = 0;
  uint64_t user_pointer = 0;
};

struct CreatedSrq {
  Handle srq = 0;
  wire::Qpn number{};  // XRC: what work requests of peers name
};

// A file, wherever it is opened.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

struct XrcdSpec {
  std::optional<FileIdentity> file;
  std::shared_ptr<void> file_hold;  // keeps the file's identity from passing to another
  bool create = false;
  bool exclusive = false;
};

struct QpSpec {
  Handle pd = 0;
  Handle send_cq = 0;
  Handle receive_cq = 0;
  uint32_t type = 0;  // ibv_qp_type
  uint32_t max_send_wr = 0;
  uint32_t max_recv_wr = 0;
  uint32_t max_send_sge = 0;
  uint32_t max_recv_sge = 0;
  uint32_t max_inline_data = 0;
  Handle srq = 0;   // 0: a receive queue of its own
  Handle xrcd = 0;  // XRC_RECV
  uint64_t user_pointer = 0;
};

struct CreatedQp {
  Handle qp = 0;
  wire::Qpn qpn{};
};

// How many events about a destroyed object were ever written.
struct EventCounts {
  uint32_t completion = 0;
  uint32_t async = 0;
};

struct ObjectCounts {
  uint32_t contexts = 0;
  uint32_t pds = 0;
  uint32_t mrs = 0;
  uint32_t mapped_mrs = 0;  // of these: MrSpec::file
  uint32_t cqs = 0;
  uint32_t qps = 0;
  uint32_t channels = 0;
  uint32_t mws = 0;
  uint64_t dm_bytes = 0;
  uint32_t ahs = 0;
  uint32_t srqs = 0;
  uint32_t xrcds = 0;
};

// Checks that need the configuration alone, so that the control plane can refuse before it makes
// queue memory. 0 or an errno.
int check_dm(const DeviceLimits& limits, uint64_t length_bytes);
int check_cq(const DeviceLimits& limits, const CqSpec& spec);
int check_qp(const DeviceLimits& limits, const QpSpec& spec);
int check_srq(const DeviceLimits& limits, const SrqSpec& spec);
// The request without the queues that its service or an SRQ makes needless.
QpSpec without_unused_queues(QpSpec spec);

class Hca {
 public:
  Hca(const HcaConfig& config, const transport::TransportLimits& limits, AddressResolver& resolver);
  ~Hca();
  Hca(const Hca&) = delete;
  Hca& operator=(const Hca&) = delete;

  const HcaConfig& config() const;

  // The port is now so: programs get the events that follow from the difference. QPs keep the
  // addresses they have.
  void set_port(const PortConfig& port);

  // A context takes over the program's memory and its async event pipe.
  Result<ContextId> open_context(std::unique_ptr<dma::AddressSpace> memory,
                                 std::unique_ptr<EventChannel> async_events);
  // Destroys the context and all its objects. Unknown ids are ignored.
  void close_context(ContextId context);

  // The first token a context is given stays. Joining: ENOENT nobody has it, EALREADY. Objects of
  // the joined context are then imported by their handles there: EINVAL when there are none.
  void set_token(ContextId context, const ContextToken& token);
  std::optional<ContextToken> token(ContextId context) const;
  int join_context(ContextId context, const ContextToken& token);
  Result<Handle> import_pd(ContextId context, Handle there);
  Result<ImportedMr> import_mr(ContextId context, Handle pd, Handle there) const;
  Result<ImportedDm> import_dm(ContextId context, Handle there);

  Result<Handle> alloc_pd(ContextId context);
  int dealloc_pd(ContextId context, Handle pd);
  Result<MrKeys> reg_mr(ContextId context, const MrSpec& spec);
  // `spec` holds the new values of what `flags` (ReregFlags) name.
  Result<MrKeys> rereg_mr(ContextId context, Handle mr, uint32_t flags, const MrSpec& spec);
  int dereg_mr(ContextId context, Handle mr);  // EBUSY while windows are bound to it
  // Looks whether `length_bytes` from `iova` on of an on-demand region may be prefetched, for
  // writing or not; answers their address in the program. ENOENT no such region, EFAULT outside of
  // it, EPERM it may not be written (ibv_advise_mr(3)).
  Result<uint64_t> check_prefetch(ContextId context, Handle pd, wire::LKey lkey, uint64_t iova,
                                  uint64_t length_bytes, bool for_writing) const;
  Result<MrKeys> alloc_mw(ContextId context, Handle pd, uint32_t type);  // ibv_mw_type; no lkey
  int dealloc_mw(ContextId context, Handle mw);
  Result<Handle> alloc_dm(ContextId context, std::unique_ptr<DeviceMemory> memory);
  int free_dm(ContextId context, Handle dm);  // EBUSY while regions of it are registered
  Result<Handle> create_channel(ContextId context, std::unique_ptr<EventChannel> channel);
  int destroy_channel(ContextId context, Handle channel);
  Result<Handle> create_cq(ContextId context, const CqSpec& spec,
                           std::unique_ptr<CompletionRing> ring);
  // What the program has not taken goes over to `ring`. EINVAL when that does not hold it.
  int resize_cq(ContextId context, Handle cq, TimeNs now, std::unique_ptr<CompletionRing> ring);
  int moderate_cq(ContextId context, Handle cq, const CqModeration& moderation);
  Result<EventCounts> destroy_cq(ContextId context, Handle cq);
  Result<CreatedQp> create_qp(ContextId context, const QpSpec& spec,
                              std::unique_ptr<WorkQueues> queues);
  // The state after the change.
  Result<transport::QpState> modify_qp(ContextId context, Handle qp, uint32_t attr_mask,
                                       const QpAttr& attr);
  Result<QpAttr> query_qp(ContextId context, Handle qp) const;
  Result<EventCounts> destroy_qp(ContextId context, Handle qp);

  // hca_ah.cc: EINVAL no global address of this port's network; EHOSTUNREACH nobody has it.
  Result<Handle> create_ah(ContextId context, Handle pd, const AhAttr& attr);
  int destroy_ah(ContextId context, Handle ah);
  // hca_multicast.cc: EINVAL no UD QP or no multicast address.
  int attach_multicast(ContextId context, Handle qp, const wire::Gid& group);
  int detach_multicast(ContextId context, Handle qp, const wire::Gid& group);
  // hca_srq.cc
  Result<CreatedSrq> create_srq(ContextId context, const SrqSpec& spec,
                                std::unique_ptr<ReceiveRing> ring);
  // What waits goes over to `ring`, which holds `max_wr`. EINVAL that is over the device's limit or
  // under the SRQ's, or fewer than wait.
  int resize_srq(ContextId context, Handle srq, uint32_t max_wr, std::unique_ptr<ReceiveRing> ring);
  int set_srq_limit(ContextId context, Handle srq, uint32_t limit);
  Result<uint32_t> srq_limit(ContextId context, Handle srq) const;
  Result<EventCounts> destroy_srq(ContextId context, Handle srq);
  // hca_xrc.cc: the errors are those of Linux: EAGAIN there is none and none is to be made, EINVAL
  // there is one and the caller wants to be the first.
  Result<Handle> open_xrcd(ContextId context, const XrcdSpec& spec);
  int close_xrcd(ContextId context, Handle xrcd);
  // Another handle for an XRC_RECV QP of the domain.
  Result<CreatedQp> open_qp(ContextId context, Handle xrcd, wire::Qpn qpn, uint64_t user_pointer);

  // The data path: frames, doorbells, timers.
  transport::Endpoint& endpoint();
  // To be called after every call into endpoint() and before the engine sleeps: makes completions
  // visible and sends the events that programs wait for. True when an event could not be written
  // and the call has to be repeated soon.
  bool publish_completions(TimeNs now);
  // Whether something waits for it that came about otherwise than by a frame: a completion of a
  // request that sends nothing.
  bool has_news() const;
  // When it is to be called again because events of moderated CQs are held back; kNever: they are
  // not.
  TimeNs next_held_event() const;

  ObjectCounts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocemu::device
