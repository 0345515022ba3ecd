// Reads a pcap file as pcap-savefile(5) describes it, independently of the library that wrote it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace rocemu::dpdk_io {

struct RecordedFrame {
  uint64_t realtime_ns = 0;
  uint32_t length_bytes = 0;  // on the wire
  std::string bytes;          // what was kept of it
};

struct PcapFile {
  uint32_t snaplen = 0;
  uint32_t link_type = 0;
  std::vector<RecordedFrame> frames;
};

inline PcapFile read_pcap(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const auto number = [&] {
    uint32_t value = 0;
    file.read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  };
  if (number() != 0xa1b23c4d) throw std::runtime_error("no pcap file with nanoseconds");
  PcapFile result;
  number();  // version
  number();
  number();
  result.snaplen = number();
  result.link_type = number();
  while (file.peek() != std::ifstream::traits_type::eof()) {
    RecordedFrame frame;
    frame.realtime_ns = number() * uint64_t{1'000'000'000};
    frame.realtime_ns += number();
    frame.bytes.resize(number());
    frame.length_bytes = number();
    file.read(frame.bytes.data(), static_cast<std::streamsize>(frame.bytes.size()));
    if (!file) throw std::runtime_error("the file ends within a frame");
    result.frames.push_back(frame);
  }
  return result;
}

// A path for one capture, gone at the end of the test.
class TemporaryCapture {
 public:
  TemporaryCapture() {
    std::string name = (std::filesystem::temp_directory_path() / "rocemu_pcap_XXXXXX").string();
    const int fd = mkstemp(name.data());
    if (fd < 0) throw std::runtime_error("no temporary file");
    close(fd);
    path_ = name;
  }
  ~TemporaryCapture() { std::filesystem::remove(path_); }
  TemporaryCapture(const TemporaryCapture&) = delete;
  TemporaryCapture& operator=(const TemporaryCapture&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace rocemu::dpdk_io
