// Reads a trace's file. The file is hostile: all that is looked at has been checked before, what is
// kept is bounded, and a TraceError says what is wrong with it and where.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/trace/format/names.h"
#include "emulator/trace/format/record.h"

namespace rocemu::trace {

// "x.trace: record 17, at byte 1216: the QPN 0x1000000 has more than 24 bits"
class TraceError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns why a record is none of the format's, as a text; empty: it is one. Kinds, causes and
// flags of a later minor version are no fault.
std::string fault_of(const Record& record);

// A request that was posted and taken is one record where that has room for both times. True: the
// record was that of both events, and is now the second; `posted` is the first.
bool take_posted(Record& taken, Record& posted);

// The records of a file one by one, as they lie there: those of several threads may be a little out
// of order.
class Reader {
 public:
  // Throws TraceError: the file can't be read, or is no trace that this version knows.
  explicit Reader(const std::filesystem::path& file);

  const Header& header() const { return header_; }
  // False at the end. A record of two events is handed out as two. Records of Kind::name go to
  // names() and are passed over, as are those of kinds that are not known here. Throws TraceError.
  bool next(Record& record);

  // Those that have been passed so far.
  const Names& names() const { return names_; }
  uint64_t unknown_records() const { return unknown_; }
  // At the end: the file ends within a record, as when its writer was killed.
  bool is_cut_short() const { return cut_short_; }

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void read_header();
  bool read_record(Record& record);

  const std::string file_;
  std::ifstream stream_;
  Header header_;
  Names names_;
  uint64_t position_ = 0;         // records read
  std::optional<Record> second_;  // of a record of two events
  uint64_t unknown_ = 0;
  bool cut_short_ = false;
};

// A whole file.
struct Trace {
  Header header;
  Names names;
  std::vector<Record> records;   // by time; those of the same time as in the file
  uint64_t lost = 0;             // records that found no room when they were made
  uint64_t unknown_records = 0;  // of kinds that this version does not know
  bool is_cut_short = false;
};

inline constexpr uint64_t kDefaultMaxRecords = uint64_t{1} << 26;

// Throws TraceError, also for a file of more than `max_records`.
Trace load(const std::filesystem::path& file, uint64_t max_records = kDefaultMaxRecords);

}  // namespace rocemu::trace
