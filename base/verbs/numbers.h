// The numbers of verbs and of librdmacm: part of the ABI between programs and whatever stands in
// the kernel's place, and therefore the same everywhere. Names are those of infiniband/verbs.h and
// rdma/rdma_cma.h without their prefixes; the product includes neither, a test compares.
#pragma once

#include <cstdint>

namespace rocemu::verbs {

// enum ibv_qp_type
namespace qp_type {
inline constexpr uint8_t kRc = 2;
inline constexpr uint8_t kUc = 3;
inline constexpr uint8_t kUd = 4;
inline constexpr uint8_t kRawPacket = 8;
inline constexpr uint8_t kXrcSend = 9;
inline constexpr uint8_t kXrcReceive = 10;
inline constexpr uint8_t kDriver = 0xff;  // the last of them
}  // namespace qp_type

// enum ibv_qp_state
enum class QpState : uint8_t {
  reset = 0,
  init = 1,
  ready_to_receive = 2,
  ready_to_send = 3,
  send_queue_drain = 4,
  send_queue_error = 5,
  error = 6,
};

// enum ibv_qp_attr_mask: which attributes of a QP a change names.
namespace qp_attribute {
enum Mask : uint32_t {
  kState = 1u << 0,
  kCurState = 1u << 1,
  kEnSqdAsyncNotify = 1u << 2,
  kAccessFlags = 1u << 3,
  kPkeyIndex = 1u << 4,
  kPort = 1u << 5,
  kQkey = 1u << 6,
  kAv = 1u << 7,
  kPathMtu = 1u << 8,
  kTimeout = 1u << 9,
  kRetryCount = 1u << 10,
  kRnrRetry = 1u << 11,
  kRqPsn = 1u << 12,
  kMaxQpRdAtomic = 1u << 13,
  kAltPath = 1u << 14,
  kMinRnrTimer = 1u << 15,
  kSqPsn = 1u << 16,
  kMaxDestRdAtomic = 1u << 17,
  kPathMigState = 1u << 18,
  kCap = 1u << 19,
  kDestQpn = 1u << 20,
  kRateLimit = 1u << 25,
};
}  // namespace qp_attribute

// enum ibv_mig_state
enum class MigrationState : uint8_t { migrated = 0, rearm = 1, armed = 2 };

// enum ibv_access_flags: rights of a region, a window or a QP.
namespace access {
inline constexpr uint32_t kLocalRead = 0;  // every region grants it
inline constexpr uint32_t kLocalWrite = 1u << 0;
inline constexpr uint32_t kRemoteWrite = 1u << 1;
inline constexpr uint32_t kRemoteRead = 1u << 2;
inline constexpr uint32_t kRemoteAtomic = 1u << 3;
inline constexpr uint32_t kWindowBind = 1u << 4;
inline constexpr uint32_t kZeroBased = 1u << 5;
inline constexpr uint32_t kOnDemand = 1u << 6;
inline constexpr uint32_t kHugePages = 1u << 7;
inline constexpr uint32_t kFlushGlobal = 1u << 8;
inline constexpr uint32_t kFlushPersistent = 1u << 9;
inline constexpr uint32_t kOptionalRange = 0x3ff00000;  // hints, which may be ignored
}  // namespace access

// enum ibv_rereg_mr_flags
enum ReregFlags : uint32_t {
  kChangeTranslation = 1,
  kChangePd = 2,
  kChangeAccess = 4,
};

// enum ibv_mw_type
enum class WindowType : uint8_t { none = 0, type_1 = 1, type_2 = 2 };

// enum ibv_wr_opcode
namespace wr_opcode {
inline constexpr uint8_t kRdmaWrite = 0;
inline constexpr uint8_t kRdmaWriteWithImm = 1;
inline constexpr uint8_t kSend = 2;
inline constexpr uint8_t kSendWithImm = 3;
inline constexpr uint8_t kRdmaRead = 4;
inline constexpr uint8_t kAtomicCmpAndSwp = 5;
inline constexpr uint8_t kAtomicFetchAndAdd = 6;
inline constexpr uint8_t kLocalInv = 7;
inline constexpr uint8_t kBindMw = 8;
inline constexpr uint8_t kSendWithInv = 9;
inline constexpr uint8_t kTso = 10;
inline constexpr uint8_t kFlush = 14;
inline constexpr uint8_t kAtomicWrite = 15;
}  // namespace wr_opcode

// enum ibv_placement_type and enum ibv_selectivity_level: what a FLUSH is for, and of what.
namespace placement {
inline constexpr uint8_t kGlobal = 1u << 0;
inline constexpr uint8_t kPersistent = 1u << 1;
}  // namespace placement
enum class Selectivity : uint8_t { range = 0, region = 1 };

// enum ibv_wc_status
enum class WcStatus : uint8_t {
  success = 0,
  local_length_error = 1,
  local_qp_operation_error = 2,
  local_protection_error = 4,
  flush_error = 5,
  window_bind_error = 6,
  bad_response_error = 7,
  local_access_error = 8,
  remote_invalid_request_error = 9,
  remote_access_error = 10,
  remote_operation_error = 11,
  retry_exceeded_error = 12,
  rnr_retry_exceeded_error = 13,
  general_error = 21,
  tm_error = 22,
  tm_rendezvous_incomplete = 23,
};

// enum ibv_wc_opcode
enum class WcOpcode : uint8_t {
  send = 0,
  rdma_write = 1,
  rdma_read = 2,
  compare_swap = 3,
  fetch_add = 4,
  bind_window = 5,
  local_invalidate = 6,
  tso = 7,
  flush = 8,
  atomic_write = 9,
  receive = 128,
  receive_rdma_with_imm = 129,
  tm_add = 130,
  tm_delete = 131,
  tm_sync = 132,
  tm_receive = 133,
  tm_no_tag = 134,
};

// enum ibv_tmh_op
enum class TagOperation : uint8_t { no_tag = 0, rendezvous = 1, finish = 2, eager = 3 };

// enum ibv_ops_wr_opcode and enum ibv_ops_flags
enum class TagListOperation : uint8_t { add = 0, remove = 1, sync = 2 };
namespace tag_list_flag {
inline constexpr uint32_t kSignaled = 1u << 0;
inline constexpr uint32_t kSync = 1u << 1;
}  // namespace tag_list_flag

// enum ibv_wc_flags
namespace wc_flag {
inline constexpr uint16_t kGrh = 1u << 0;
inline constexpr uint16_t kWithImm = 1u << 1;
inline constexpr uint16_t kWithInv = 1u << 3;
inline constexpr uint8_t kTmSyncRequest = 1u << 4;
inline constexpr uint8_t kTmMatch = 1u << 5;
inline constexpr uint8_t kTmDataValid = 1u << 6;
}  // namespace wc_flag

// enum ibv_event_type
namespace async_event {
inline constexpr uint8_t kCqError = 0;
inline constexpr uint8_t kQpFatal = 1;
inline constexpr uint8_t kQpRequestError = 2;
inline constexpr uint8_t kQpAccessError = 3;
inline constexpr uint8_t kCommunicationEstablished = 4;
inline constexpr uint8_t kSendQueueDrained = 5;
inline constexpr uint8_t kPathMigrated = 6;
inline constexpr uint8_t kPathMigrationError = 7;
inline constexpr uint8_t kDeviceFatal = 8;
inline constexpr uint8_t kPortActive = 9;
inline constexpr uint8_t kPortError = 10;
inline constexpr uint8_t kSrqLimitReached = 15;
inline constexpr uint8_t kQpLastWqeReached = 16;
inline constexpr uint8_t kGidChange = 18;
}  // namespace async_event

// enum ibv_device_cap_flags, and above it what ibv_query_device_ex adds.
namespace device_cap {
inline constexpr uint64_t kAutomaticPathMigration = 1u << 4;
inline constexpr uint64_t kCurrQpStateMod = 1u << 7;
inline constexpr uint64_t kSysImageGuid = 1u << 11;
inline constexpr uint64_t kRcRnrNakGen = 1u << 12;
inline constexpr uint64_t kSrqResize = 1u << 13;
inline constexpr uint64_t kMemoryWindow = 1u << 17;
inline constexpr uint64_t kXrc = 1u << 20;
inline constexpr uint64_t kMemoryManagement = 1u << 21;  // local invalidate, SEND with invalidate
inline constexpr uint64_t kMemoryWindowType2b = 1u << 24;
inline constexpr uint64_t kManagedFlowSteering = 1u << 29;
inline constexpr uint64_t kFlushGlobal = uint64_t{1} << 38;  // IB_UVERBS_DEVICE_FLUSH_GLOBAL
inline constexpr uint64_t kAtomicWrite = uint64_t{1} << 40;  // IB_UVERBS_DEVICE_ATOMIC_WRITE
}  // namespace device_cap

inline constexpr uint32_t kAtomicHca = 1;  // enum ibv_atomic_cap

// enum ibv_odp_general_caps and enum ibv_odp_transport_cap_bits
namespace odp {
inline constexpr uint64_t kSupport = 1u << 0;
inline constexpr uint64_t kSupportImplicit = 1u << 1;
inline constexpr uint32_t kSend = 1u << 0;
inline constexpr uint32_t kReceive = 1u << 1;
inline constexpr uint32_t kWrite = 1u << 2;
inline constexpr uint32_t kRead = 1u << 3;
inline constexpr uint32_t kAtomic = 1u << 4;
inline constexpr uint32_t kSrqReceive = 1u << 5;
inline constexpr uint32_t kFlush = 1u << 6;
inline constexpr uint32_t kAtomicWrite = 1u << 7;
}  // namespace odp

// enum ibv_port_state, enum ibv_port_cap_flags
inline constexpr uint32_t kPortDown = 1;
inline constexpr uint32_t kPortActive = 4;
inline constexpr uint32_t kPortCmSup = 1u << 16;
inline constexpr uint32_t kPortIpBasedGids = 1u << 26;

inline constexpr uint32_t kMtu4096 = 5;  // enum ibv_mtu: 256 is 1
constexpr uint32_t mtu_bytes(uint32_t mtu) { return 128u << mtu; }

// enum rdma_port_space
namespace port_space {
inline constexpr uint16_t kIpoib = 0x0002;
inline constexpr uint16_t kTcp = 0x0106;
inline constexpr uint16_t kUdp = 0x0111;
inline constexpr uint16_t kIb = 0x013f;
}  // namespace port_space

inline constexpr uint32_t kRdmaUdpQkey = 0x01234567;

// enum rdma_cm_event_type
enum class CmEventType : uint32_t {
  address_resolved = 0,
  address_error = 1,
  route_resolved = 2,
  route_error = 3,
  connect_request = 4,
  connect_response = 5,
  connect_error = 6,
  unreachable = 7,
  rejected = 8,
  established = 9,
  disconnected = 10,
  device_removal = 11,
  multicast_join = 12,
  multicast_error = 13,
  address_change = 14,
  timewait_exit = 15,
  // Of a program's own, by rdma_write_cm_event(3) and rdma_resolve_addrinfo(3).
  user = 18,
  internal = 19,
};

}  // namespace rocemu::verbs
