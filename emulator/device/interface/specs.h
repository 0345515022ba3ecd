// The arguments and results of the calls of hca.h, and the handles that programs name objects by,
// with the meaning that the man page of the verb gives them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <tl/expected.hpp>
#include <vector>

#include "emulator/dma/mapped_file.h"
#include "emulator/transport/interface/rss.h"
#include "emulator/transport/interface/work.h"
#include "emulator/wire/frame_fields.h"
#include "emulator/wire/types.h"

namespace rocemu::device {

template <class T>
using Result = tl::expected<T, int>;  // int: a positive errno

using ContextId = uint32_t;
using Handle = uint32_t;

// A context's secret, by which those that its program lets join it name it.
using ContextToken = std::array<uint64_t, 2>;

// The kind of memory that a region's keys lead to.
enum class MrKind : uint8_t { program_memory, device_memory, null };

struct MrSpec {
  Handle pd = 0;
  uint32_t access = 0;  // ibv_access_flags
  uint64_t address = 0;
  uint64_t length_bytes = 0;
  uint64_t iova = 0;
  MrKind kind = MrKind::program_memory;
  Handle dm = 0;  // that of device memory; `address` is then an offset in it
  // The bytes of program memory that is mapped here; kept until the region has gone.
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

// The parts of a registration that ibv_rereg_mr(3) changes: the numbers of ibv_rereg_mr_flags.
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
  bool ignores_overrun = false;
};

struct SrqSpec {
  Handle pd = 0;
  bool xrc = false;
  bool tag_matching = false;
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
  Handle xrcd = 0;        // XRC alone
  Handle cq = 0;          // XRC and tag matching
  uint32_t max_tags = 0;  // tag matching
  uint64_t user_pointer = 0;
};

// A change of the list of a tag-matching SRQ (ibv_post_srq_ops(3)).
struct TagOp {
  uint32_t operation = 0;  // verbs::TagListOperation
  uint32_t flags = 0;      // verbs::tag_list_flag
  uint64_t wr_id = 0;
  uint32_t unexpected = 0;  // messages that the program knows of
  uint32_t handle = 0;      // the one of the buffer that is to go
  uint64_t receive_wr_id = 0;
  uint64_t tag = 0;
  uint64_t mask = 0;
  std::vector<transport::Sge> sges;
};

struct CreatedSrq {
  Handle srq = 0;
  wire::Qpn number{};  // XRC: the number by which work requests of peers name it
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
  uint32_t max_tso_header = 0;  // raw packets; 0: no TSO
  Handle srq = 0;               // 0: a receive queue of its own
  Handle xrcd = 0;              // XRC_RECV
  uint64_t user_pointer = 0;
};

// The frames that a flow is about, and where they go (ibv_create_flow(3)).
inline constexpr size_t kMaxFlowReceivers = 128;
struct FlowSpec {
  uint32_t kind = 0;  // ibv_flow_attr_type
  uint16_t priority = 0;
  wire::FrameFields value;  // the fields of a frame where `mask` has ones
  wire::FrameFields mask;
  bool drops = false;
  std::optional<uint32_t> tag;
  Handle counters = 0;      // 0: none
  std::vector<Handle> qps;  // raw packet QPs: one, or a power of two that share by `hash`
  transport::RssHash hash;
};

struct CreatedQp {
  Handle qp = 0;
  wire::Qpn qpn{};
};

// EventCounts holds how many events about a destroyed object were ever written.
struct EventCounts {
  uint32_t completion = 0;
  uint32_t async = 0;
};

struct ObjectCounts {
  uint32_t contexts = 0;
  uint32_t pds = 0;
  uint32_t mrs = 0;
  uint32_t mapped_mrs = 0;  // those of `mrs` that have a MrSpec::file
  uint32_t cqs = 0;
  uint32_t qps = 0;
  uint32_t channels = 0;
  uint32_t mws = 0;
  uint64_t dm_bytes = 0;
  uint32_t ahs = 0;
  uint32_t srqs = 0;
  uint32_t xrcds = 0;
  uint32_t flows = 0;
  uint32_t multicast_attachments = 0;
};

}  // namespace rocemu::device
