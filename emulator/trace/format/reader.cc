#include "emulator/trace/format/reader.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

namespace rocemu::trace {

namespace {

constexpr uint32_t kMax24Bits = 0xffffff;
constexpr uint32_t kMaxHeaderBytes = 4096;

std::string hexadecimal(uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

}  // namespace

std::string fault_of(const Record& record) {
  const std::pair<const char*, uint32_t> numbers[] = {
      {"the QPN ", record.qpn}, {"the PSN ", record.psn}, {"the peer's QPN ", record.peer_qpn}};
  for (const auto& [what, number] : numbers)
    if (number > kMax24Bits) return what + hexadecimal(number) + " has more than 24 bits";
  for (const uint16_t device : {record.device, record.peer_device})
    if (device != kNoDevice && device >= kMaxDevices)
      return "there is no device " + std::to_string(device);
  return {};
}

bool take_posted(Record& taken, Record& posted) {
  if (taken.kind != Kind::taken || (taken.flags & flag::kPosted) == 0) return false;
  posted = taken;
  posted.kind = Kind::posted;
  posted.time_ns -= std::min<uint64_t>(taken.time_ns, taken.count);
  posted.value = 0;
  posted.detail = 0;
  posted.peer_qpn = 0;
  posted.code = 0;
  posted.count = taken.count = 0;
  posted.flags &= static_cast<uint16_t>(~flag::kPosted);
  taken.flags &= static_cast<uint16_t>(~(flag::kPosted | flag::kTimeIsNics));
  return true;
}

Reader::Reader(const std::filesystem::path& file) : file_(file.string()) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw TraceError(file_ + ": is a folder, and no trace");
  errno = 0;
  stream_.open(file, std::ios::binary);
  if (!stream_)
    throw TraceError(file_ + ": can't be read: " + std::strerror(errno != 0 ? errno : EIO));
  read_header();
}

void Reader::read_header() {
  stream_.read(reinterpret_cast<char*>(&header_), sizeof header_);
  const auto length = static_cast<size_t>(stream_.gcount());
  if (length < sizeof header_.magic ||
      std::memcmp(header_.magic, Header::kMagic, sizeof header_.magic) != 0)
    throw TraceError(file_ + ": is no trace of rocemu");
  if (length < sizeof header_)
    throw TraceError(file_ + ": ends within its header, after " + std::to_string(length) +
                     " bytes");
  if (header_.byte_order != Header::kByteOrder)
    throw TraceError(file_ + ": was written on a machine of another byte order");
  if (header_.major != Header::kMajor)
    throw TraceError(file_ + ": has format " + std::to_string(header_.major) + "." +
                     std::to_string(header_.minor) + ", this program reads " +
                     std::to_string(Header::kMajor) + ".x");
  if (header_.record_bytes != sizeof(Record))
    throw TraceError(file_ + ": its records are of " + std::to_string(header_.record_bytes) +
                     " bytes, where they have " + std::to_string(sizeof(Record)));
  if (header_.header_bytes < sizeof header_ || header_.header_bytes > kMaxHeaderBytes)
    throw TraceError(file_ + ": its header says that it has " +
                     std::to_string(header_.header_bytes) + " bytes");
  if (header_.clock != Clock::monotonic && header_.clock != Clock::virtual_time)
    throw TraceError(file_ + ": has an unknown clock, number " +
                     std::to_string(static_cast<uint32_t>(header_.clock)));
  header_.creator[sizeof header_.creator - 1] = '\0';
  stream_.ignore(header_.header_bytes - sizeof header_);
}

void Reader::fail(const std::string& what) const {
  const uint64_t record = position_ - 1;
  throw TraceError(file_ + ": record " + std::to_string(record) + ", at byte " +
                   std::to_string(header_.header_bytes + record * sizeof(Record)) + ": " + what);
}

bool Reader::read_record(Record& record) {
  stream_.read(reinterpret_cast<char*>(&record), sizeof record);
  const auto length = stream_.gcount();
  if (length == sizeof record) {
    ++position_;
    return true;
  }
  cut_short_ = length != 0;
  return false;
}

bool Reader::next(Record& record) {
  if (second_) {
    record = *second_;
    second_.reset();
    return true;
  }
  while (read_record(record)) {
    if (record.kind == Kind::name) {
      if (!names_.add(std::bit_cast<NameRecord>(record))) fail("is no name, or one too many");
      continue;
    }
    if (to_text(record.kind).empty()) {
      if (record.kind == Kind::none || header_.minor <= Header::kMinor)
        fail("is of kind " + std::to_string(static_cast<unsigned>(record.kind)) +
             ", which there is not");
      ++unknown_;
      continue;
    }
    if (const std::string fault = fault_of(record); !fault.empty()) fail(fault);
    if (Record posted; take_posted(record, posted)) {
      second_ = record;
      record = posted;
    }
    return true;
  }
  return false;
}

Trace load(const std::filesystem::path& file, uint64_t max_records) {
  Reader reader(file);
  Trace trace;
  trace.header = reader.header();
  for (Record record; reader.next(record);) {
    if (record.kind == Kind::lost) trace.lost += record.value;
    if (trace.records.size() >= max_records)
      throw TraceError(file.string() + ": has more than " + std::to_string(max_records) +
                       " records");
    trace.records.push_back(record);
  }
  const auto by_time = [](const Record& a, const Record& b) { return a.time_ns < b.time_ns; };
  std::stable_sort(trace.records.begin(), trace.records.end(), by_time);
  trace.names = reader.names();
  trace.unknown_records = reader.unknown_records();
  trace.is_cut_short = reader.is_cut_short();
  return trace;
}

}  // namespace rocemu::trace
