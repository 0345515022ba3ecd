// A capture whose frames have what the NIC knows of them as comments: a pcapng file
// (emulator/trace/show/commented_frames.h says how far it is behind the wire).
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "dpdk_io/port/frame_writer.h"
#include "emulator/trace/show/commented_frames.h"

namespace rocemu::daemon {

// FrameKnowledge knows something of a capture's frames. The thread that writes them calls it.
class FrameKnowledge {
 public:
  // Tells `frames` what has come to be known since this was asked last.
  virtual void tell(trace::CommentedFrames& frames) noexcept = 0;
  virtual uint16_t device_of_address(const wire::Gid& gid) noexcept = 0;

 protected:
  ~FrameKnowledge() = default;
};

class PcapngFile final : public dpdk_io::FrameWriter {
 public:
  // Is called once, when recording ends by the first error or at the limit.
  using ErrorReport = std::function<void(const std::string& message)>;

  // Creates or truncates the file, which may be a FIFO, and takes `limit_bytes` at most. Throws
  // std::runtime_error when it cannot be opened.
  PcapngFile(const std::filesystem::path& path, uint64_t limit_bytes, ErrorReport report);
  // All frames are written.
  ~PcapngFile() override;

  // nullptr: nobody knows any more. Before that it is asked once more.
  void set_knowledge(FrameKnowledge* knowledge);

  // dpdk_io::FrameWriter
  void write(std::span<const std::byte> frame, uint64_t realtime_ns) noexcept override;
  void flush() noexcept override;
  uint64_t frames_written() const noexcept override { return frames_; }
  bool holds_back() const noexcept override { return !ended_ && !commented_.is_empty(); }

 private:
  void ask() noexcept {
    if (knowledge_ != nullptr) knowledge_->tell(commented_);
  }
  void put(std::string_view block) noexcept;
  void end(const char* reason) noexcept;

  const std::filesystem::path path_;
  const ErrorReport report_;
  std::unique_ptr<char[]> buffer_;  // in use until the file is closed
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  uint64_t left_bytes_;
  bool ended_ = false;
  uint64_t frames_ = 0;
  FrameKnowledge* knowledge_ = nullptr;
  trace::CommentedFrames commented_;
};

}  // namespace rocemu::daemon
