// Part of a file that a program keeps in memory and handed over, mapped here: a fourth way to the
// program's memory beside those of address_space.h, for what it shares with others anyway.
//
// The program still has the file: it may write to it at any time and cut it short, so what is in
// bytes() is read and written by way of guarded_access.h alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rocemu::dma {

class MappedFile {
 public:
  // Limits for all that are there at a time: a process has 65,530 mappings (vm.max_map_count) and
  // 47 bits of addresses, which everything else the NIC maps has to come out of, too.
  static constexpr unsigned kMaxMappings = 16384;
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 44;

  // Maps `length_bytes` from `offset_bytes` on. `fd` stays the caller's. Null for what is not a
  // file of tmpfs (as memfds are) or hugetlbfs that is open for reading and writing and has all
  // these bytes, and when there is no room for more. Files of other filesystems could make an
  // access wait for a disk, or for ever.
  static std::shared_ptr<const MappedFile> map(int fd, uint64_t offset_bytes,
                                               uint64_t length_bytes);
  // True when `fd` is a file of tmpfs or hugetlbfs. Asks no server, as fstat(2) would.
  static bool is_in_memory(int fd) noexcept;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  MappedFile(std::span<std::byte> mapping, std::span<std::byte> bytes) noexcept
      : mapping_(mapping), bytes_(bytes) {}

  std::span<std::byte> mapping_;  // whole pages
  std::span<std::byte> bytes_;
};

}  // namespace rocemu::dma
