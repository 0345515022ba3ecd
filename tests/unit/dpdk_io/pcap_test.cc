#include "dpdk_io/port/pcap.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/dpdk_io/pcap_file.h"

namespace rocemu::dpdk_io {
namespace {

constexpr uint32_t kLinkTypeEthernet = 1;
constexpr uint64_t kTime_ns = 1'700'000'000'123'456'789;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

TEST_CASE("frames and their nanoseconds are in the file after flush") {
  const TemporaryCapture file;
  PcapWriter writer(file.path());
  const std::string long_frame(4210, 'x');
  writer.write(bytes_of("a frame of 21 bytes.."), kTime_ns);
  writer.write(bytes_of(long_frame), kTime_ns + 1);
  writer.flush();

  const PcapFile written = read_pcap(file.path());
  CHECK(written.link_type == kLinkTypeEthernet);
  REQUIRE(written.frames.size() == 2);
  CHECK(written.frames[0].realtime_ns == kTime_ns);
  CHECK(written.frames[0].bytes == "a frame of 21 bytes..");
  CHECK(written.frames[1].realtime_ns == kTime_ns + 1);
  CHECK(written.frames[1].bytes == long_frame);
  CHECK(writer.frames_written() == 2);
  CHECK(writer.errors() == 0);
}

TEST_CASE("frames are in the file after the writer is gone") {
  const TemporaryCapture file;
  { PcapWriter(file.path()).write(bytes_of("a frame of 21 bytes.."), kTime_ns); }
  CHECK(read_pcap(file.path()).frames.size() == 1);
}

TEST_CASE("a frame longer than the snap length is cut and keeps its length") {
  const TemporaryCapture file;
  { PcapWriter(file.path(), 64).write(bytes_of(std::string(100, 'y')), kTime_ns); }
  const PcapFile written = read_pcap(file.path());
  CHECK(written.snaplen == 64);
  REQUIRE(written.frames.size() == 1);
  CHECK(written.frames[0].length_bytes == 100);
  CHECK(written.frames[0].bytes == std::string(64, 'y'));
}

TEST_CASE("a full disk is reported once, and ends the recording") {
  std::vector<std::string> reports;
  {
    PcapWriter writer("/dev/full", PcapWriter::kWholeFrames,
                      [&](const std::string& message) { reports.push_back(message); });
    const std::string frame(4000, 'z');
    for (int i = 0; i < 1000; ++i) writer.write(bytes_of(frame), kTime_ns);
    writer.flush();
    CHECK(writer.errors() > 0);
    CHECK(writer.frames_written() + writer.errors() == 1000);
  }
  REQUIRE(reports.size() == 1);
  CHECK_THAT(reports[0], Catch::Contains("/dev/full") && Catch::Contains("No space left"));
}

TEST_CASE("a disk that is full at flush is reported as well") {
  int reports = 0;
  PcapWriter writer("/dev/full", PcapWriter::kWholeFrames, [&](const std::string&) { ++reports; });
  writer.write(bytes_of("a frame of 21 bytes.."), kTime_ns);
  CHECK(reports == 0);
  writer.flush();
  writer.flush();
  CHECK(reports == 1);
}

TEST_CASE("a recording ends at its limit, with whole frames, and says so once") {
  TemporaryCapture file;
  std::vector<std::string> reports;
  {
    PcapWriter writer(
        file.path(), PcapWriter::kWholeFrames,
        [&](const std::string& message) { reports.push_back(message); }, 3 * (100 + 16) + 50);
    for (int i = 0; i < 10; ++i) writer.write(bytes_of(std::string(100, 'y')), kTime_ns);
    CHECK(writer.frames_written() == 3);
    CHECK(writer.errors() == 7);
    CHECK(read_pcap(file.path()).frames.size() == 3);
  }
  CHECK(read_pcap(file.path()).frames.size() == 3);
  REQUIRE(reports.size() == 1);
  CHECK_THAT(reports[0], Catch::EndsWith("it has reached its limit; recording has ended"));
}

TEST_CASE("a capture that cannot begin says why") {
  CHECK_THROWS_WITH(PcapWriter("/no/such/directory/x.pcap"),
                    Catch::Contains("/no/such/directory/x.pcap: No such file or directory"));
  CHECK_THROWS_WITH(PcapWriter("/dev/null", 0), Catch::Contains("0 bytes per frame"));
}

}  // namespace rocemu::dpdk_io
