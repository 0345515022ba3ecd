#include "emulator/daemon/tracing/pcapng_file.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/monotonic_clock.h"

namespace rocemu::daemon {
namespace {

constexpr size_t kBufferBytes = 256 * 1024;

std::FILE* open_file(const std::filesystem::path& path) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr)
    throw std::runtime_error("capture file " + path.string() + ": " + std::strerror(errno));
  return file;
}

}  // namespace

PcapngFile::PcapngFile(const std::filesystem::path& path, uint64_t limit_bytes, ErrorReport report)
    : path_(path),
      report_(std::move(report)),
      buffer_(std::make_unique<char[]>(kBufferBytes)),
      file_(open_file(path), std::fclose),
      left_bytes_(limit_bytes),
      commented_(
          "rocemud " ROCEMU_VERSION,
          [this](const wire::Gid& gid) {
            return knowledge_ == nullptr ? trace::kNoDevice : knowledge_->device_of_address(gid);
          },
          [this](std::string_view block) { put(block); }) {
  std::setvbuf(file_.get(), buffer_.get(), _IOFBF, kBufferBytes);
}

PcapngFile::~PcapngFile() {
  commented_.write_all();
  flush();
}

void PcapngFile::set_knowledge(FrameKnowledge* knowledge) {
  ask();
  knowledge_ = knowledge;
}

// What is known of the frame as it leaves has been recorded by now.
void PcapngFile::write(std::span<const std::byte> frame, uint64_t realtime_ns) noexcept {
  if (ended_) return;
  ask();
  commented_.take_frame(frame, realtime_ns, monotonic_now_ns());
  ++frames_;
}

void PcapngFile::flush() noexcept {
  if (ended_) return;
  ask();
  commented_.write_due(monotonic_now_ns());
  if (std::fflush(file_.get()) != 0) end(std::strerror(errno));
}

// Blocks are written whole or not at all.
void PcapngFile::put(std::string_view block) noexcept {
  if (ended_) return;
  if (block.size() > left_bytes_) {
    std::fflush(file_.get());
    return end("it has reached its limit");
  }
  left_bytes_ -= block.size();
  if (std::fwrite(block.data(), 1, block.size(), file_.get()) != block.size())
    end(std::strerror(errno));
}

void PcapngFile::end(const char* reason) noexcept {
  if (ended_) return;
  ended_ = true;
  if (!report_) return;
  try {
    report_("capture file " + path_.string() + ": " + reason + "; recording has ended");
  } catch (...) {
    // A report that throws must not take the data path down with it.
  }
}

}  // namespace rocemu::daemon
