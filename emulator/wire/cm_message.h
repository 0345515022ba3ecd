// Messages of the communication manager (IBTA vol 1, 12.6 to 12.11) as values in host order. A MAD
// is parsed once; what has been parsed has every field in its range. Reserved fields are not looked
// at and are sent as zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "emulator/wire/mad.h"
#include "emulator/wire/types.h"

namespace rocemu::wire {

// Reasons of a REJ (table 99 and annexes).
namespace cm_reject {
inline constexpr uint16_t kNoQp = 1;
inline constexpr uint16_t kNoResources = 3;
inline constexpr uint16_t kTimeout = 4;
inline constexpr uint16_t kUnsupportedRequest = 5;
inline constexpr uint16_t kInvalidCommId = 6;
inline constexpr uint16_t kInvalidServiceId = 8;
inline constexpr uint16_t kInvalidTransportType = 9;
inline constexpr uint16_t kStaleConnection = 10;
inline constexpr uint16_t kInvalidMtu = 26;
inline constexpr uint16_t kConsumerDefined = 28;
inline constexpr uint16_t kVendorOptionNotSupported = 35;
}  // namespace cm_reject

// CmSubject says what a REJ or an MRA is about.
enum class CmSubject : uint8_t { req = 0, rep = 1, other = 2 };

// Transport service types of a REQ.
enum class CmTransport : uint8_t { rc = 0, uc = 1, rd = 2, extended = 3 };

struct CmPath {
  uint16_t local_lid = 0;
  uint16_t remote_lid = 0;
  Gid local_gid{};
  Gid remote_gid{};
  uint32_t flow_label = 0;  // 20 bits
  uint8_t packet_rate = 0;  // 6 bits
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  uint8_t sl = 0;  // 4 bits
  bool subnet_local = false;
  uint8_t local_ack_timeout = 0;  // 4.096 us * 2^n
};

struct CmReq {
  uint32_t local_comm_id = 0;
  uint64_t service_id = 0;
  uint64_t local_ca_guid = 0;
  uint32_t local_qkey = 0;
  Qpn local_qpn{};
  uint8_t responder_resources = 0;
  uint32_t local_eecn = 0;
  uint8_t initiator_depth = 0;
  uint32_t remote_eecn = 0;
  uint8_t remote_cm_response_timeout = 0;  // 4.096 us * 2^n, as all of the timeouts here
  CmTransport transport = CmTransport::rc;
  bool end_to_end_flow_control = false;
  Psn starting_psn{};  // whoever gets this message begins to send at it (12.7, Starting PSN)
  uint8_t local_cm_response_timeout = 0;
  uint8_t retry_count = 0;
  uint16_t pkey = 0;
  uint8_t path_mtu = 0;  // enum ibv_mtu, 4 bits
  bool rdc_exists = false;
  uint8_t rnr_retry_count = 0;
  uint8_t max_cm_retries = 0;
  bool srq = false;
  uint8_t extended_transport = 0;
  CmPath primary{};
  CmPath alternate{};
  std::array<std::byte, 92> private_data{};
};

struct CmRep {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t local_qkey = 0;
  Qpn local_qpn{};
  uint32_t local_eecn = 0;
  Psn starting_psn{};  // as in the REQ
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t target_ack_delay = 0;
  uint8_t failover_accepted = 0;
  bool end_to_end_flow_control = false;
  uint8_t rnr_retry_count = 0;
  bool srq = false;
  uint64_t local_ca_guid = 0;
  std::array<std::byte, 196> private_data{};
};

// The QP that a REP is of: an XRC target has it where others have an EE context, as Linux'
// cm_format_rep() writes it.
inline Qpn qpn_of(const CmRep& rep, CmTransport transport) {
  return transport == CmTransport::extended ? Qpn{rep.local_eecn} : rep.local_qpn;
}

struct CmRtu {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  std::array<std::byte, 224> private_data{};
};

struct CmRej {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  CmSubject subject = CmSubject::other;
  uint8_t info_bytes = 0;  // 7 bits
  uint16_t reason = 0;
  std::array<std::byte, 72> info{};  // additional reject information
  std::array<std::byte, 148> private_data{};
};

struct CmDreq {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  Qpn remote_qpn{};
  std::array<std::byte, 220> private_data{};
};

struct CmDrep {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  std::array<std::byte, 224> private_data{};
};

struct CmMra {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  CmSubject subject = CmSubject::other;
  uint8_t service_timeout = 0;
  std::array<std::byte, 222> private_data{};
};

struct CmSidrReq {
  uint32_t request_id = 0;
  uint16_t pkey = 0;
  uint64_t service_id = 0;
  std::array<std::byte, 216> private_data{};
};

// Statuses of a SIDR REP (table 119).
namespace cm_sidr {
inline constexpr uint8_t kValid = 0;
inline constexpr uint8_t kUnsupported = 1;
inline constexpr uint8_t kRejected = 2;
}  // namespace cm_sidr

struct CmSidrRep {
  uint32_t request_id = 0;
  uint8_t status = 0;
  uint8_t info_bytes = 0;
  Qpn qpn{};
  uint64_t service_id = 0;
  uint32_t qkey = 0;
  std::array<std::byte, 72> info{};
  std::array<std::byte, 136> private_data{};
};

// Loading an alternate path, of which only what an answer needs is kept.
struct CmLap {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  Qpn remote_qpn{};
};

struct CmApr {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint8_t status = 0;  // table 117
};
inline constexpr uint8_t kAprUnsupported = 2;

struct CmMessage {
  uint64_t transaction_id = 0;
  std::variant<CmReq, CmRep, CmRtu, CmRej, CmDreq, CmDrep, CmMra, CmSidrReq, CmSidrRep, CmLap,
               CmApr>
      body;
};

enum class CmParseError : uint8_t {
  none,
  wrong_length,       // not 256 bytes
  not_cm,             // another management class, version or method
  unknown_attribute,  // no message of the CM
};

CmParseError parse_cm(std::span<const std::byte> mad, CmMessage& message);
MadBytes build_cm(const CmMessage& message);

}  // namespace rocemu::wire
