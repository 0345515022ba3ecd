// Reads capture files in the classic pcap format (little-endian, microseconds, Ethernet).
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace rocemu::wire::test {

using Frame = std::vector<std::byte>;

// All frames of a file, in order. Throws std::runtime_error if the file is not such a capture, or
// has a frame that was not captured whole.
std::vector<Frame> read_pcap(const std::filesystem::path& path);

}  // namespace rocemu::wire::test
