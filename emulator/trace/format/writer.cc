#include "emulator/trace/format/writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rocemu::trace {

Writer::Writer(UniqueFd file, const Header& header, uint64_t max_bytes)
    : file_(std::move(file)), max_bytes_(max_bytes) {
  write_all(&header, sizeof header);
}

bool Writer::append(std::span<const Record> records) {
  size_t fitting = 0;
  if (state_ == State::open)
    fitting = std::min<uint64_t>(
        records.size(), (max_bytes_ - std::min(max_bytes_, written_bytes_)) / sizeof(Record));
  if (fitting != 0 && !write_all(records.data(), fitting * sizeof(Record))) fitting = 0;
  if (fitting == records.size()) return true;
  left_out_ += records.size() - fitting;
  if (state_ == State::open) state_ = State::full;
  return false;
}

void Writer::finish(const Record& last) {
  if (state_ != State::failed) write_all(&last, sizeof last);
  file_.reset();
}

bool Writer::write_all(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes != 0) {
    const ssize_t written = ::write(file_.get(), from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      error_ = written < 0 ? errno : EIO;
      state_ = State::failed;
      return false;
    }
    from += written;
    bytes -= static_cast<size_t>(written);
    written_bytes_ += static_cast<uint64_t>(written);
  }
  return true;
}

Header make_header(Clock clock, uint64_t start_ns, uint64_t start_unix_ns,
                   std::string_view creator) {
  Header header;
  header.clock = clock;
  header.start_ns = start_ns;
  header.start_unix_ns = start_unix_ns;
  creator = creator.substr(0, sizeof header.creator - 1);
  std::copy(creator.begin(), creator.end(), header.creator);
  return header;
}

}  // namespace rocemu::trace
