// A context and what it owns. A program's objects refer to each other; an object that is referred
// to cannot be destroyed (EBUSY), except by the end of the whole context.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/device/interface/host_interface.h"
#include "emulator/device/interface/specs.h"
#include "emulator/device/interface/taps.h"
#include "emulator/device/objects/context_addresses.h"
#include "emulator/device/objects/cq.h"
#include "emulator/device/objects/flow.h"
#include "emulator/device/objects/handle_table.h"
#include "emulator/device/objects/srq.h"
#include "emulator/device/objects/tag_matcher.h"

namespace rocemu::device {

struct Pd {
  transport::PdHandle id = 0;  // unlike handles, unique in the device
  uint32_t users = 0;
};

struct Dm {
  std::shared_ptr<DeviceMemory> memory;      // shared with those that imported it
  std::shared_ptr<dma::AddressSpace> space;  // leads to `memory`, from address 0 on
  uint32_t users = 0;
};

inline constexpr uint32_t kMaxImportedDms = 65536;  // with own ones, in a context that imports

struct Mr {
  uint32_t key = 0;
  Pd* pd = nullptr;
  Dm* dm = nullptr;  // null but for a region of device memory
  MrKind kind = MrKind::program_memory;
  std::shared_ptr<const dma::MappedFile> file;  // null but for a region that is mapped here
};

struct Mw {
  uint32_t key = 0;  // the first one
  Pd* pd = nullptr;
};

struct Context;
struct Qp;

// One opening of an XRC domain.
struct OpenXrcd {
  std::shared_ptr<Xrcd> domain;
  uint32_t users = 0;
};

// The ways of a connected QP to its peer, resolved when the program named them: an address that
// nobody has any more is no reason to refuse another change.
struct QpPaths {
  transport::Path path;
  std::shared_ptr<const transport::AlternatePath> alternate;  // null: none is loaded
};

// The part of a QP that there is once for each QP number. Contexts that share an XRC domain may
// have opened one XRC_RECV QP together (ibv_open_qp(3)); any other QP is opened once, when it is
// made.
struct QpBody {
  wire::Qpn qpn{};
  transport::Service service = transport::Service::rc;
  std::unique_ptr<WorkQueues> queues;
  std::unique_ptr<TagMatcher> tags;  // null but on a tag-matching SRQ
  std::unique_ptr<SendQueueTap> send_tap;
  QpAttr attr;
  QpPaths paths;
  std::shared_ptr<Xrcd> domain;  // XRC_RECV
  std::vector<Qp*> openings;
};

// One opening of a QP, by its context. Parts that its service does without are null.
struct Qp {
  Context* context = nullptr;
  QpSpec spec;
  std::shared_ptr<QpBody> body;
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* receive_cq = nullptr;
  Srq* srq = nullptr;
  OpenXrcd* xrcd = nullptr;
  uint32_t flows = 0;  // flows that lead to it
  uint32_t async_events_written = 0;
};

struct Context {
  Context(const PortConfig& port, HandleNumbers& numbers)
      : pds(numbers),
        mrs(numbers),
        mws(numbers),
        dms(numbers),
        channels(numbers),
        addresses(port, numbers),
        cqs(numbers),
        srqs(numbers),
        xrcds(numbers),
        qps(numbers),
        counters(numbers),
        flows(numbers) {}

  ContextId id = 0;
  uint64_t program = 0;  // the one that has it, as for Hca::open_context
  std::unique_ptr<dma::AddressSpace> memory;
  std::unique_ptr<EventChannel> async_events;
  HandleTable<Pd> pds;
  HandleTable<Mr> mrs;
  HandleTable<Mw> mws;
  HandleTable<Dm> dms;
  std::optional<ContextToken> token;
  ContextId joined = 0;  // 0: none
  HandleTable<Channel> channels;
  ContextAddresses addresses;
  HandleTable<Cq> cqs;
  HandleTable<Srq> srqs;
  HandleTable<OpenXrcd> xrcds;
  HandleTable<Qp> qps;
  uint32_t multicast_attachments = 0;  // of these
  HandleTable<Counters> counters;
  HandleTable<OpenFlow> flows;
};

}  // namespace rocemu::device
