#include "tests/unit/wire/pcap_file.h"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "base/byte_order.h"

namespace rocemu::wire::test {
namespace {

constexpr size_t kFileHeaderBytes = 24;
constexpr size_t kRecordHeaderBytes = 16;
constexpr uint32_t kMagicMicroseconds = 0xa1b2c3d4;
constexpr uint32_t kLinkTypeEthernet = 1;

}  // namespace

std::vector<Frame> read_pcap(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  if (!in || text.size() < kFileHeaderBytes || load_le32(bytes) != kMagicMicroseconds ||
      load_le32(bytes + 20) != kLinkTypeEthernet)
    throw std::runtime_error(path.string() + ": not a little-endian Ethernet pcap file");

  std::vector<Frame> frames;
  for (size_t at = kFileHeaderBytes; at < text.size();) {
    if (text.size() - at < kRecordHeaderBytes)
      throw std::runtime_error(path.string() + ": cut off in a record header");
    const size_t captured_bytes = load_le32(bytes + at + 8);
    const size_t frame_bytes = load_le32(bytes + at + 12);
    at += kRecordHeaderBytes;
    if (captured_bytes != frame_bytes || captured_bytes > text.size() - at)
      throw std::runtime_error(path.string() + ": a frame is not whole");
    frames.emplace_back(bytes + at, bytes + at + captured_bytes);
    at += captured_bytes;
  }
  return frames;
}

}  // namespace rocemu::wire::test
