// Files of traces, written, read back, and spoilt.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/read_file.h"
#include "emulator/trace/format/reader.h"
#include "emulator/trace/format/writer.h"

namespace rocemu::trace {

namespace {

using Catch::Contains;

class TraceFile {
 public:
  TraceFile() {
    char name[] = "/tmp/rocemu-trace-XXXXXX";
    descriptor_ = UniqueFd(::mkstemp(name));
    path_ = name;
  }
  ~TraceFile() { std::filesystem::remove(path_); }

  UniqueFd take_descriptor() { return std::move(descriptor_); }
  const std::string& path() const { return path_; }
  void put(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string bytes() const { return read_file(path_).value(); }

 private:
  std::string path_;
  UniqueFd descriptor_;
};

Header header() { return make_header(Clock::monotonic, 1000, 2000, "rocemud 0.1.0"); }

Record packet(uint64_t time_ns, uint32_t psn) {
  Record record;
  record.time_ns = time_ns;
  record.kind = Kind::packet_sent;
  record.device = 0;
  record.qpn = 0x11;
  record.psn = psn;
  return record;
}

std::string file_of(const Header& header, const std::vector<Record>& records) {
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  for (const Record& record : records)
    bytes.append(reinterpret_cast<const char*>(&record), sizeof record);
  return bytes;
}

// What load() says to these bytes; empty when it takes them.
std::string complaint(const std::string& bytes, uint64_t max_records = kDefaultMaxRecords) {
  TraceFile file;
  file.put(bytes);
  try {
    load(file.path(), max_records);
  } catch (const TraceError& error) {
    CHECK_THAT(error.what(), Contains(file.path()));
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("trace file: what is written is read, by time") {
  TraceFile file;
  Writer writer(file.take_descriptor(), header(), 1 << 20);
  CHECK(writer.append(name_records(Table::device, 0, "rocemu0", 4096)));
  const Record records[] = {packet(30, 3), packet(10, 1), packet(20, 2), packet(20, 9)};
  CHECK(writer.append(records));
  Record lost;
  lost.kind = Kind::lost;
  lost.time_ns = 40;
  lost.value = 5;
  writer.finish(lost);
  CHECK(writer.state() == Writer::State::open);

  const Trace trace = load(file.path());
  CHECK(trace.header.start_ns == 1000);
  CHECK(trace.header.start_unix_ns == 2000);
  CHECK(std::string(trace.header.creator) == "rocemud 0.1.0");
  CHECK(trace.names.text(Table::device, 0) == "rocemu0");
  std::vector<uint32_t> psns;
  for (const Record& record : trace.records) psns.push_back(record.psn);
  CHECK(psns == std::vector<uint32_t>{1, 2, 9, 3, 0});
  CHECK(trace.lost == 5);
  CHECK(!trace.is_cut_short);
}

TEST_CASE("trace file: a record of two events is read as two") {
  Record taken = packet(5000, 0);
  taken.kind = Kind::taken;
  taken.wr_id = 7;
  taken.value = 0x1000;
  taken.code = 4;
  taken.flags = flag::kPosted | flag::kTimeIsNics | flag::kSignaled;
  taken.count = 3000;
  Record lie = taken;  // it says that it was posted before time began
  lie.time_ns = 10;
  TraceFile file;
  file.put(file_of(header(), {taken, lie}));
  const Trace trace = load(file.path());
  REQUIRE(trace.records.size() == 4);
  CHECK(trace.records[0].time_ns == 0);
  const Record& first = trace.records[2];
  const Record& second = trace.records[3];
  CHECK(first.kind == Kind::posted);
  CHECK(first.time_ns == 2000);
  CHECK(first.wr_id == 7);
  CHECK(first.value == 0);
  CHECK(first.code == 0);
  CHECK(first.flags == (flag::kTimeIsNics | flag::kSignaled));
  CHECK(second.kind == Kind::taken);
  CHECK(second.time_ns == 5000);
  CHECK(second.value == 0x1000);
  CHECK(second.flags == flag::kSignaled);
  CHECK(second.count == 0);
}

TEST_CASE("trace file: its size is bounded, and the last record always fits") {
  TraceFile file;
  Writer writer(file.take_descriptor(), header(), sizeof(Header) + 2 * sizeof(Record) + 1);
  const Record records[] = {packet(1, 1), packet(2, 2), packet(3, 3)};
  CHECK(!writer.append(records));
  CHECK(writer.state() == Writer::State::full);
  CHECK(!writer.append(records));
  CHECK(writer.left_out() == 4);
  Record last;
  last.kind = Kind::stopped;
  last.cause = Cause::file_full;
  last.time_ns = 4;
  writer.finish(last);
  const Trace trace = load(file.path());
  REQUIRE(trace.records.size() == 3);
  CHECK(trace.records[1].psn == 2);
  CHECK(trace.records[2].cause == Cause::file_full);
}

TEST_CASE("trace file: a file system that takes nothing is said") {
  Writer writer(UniqueFd(::open("/dev/full", O_WRONLY)), header(), 1 << 20);
  CHECK(writer.state() == Writer::State::failed);
  CHECK(writer.error() == ENOSPC);
  const Record record = packet(1, 1);
  CHECK(!writer.append({&record, 1}));
  CHECK(writer.left_out() == 1);
}

TEST_CASE("trace file: one whose writer was killed is read to its last whole record") {
  TraceFile file;
  const std::string whole = file_of(header(), {packet(1, 1), packet(2, 2)});
  file.put(whole.substr(0, whole.size() - 1));
  const Trace trace = load(file.path());
  CHECK(trace.records.size() == 1);
  CHECK(trace.is_cut_short);
}

TEST_CASE("trace file: what is no trace is refused, and told why") {
  CHECK_THAT(complaint(""), Contains("is no trace of rocemu"));
  CHECK_THAT(complaint("#!/bin/sh\necho hello, this is a script\n"),
             Contains("is no trace of rocemu"));
  CHECK_THAT(complaint(file_of(header(), {}).substr(0, 100)),
             Contains("ends within its header, after 100 bytes"));
  const auto spoilt = [](auto change) {
    Header other = header();
    change(other);
    return complaint(file_of(other, {}));
  };
  CHECK_THAT(spoilt([](Header& h) { h.byte_order = 0x04030201; }), Contains("byte order"));
  CHECK_THAT(spoilt([](Header& h) { h.major = 2; }), Contains("has format 2."));
  CHECK_THAT(spoilt([](Header& h) { h.record_bytes = 0; }), Contains("records are of 0 bytes"));
  CHECK_THAT(spoilt([](Header& h) { h.header_bytes = 0xffffffff; }), Contains("4294967295"));
  CHECK_THAT(spoilt([](Header& h) { h.clock = Clock{9}; }), Contains("unknown clock"));
  CHECK_THROWS_AS(Reader("/nonexistent/x.trace"), TraceError);
  CHECK_THROWS_WITH(Reader("/tmp"), Contains("is a folder"));
}

TEST_CASE("trace file: records that can't be are refused, and told where") {
  const auto spoilt = [](auto change) {
    Record record = packet(2, 2);
    change(record);
    return complaint(file_of(header(), {packet(1, 1), record}));
  };
  CHECK_THAT(spoilt([](Record& r) { r.qpn = 1 << 24; }),
             Contains("record 1, at byte 192: the QPN 0x1000000 has more than 24 bits"));
  CHECK_THAT(spoilt([](Record& r) { r.psn = ~0u; }), Contains("the PSN"));
  CHECK_THAT(spoilt([](Record& r) { r.peer_qpn = ~0u; }), Contains("the peer's QPN"));
  CHECK_THAT(spoilt([](Record& r) { r.device = kMaxDevices; }), Contains("no device 4096"));
  CHECK_THAT(spoilt([](Record& r) { r.peer_device = kMaxDevices; }), Contains("no device 4096"));
  CHECK_THAT(spoilt([](Record& r) { r.kind = Kind::none; }), Contains("is of kind 0"));
  CHECK_THAT(spoilt([](Record& r) { r.kind = Kind{200}; }), Contains("is of kind 200"));
  CHECK_THAT(spoilt([](Record& r) { r.kind = Kind::name; }), Contains("is no name"));
  CHECK_THAT(complaint(file_of(header(), {packet(1, 1), packet(2, 2)}), 1),
             Contains("has more than 1 records"));
}

TEST_CASE("trace file: of a later minor version, what is unknown is passed over and counted") {
  Header later = header();
  later.minor = Header::kMinor + 1;
  Record unknown = packet(1, 1);
  unknown.kind = Kind{200};
  TraceFile file;
  file.put(file_of(later, {unknown, packet(2, 2)}));
  const Trace trace = load(file.path());
  CHECK(trace.records.size() == 1);
  CHECK(trace.unknown_records == 1);
}

}  // namespace rocemu::trace
