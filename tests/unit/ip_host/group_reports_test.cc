#include "dpdk_io/ip_host/group_reports.h"

#include <catch2/catch.hpp>

#include "base/time.h"
#include "tests/unit/ip_host/sample_host.h"

namespace rocemu::dpdk_io {
namespace {

constexpr std::string_view kIgmpV3Query =
    "01005e000001020000000002080046c000240001000001023a100a000002e0000001940400001114eeeb0000000000"
    "000000";
constexpr std::string_view kIgmpV2Query =
    "01005e0000010200000000020800460000200001000001023ad40a000002e0000001940400001114eeeb00000000";
constexpr std::string_view kIgmpV3Join =
    "01005e000016020000000001080046c00028000040000102f9f80a000001e0000016940400002200e8f90000000104"
    "000000ef"
    "010203";
constexpr std::string_view kMldV2Query =
    "33330000000102000000000286dd6000000000240001fe800000000000000000000000000002ff0200000000000000"
    "000000000000"
    "013a0005020000010082007c3a03e800000000000000000000000000000000000000000000";
constexpr std::string_view kMldV1Query =
    "33330000000102000000000286dd6000000000200001fe800000000000000000000000000002ff0200000000000000"
    "000000000000"
    "013a0005020000010082007c3e03e8000000000000000000000000000000000000";
constexpr std::string_view kMldV2Join =
    "33330000001602000000000186dd6000000000240001fe80000000000000000000fffe000001ff0200000000000000"
    "000000000000"
    "163a000502000001008f0070fb0000000104000000ff0e0000000000000000000000010002";
constexpr std::string_view kMldV1Report =
    "33330001000202000000000186dd6000000000200001fe80000000000000000000fffe000001ff0e00000000000000"
    "000000000100"
    "023a000502000001008300810700000000ff0e0000000000000000000000010002";

struct Member {
  explicit Member(const char* source)
      : reports(kOwnMac, ip(source), 7, [this](Frame frame) { sent.push_back(std::move(frame)); }) {
    reports.announce(0);
  }

  void ask(TimeNs now, std::string_view query) {
    const Frame frame = from_hex(query);
    reports.on_packet(now, parse_ip(frame).value());
  }
  std::vector<Frame> take() { return std::exchange(sent, {}); }
  // Time goes on until nothing is due.
  TimeNs settle() {
    TimeNs last = 0;
    while (reports.next_deadline() != kNever) reports.on_timeout(last = reports.next_deadline());
    return last;
  }

  std::vector<Frame> sent;
  GroupReports reports;
};

}  // namespace

TEST_CASE("who joins says so, and once more; who leaves says so") {
  Member igmp("10.0.0.1");
  igmp.reports.set(0, {ip("239.1.2.3"), ip("ff0e::1:2")});
  CHECK(igmp.take() == Frames{padded(from_hex(kIgmpV3Join))});
  CHECK(igmp.settle() <= kSecond);
  CHECK(igmp.take().size() == 1);
  igmp.reports.set(0, {});
  const std::vector<Frame> leaving = igmp.take();
  REQUIRE(leaving.size() == 1);
  CHECK(leaving[0][kEthernetBytes + 24 + 8] == 3);  // to include nobody
  CHECK(igmp.settle() == 0);

  Member mld("fe80::ff:fe00:1");
  mld.reports.set(0, {ip("239.1.2.3"), ip("ff0e::1:2")});
  CHECK(mld.take() == Frames{padded(from_hex(kMldV2Join))});
}

TEST_CASE("a query is answered in its version, within its time") {
  Member igmp("10.0.0.1");
  igmp.reports.set(0, {ip("239.1.2.3")});
  igmp.settle();
  igmp.take();
  igmp.ask(10 * kSecond, kIgmpV3Query);
  CHECK(igmp.settle() <= 12 * kSecond);
  std::vector<Frame> answer = igmp.take();
  REQUIRE(answer.size() == 1);
  CHECK(answer[0][kEthernetBytes + 24] == 0x22);
  CHECK(answer[0][kEthernetBytes + 24 + 8] == 2);  // is in
  igmp.ask(20 * kSecond, kIgmpV2Query);
  igmp.settle();
  answer = igmp.take();
  REQUIRE(answer.size() == 1);
  CHECK(answer[0][kEthernetBytes + 24] == 0x16);
  CHECK(destination_of(answer[0]) == group_mac(ip("239.1.2.3")));

  Member mld("fe80::ff:fe00:1");
  mld.reports.set(0, {ip("ff0e::1:2")});
  mld.settle();
  mld.take();
  mld.ask(10 * kSecond, kMldV2Query);
  CHECK(mld.settle() <= 11 * kSecond);
  CHECK(mld.take().size() == 1);
  mld.ask(20 * kSecond, kMldV1Query);
  mld.settle();
  CHECK(mld.take() == Frames{from_hex(kMldV1Report)});
}

TEST_CASE("queries bring no more than ten reports a second") {
  Member igmp("10.0.0.1");
  igmp.reports.set(0, {ip("239.1.2.3")});
  igmp.settle();
  igmp.take();
  for (TimeNs now = 10 * kSecond; now < 11 * kSecond; now += 1'000'000) {
    igmp.ask(now, kIgmpV3Query);
    igmp.reports.on_timeout(now);
  }
  CHECK(igmp.take().size() <= 11);
}

TEST_CASE("who is in no group has nothing to report") {
  Member igmp("10.0.0.1");
  igmp.ask(0, kIgmpV3Query);
  CHECK(igmp.reports.next_deadline() == kNever);
}

}  // namespace rocemu::dpdk_io
