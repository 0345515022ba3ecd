#include "emulator/wire/cm_message.h"

#include <cstring>

#include "base/byte_order.h"

namespace rocemu::wire {
namespace {

constexpr uint8_t kBaseVersion = 1;
constexpr uint8_t kCmClass = 0x07;
constexpr uint8_t kCmClassVersion = 2;
constexpr uint8_t kMethodSend = 0x03;

enum Attribute : uint16_t {
  kReq = 0x10,
  kMra = 0x11,
  kRej = 0x12,
  kRep = 0x13,
  kRtu = 0x14,
  kDreq = 0x15,
  kDrep = 0x16,
  kSidrReq = 0x17,
  kSidrRep = 0x18,
  kLap = 0x19,
  kApr = 0x1a,
};

// Offsets are from the beginning of the MAD. Every message but the SIDR ones begins so.
constexpr size_t kLocalId = 24;
constexpr size_t kRemoteId = 28;

uint8_t bits(uint32_t value, unsigned shift, unsigned count) {
  return static_cast<uint8_t>(value >> shift & ((1u << count) - 1));
}

template <size_t n>
void load_bytes(const std::byte* from, std::array<std::byte, n>& to) {
  std::memcpy(to.data(), from, n);
}
template <size_t n>
void store_bytes(std::byte* to, const std::array<std::byte, n>& from) {
  std::memcpy(to, from.data(), n);
}

CmPath load_path(const std::byte* p) {
  CmPath path;
  path.local_lid = load_be16(p);
  path.remote_lid = load_be16(p + 2);
  std::memcpy(path.local_gid.bytes.data(), p + 4, 16);
  std::memcpy(path.remote_gid.bytes.data(), p + 20, 16);
  path.flow_label = load_be32(p + 36) >> 12;
  path.packet_rate = bits(load_u8(p + 39), 0, 6);
  path.traffic_class = load_u8(p + 40);
  path.hop_limit = load_u8(p + 41);
  path.sl = bits(load_u8(p + 42), 4, 4);
  path.subnet_local = bits(load_u8(p + 42), 3, 1) != 0;
  path.local_ack_timeout = bits(load_u8(p + 43), 3, 5);
  return path;
}

void store_path(std::byte* p, const CmPath& path) {
  store_be16(p, path.local_lid);
  store_be16(p + 2, path.remote_lid);
  std::memcpy(p + 4, path.local_gid.bytes.data(), 16);
  std::memcpy(p + 20, path.remote_gid.bytes.data(), 16);
  store_be32(p + 36, path.flow_label << 12 | (path.packet_rate & 0x3fu));
  store_u8(p + 40, path.traffic_class);
  store_u8(p + 41, path.hop_limit);
  store_u8(p + 42, static_cast<uint32_t>(path.sl << 4 | (path.subnet_local ? 8 : 0)));
  store_u8(p + 43, static_cast<uint32_t>(path.local_ack_timeout << 3));
}

CmReq load_req(const std::byte* m) {
  CmReq req;
  req.local_comm_id = load_be32(m + 24);
  req.service_id = load_be64(m + 32);
  req.local_ca_guid = load_be64(m + 40);
  req.local_qkey = load_be32(m + 52);
  req.local_qpn.value = load_be24(m + 56);
  req.responder_resources = load_u8(m + 59);
  req.local_eecn = load_be24(m + 60);
  req.initiator_depth = load_u8(m + 63);
  req.remote_eecn = load_be24(m + 64);
  req.remote_cm_response_timeout = bits(load_u8(m + 67), 3, 5);
  req.transport = static_cast<CmTransport>(bits(load_u8(m + 67), 1, 2));
  req.end_to_end_flow_control = bits(load_u8(m + 67), 0, 1) != 0;
  req.starting_psn = Psn(load_be24(m + 68));
  req.local_cm_response_timeout = bits(load_u8(m + 71), 3, 5);
  req.retry_count = bits(load_u8(m + 71), 0, 3);
  req.pkey = load_be16(m + 72);
  req.path_mtu = bits(load_u8(m + 74), 4, 4);
  req.rdc_exists = bits(load_u8(m + 74), 3, 1) != 0;
  req.rnr_retry_count = bits(load_u8(m + 74), 0, 3);
  req.max_cm_retries = bits(load_u8(m + 75), 4, 4);
  req.srq = bits(load_u8(m + 75), 3, 1) != 0;
  req.extended_transport = bits(load_u8(m + 75), 0, 3);
  req.primary = load_path(m + 76);
  req.alternate = load_path(m + 120);
  load_bytes(m + 164, req.private_data);
  return req;
}

void store(std::byte* m, const CmReq& req) {
  store_be32(m + 24, req.local_comm_id);
  store_be64(m + 32, req.service_id);
  store_be64(m + 40, req.local_ca_guid);
  store_be32(m + 52, req.local_qkey);
  store_be24(m + 56, req.local_qpn.value);
  store_u8(m + 59, req.responder_resources);
  store_be24(m + 60, req.local_eecn);
  store_u8(m + 63, req.initiator_depth);
  store_be24(m + 64, req.remote_eecn);
  store_u8(m + 67, static_cast<uint32_t>(req.remote_cm_response_timeout << 3 |
                                         static_cast<int>(req.transport) << 1 |
                                         (req.end_to_end_flow_control ? 1 : 0)));
  store_be24(m + 68, req.starting_psn.value());
  store_u8(m + 71,
           static_cast<uint32_t>(req.local_cm_response_timeout << 3 | (req.retry_count & 7)));
  store_be16(m + 72, req.pkey);
  store_u8(m + 74, static_cast<uint32_t>(req.path_mtu << 4 | (req.rdc_exists ? 8 : 0) |
                                         (req.rnr_retry_count & 7)));
  store_u8(m + 75, static_cast<uint32_t>(req.max_cm_retries << 4 | (req.srq ? 8 : 0) |
                                         (req.extended_transport & 7)));
  store_path(m + 76, req.primary);
  store_path(m + 120, req.alternate);
  store_bytes(m + 164, req.private_data);
}

CmRep load_rep(const std::byte* m) {
  CmRep rep;
  rep.local_comm_id = load_be32(m + kLocalId);
  rep.remote_comm_id = load_be32(m + kRemoteId);
  rep.local_qkey = load_be32(m + 32);
  rep.local_qpn.value = load_be24(m + 36);
  rep.local_eecn = load_be24(m + 40);
  rep.starting_psn = Psn(load_be24(m + 44));
  rep.responder_resources = load_u8(m + 48);
  rep.initiator_depth = load_u8(m + 49);
  rep.target_ack_delay = bits(load_u8(m + 50), 3, 5);
  rep.failover_accepted = bits(load_u8(m + 50), 1, 2);
  rep.end_to_end_flow_control = bits(load_u8(m + 50), 0, 1) != 0;
  rep.rnr_retry_count = bits(load_u8(m + 51), 5, 3);
  rep.srq = bits(load_u8(m + 51), 4, 1) != 0;
  rep.local_ca_guid = load_be64(m + 52);
  load_bytes(m + 60, rep.private_data);
  return rep;
}

void store(std::byte* m, const CmRep& rep) {
  store_be32(m + kLocalId, rep.local_comm_id);
  store_be32(m + kRemoteId, rep.remote_comm_id);
  store_be32(m + 32, rep.local_qkey);
  store_be24(m + 36, rep.local_qpn.value);
  store_be24(m + 40, rep.local_eecn);
  store_be24(m + 44, rep.starting_psn.value());
  store_u8(m + 48, rep.responder_resources);
  store_u8(m + 49, rep.initiator_depth);
  store_u8(m + 50,
           static_cast<uint32_t>(rep.target_ack_delay << 3 | (rep.failover_accepted & 3) << 1 |
                                 (rep.end_to_end_flow_control ? 1 : 0)));
  store_u8(m + 51, static_cast<uint32_t>(rep.rnr_retry_count << 5 | (rep.srq ? 0x10 : 0)));
  store_be64(m + 52, rep.local_ca_guid);
  store_bytes(m + 60, rep.private_data);
}

// RTU and DREP: two ids and private data.
template <class Message>
Message load_ids_and_data(const std::byte* m) {
  Message message;
  message.local_comm_id = load_be32(m + kLocalId);
  message.remote_comm_id = load_be32(m + kRemoteId);
  load_bytes(m + 32, message.private_data);
  return message;
}

template <class Message>
void store_ids(std::byte* m, const Message& message) {
  store_be32(m + kLocalId, message.local_comm_id);
  store_be32(m + kRemoteId, message.remote_comm_id);
}

void store(std::byte* m, const CmRtu& rtu) {
  store_ids(m, rtu);
  store_bytes(m + 32, rtu.private_data);
}

void store(std::byte* m, const CmDrep& drep) {
  store_ids(m, drep);
  store_bytes(m + 32, drep.private_data);
}

CmRej load_rej(const std::byte* m) {
  CmRej rej;
  rej.local_comm_id = load_be32(m + kLocalId);
  rej.remote_comm_id = load_be32(m + kRemoteId);
  rej.subject = static_cast<CmSubject>(bits(load_u8(m + 32), 6, 2));
  rej.info_bytes = bits(load_u8(m + 33), 1, 7);
  rej.reason = load_be16(m + 34);
  load_bytes(m + 36, rej.info);
  load_bytes(m + 108, rej.private_data);
  return rej;
}

void store(std::byte* m, const CmRej& rej) {
  store_ids(m, rej);
  store_u8(m + 32, static_cast<uint32_t>(static_cast<int>(rej.subject) << 6));
  store_u8(m + 33, static_cast<uint32_t>(rej.info_bytes << 1));
  store_be16(m + 34, rej.reason);
  store_bytes(m + 36, rej.info);
  store_bytes(m + 108, rej.private_data);
}

CmDreq load_dreq(const std::byte* m) {
  CmDreq dreq;
  dreq.local_comm_id = load_be32(m + kLocalId);
  dreq.remote_comm_id = load_be32(m + kRemoteId);
  dreq.remote_qpn.value = load_be24(m + 32);
  load_bytes(m + 36, dreq.private_data);
  return dreq;
}

void store(std::byte* m, const CmDreq& dreq) {
  store_ids(m, dreq);
  store_be24(m + 32, dreq.remote_qpn.value);
  store_bytes(m + 36, dreq.private_data);
}

CmMra load_mra(const std::byte* m) {
  CmMra mra;
  mra.local_comm_id = load_be32(m + kLocalId);
  mra.remote_comm_id = load_be32(m + kRemoteId);
  mra.subject = static_cast<CmSubject>(bits(load_u8(m + 32), 6, 2));
  mra.service_timeout = bits(load_u8(m + 33), 3, 5);
  load_bytes(m + 34, mra.private_data);
  return mra;
}

void store(std::byte* m, const CmMra& mra) {
  store_ids(m, mra);
  store_u8(m + 32, static_cast<uint32_t>(static_cast<int>(mra.subject) << 6));
  store_u8(m + 33, static_cast<uint32_t>(mra.service_timeout << 3));
  store_bytes(m + 34, mra.private_data);
}

CmSidrReq load_sidr_req(const std::byte* m) {
  CmSidrReq req;
  req.request_id = load_be32(m + 24);
  req.pkey = load_be16(m + 28);
  req.service_id = load_be64(m + 32);
  load_bytes(m + 40, req.private_data);
  return req;
}

void store(std::byte* m, const CmSidrReq& req) {
  store_be32(m + 24, req.request_id);
  store_be16(m + 28, req.pkey);
  store_be64(m + 32, req.service_id);
  store_bytes(m + 40, req.private_data);
}

CmSidrRep load_sidr_rep(const std::byte* m) {
  CmSidrRep rep;
  rep.request_id = load_be32(m + 24);
  rep.status = load_u8(m + 28);
  rep.info_bytes = load_u8(m + 29);
  rep.qpn.value = load_be24(m + 32);
  rep.service_id = load_be64(m + 36);
  rep.qkey = load_be32(m + 44);
  load_bytes(m + 48, rep.info);
  load_bytes(m + 120, rep.private_data);
  return rep;
}

void store(std::byte* m, const CmSidrRep& rep) {
  store_be32(m + 24, rep.request_id);
  store_u8(m + 28, rep.status);
  store_u8(m + 29, rep.info_bytes);
  store_be24(m + 32, rep.qpn.value);
  store_be64(m + 36, rep.service_id);
  store_be32(m + 44, rep.qkey);
  store_bytes(m + 48, rep.info);
  store_bytes(m + 120, rep.private_data);
}

CmLap load_lap(const std::byte* m) {
  return {load_be32(m + kLocalId), load_be32(m + kRemoteId), Qpn{load_be24(m + 36)}};
}

void store(std::byte* m, const CmLap& lap) {
  store_ids(m, lap);
  store_be24(m + 36, lap.remote_qpn.value);
}

CmApr load_apr(const std::byte* m) {
  return {load_be32(m + kLocalId), load_be32(m + kRemoteId), load_u8(m + 33)};
}

void store(std::byte* m, const CmApr& apr) {
  store_ids(m, apr);
  store_u8(m + 33, apr.status);
}

uint16_t attribute_of(const CmReq&) { return kReq; }
uint16_t attribute_of(const CmRep&) { return kRep; }
uint16_t attribute_of(const CmRtu&) { return kRtu; }
uint16_t attribute_of(const CmRej&) { return kRej; }
uint16_t attribute_of(const CmDreq&) { return kDreq; }
uint16_t attribute_of(const CmDrep&) { return kDrep; }
uint16_t attribute_of(const CmMra&) { return kMra; }
uint16_t attribute_of(const CmSidrReq&) { return kSidrReq; }
uint16_t attribute_of(const CmSidrRep&) { return kSidrRep; }
uint16_t attribute_of(const CmLap&) { return kLap; }
uint16_t attribute_of(const CmApr&) { return kApr; }

}  // namespace

CmParseError parse_cm(std::span<const std::byte> mad, CmMessage& message) {
  if (mad.size() != kMadBytes) return CmParseError::wrong_length;
  const std::byte* const m = mad.data();
  const MadHeader header = load_mad_header(m);
  if (header.base_version != kBaseVersion || header.management_class != kCmClass ||
      header.class_version != kCmClassVersion || header.method != kMethodSend)
    return CmParseError::not_cm;
  message.transaction_id = header.transaction_id;
  switch (header.attribute_id) {
    case kReq:
      message.body = load_req(m);
      return CmParseError::none;
    case kRep:
      message.body = load_rep(m);
      return CmParseError::none;
    case kRtu:
      message.body = load_ids_and_data<CmRtu>(m);
      return CmParseError::none;
    case kRej:
      message.body = load_rej(m);
      return CmParseError::none;
    case kDreq:
      message.body = load_dreq(m);
      return CmParseError::none;
    case kDrep:
      message.body = load_ids_and_data<CmDrep>(m);
      return CmParseError::none;
    case kMra:
      message.body = load_mra(m);
      return CmParseError::none;
    case kSidrReq:
      message.body = load_sidr_req(m);
      return CmParseError::none;
    case kSidrRep:
      message.body = load_sidr_rep(m);
      return CmParseError::none;
    case kLap:
      message.body = load_lap(m);
      return CmParseError::none;
    case kApr:
      message.body = load_apr(m);
      return CmParseError::none;
    default:
      return CmParseError::unknown_attribute;
  }
}

MadBytes build_cm(const CmMessage& message) {
  MadBytes mad{};
  std::visit(
      [&](const auto& body) {
        store_mad_header(mad.data(), {.base_version = kBaseVersion,
                                      .management_class = kCmClass,
                                      .class_version = kCmClassVersion,
                                      .method = kMethodSend,
                                      .transaction_id = message.transaction_id,
                                      .attribute_id = attribute_of(body)});
        store(mad.data(), body);
      },
      message.body);
  return mad;
}

}  // namespace rocemu::wire
