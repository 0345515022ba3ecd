// Writes a trace's file, up to a bound. Used by a thread that may block.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/unique_fd.h"
#include "emulator/trace/format/record.h"

namespace rocemu::trace {

class Writer {
 public:
  enum class State : uint8_t {
    open,
    full,    // what follows is left out
    failed,  // the file system took no more: see error()
  };

  // Writes the header to `file`, at its position. At most `max_bytes` are written in all, but for
  // the last record (finish).
  Writer(UniqueFd file, const Header& header, uint64_t max_bytes);

  // All of `records` that still fit. False from the first one on that does not.
  bool append(std::span<const Record> records);
  // The last record of the file, for which there is always room.
  void finish(const Record& last);

  State state() const { return state_; }
  int error() const { return error_; }  // errno of a failed write
  uint64_t written_bytes() const { return written_bytes_; }
  uint64_t left_out() const { return left_out_; }  // records

 private:
  bool write_all(const void* data, size_t bytes);

  UniqueFd file_;
  const uint64_t max_bytes_;
  uint64_t written_bytes_ = 0;
  uint64_t left_out_ = 0;
  State state_ = State::open;
  int error_ = 0;
};

// A header as of now, with `creator` cut to what there is room for.
Header make_header(Clock clock, uint64_t start_ns, uint64_t start_unix_ns,
                   std::string_view creator);

}  // namespace rocemu::trace
