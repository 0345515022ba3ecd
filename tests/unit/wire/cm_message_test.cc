// Messages of the communication manager, held against what Linux rxe sent (tests/data/rxe-pcaps).
#include "emulator/wire/cm_message.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "emulator/wire/cma_header.h"
#include "emulator/wire/packet.h"
#include "tests/unit/data.h"
#include "tests/unit/wire/pcap_file.h"

namespace rocemu::wire {
namespace {

const std::filesystem::path kCaptures = rocemu::test::data_folder() / "rxe-pcaps";

std::vector<MadBytes> mads_of(const std::filesystem::path& file) {
  std::vector<MadBytes> mads;
  for (const test::Frame& frame : test::read_pcap(file)) {
    Packet packet;
    REQUIRE(parse_frame(frame, packet) == ParseError::none);
    if (packet.bth.destination_qp != kGsiQpn) continue;
    CHECK(packet.ext.deth.qkey == kGsiQkey);
    REQUIRE(packet.payload.size() == kMadBytes);
    mads.emplace_back();
    std::copy(packet.payload.begin(), packet.payload.end(), mads.back().begin());
  }
  return mads;
}

template <class Body>
Body body_of(const MadBytes& mad) {
  CmMessage message;
  REQUIRE(parse_cm(mad, message) == CmParseError::none);
  REQUIRE(std::holds_alternative<Body>(message.body));
  return std::get<Body>(message.body);
}

TEST_CASE("Every MAD of rxe parses, and building it again gives the same bytes") {
  std::map<size_t, int> kinds;
  size_t total = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCaptures)) {
    if (entry.path().extension() != ".pcap") continue;
    INFO(entry.path());
    for (const MadBytes& mad : mads_of(entry.path())) {
      CmMessage message;
      REQUIRE(parse_cm(mad, message) == CmParseError::none);
      CHECK(build_cm(message) == mad);
      ++kinds[message.body.index()];
      ++total;
    }
  }
  CHECK(total == 26);
  CHECK(kinds.size() == 8);  // REQ REP RTU REJ DREQ DREP SIDR_REQ SIDR_REP
}

TEST_CASE("A REQ of rxe, field by field, and its CMA header") {
  const CmReq req = body_of<CmReq>(mads_of(kCaptures / "cm-rping.pcap").at(0));
  CHECK(req.local_comm_id == 0x72e006a4);
  CHECK(req.service_id == ip_cm_service_id(0x0106, 0x1c06));
  CHECK(req.local_ca_guid == 0x505400fffe770002);
  CHECK(req.local_qpn == Qpn{0x22});
  CHECK(req.responder_resources == 1);
  CHECK(req.initiator_depth == 1);
  CHECK(req.remote_cm_response_timeout == 20);
  CHECK(req.local_cm_response_timeout == 20);
  CHECK(req.transport == CmTransport::rc);
  CHECK_FALSE(req.end_to_end_flow_control);
  CHECK(req.starting_psn == Psn(0x1498e9));
  CHECK(req.retry_count == 7);
  CHECK(req.pkey == 0xffff);
  CHECK(req.path_mtu == 5);
  CHECK(req.rnr_retry_count == 7);
  CHECK(req.max_cm_retries == 15);
  CHECK_FALSE(req.srq);
  CHECK(req.primary.local_lid == 0xffff);
  CHECK(req.primary.remote_gid.ipv4() == Ipv4Address{192, 168, 77, 3});
  CHECK(req.primary.flow_label == 0x53b96);
  CHECK(req.primary.hop_limit == 64);
  CHECK(req.primary.local_ack_timeout == 19);

  CmaHeader header;
  REQUIRE(parse_cma_header(req.private_data, header));
  CHECK_FALSE(header.ipv6);
  CHECK(header.source_port == 0xae70);
  CHECK(header.source.ipv4() == Ipv4Address{192, 168, 77, 2});
  CHECK(header.destination.is_ipv4_mapped());
  CHECK(header.destination.ipv4() == Ipv4Address{192, 168, 77, 3});
  std::array<std::byte, kCmaHeaderBytes> again{};
  build_cma_header(header, again);
  CHECK(std::memcmp(again.data(), req.private_data.data(), again.size()) == 0);
}

TEST_CASE("A CMA header over IPv6, and versions that are none") {
  CmReq req = body_of<CmReq>(mads_of(kCaptures / "cm-rping-ipv6.pcap").at(0));
  CmaHeader header;
  REQUIRE(parse_cma_header(req.private_data, header));
  CHECK(header.ipv6);
  CHECK(header.source.bytes[0] == 0xfe);
  req.private_data[1] = std::byte{0x50};
  CHECK_FALSE(parse_cma_header(req.private_data, header));
  req.private_data[1] = std::byte{0x40};
  req.private_data[0] = std::byte{1};
  CHECK_FALSE(parse_cma_header(req.private_data, header));
}

TEST_CASE("REP, REJ and SIDR REP of rxe") {
  const CmRep rep = body_of<CmRep>(mads_of(kCaptures / "cm-rping.pcap").at(1));
  CHECK(rep.remote_comm_id == 0x72e006a4);
  CHECK(rep.starting_psn == Psn(0xc43ec2));
  CHECK(rep.target_ack_delay == 15);
  CHECK(rep.rnr_retry_count == 7);
  CHECK(rep.local_ca_guid == 0x505400fffe770003);
  const CmRej rej = body_of<CmRej>(mads_of(kCaptures / "cm-reject.pcap").at(1));
  CHECK(rej.reason == cm_reject::kInvalidServiceId);
  CHECK(rej.subject == CmSubject::req);
  const CmSidrRep sidr = body_of<CmSidrRep>(mads_of(kCaptures / "cm-udaddy-sidr.pcap").at(1));
  CHECK(sidr.status == cm_sidr::kValid);
  CHECK(sidr.qpn == Qpn{0x25});
  CHECK(sidr.qkey == 0x01234567);
}

template <class Body>
void round_trip(const Body& body) {
  const MadBytes mad = build_cm({0x1234, body});
  CmMessage again;
  REQUIRE(parse_cm(mad, again) == CmParseError::none);
  CHECK(again.transaction_id == 0x1234);
  CHECK(std::holds_alternative<Body>(again.body));
  CHECK(build_cm(again) == mad);
}

TEST_CASE("What no capture shows comes back as it was built") {
  CmMra mra{1, 2, CmSubject::rep, 24, {}};
  mra.private_data.back() = std::byte{9};
  round_trip(mra);
  round_trip(CmLap{1, 2, Qpn{0xabcdef}});
  round_trip(CmApr{1, 2, kAprUnsupported});
  CmRej rej;
  rej.info_bytes = 72;
  rej.info.fill(std::byte{0xa5});
  round_trip(rej);
}

TEST_CASE("What is no message of the CM is refused") {
  MadBytes mad = build_cm({1, CmRtu{}});
  CmMessage message;
  CHECK(parse_cm(std::span(mad).first(255), message) == CmParseError::wrong_length);
  for (const size_t at : {0u, 1u, 2u, 3u}) {
    MadBytes other = mad;
    other[at] ^= std::byte{1};
    CHECK(parse_cm(other, message) == CmParseError::not_cm);
  }
  mad[17] = std::byte{0x1b};
  CHECK(parse_cm(mad, message) == CmParseError::unknown_attribute);
}

}  // namespace
}  // namespace rocemu::wire
