// The memory of a script's program, of which regions are parts: pages that are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>

#include "emulator/script/play/objects.h"

namespace rocemu::script {

class ProgramMemory {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr size_t kBytes = 4 << 20;

  // `base`: the address that it has for the script; without one its own.
  explicit ProgramMemory(std::optional<uint64_t> base = std::nullopt)
      : bytes_(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kBytes))) {
    if (!bytes_) throw std::bad_alloc();
    std::memset(bytes_.get(), 0, kBytes);
    base_ = base.value_or(reinterpret_cast<uintptr_t>(bytes_.get()));
  }

  uint64_t base() const { return base_; }
  std::span<std::byte> all() { return {bytes_.get(), kBytes}; }

  // Pages of their own for a region. Throws Impossible where there is no more.
  uint64_t allocate(uint64_t bytes) {
    if (bytes > kBytes - used_bytes_) throw Impossible("4 MiB of memory are all there is");
    const uint64_t address = base_ + used_bytes_;
    used_bytes_ += (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    return address;
  }
  // Throws Impossible where there is none.
  std::byte* at(uint64_t address, size_t bytes) {
    if (address < base_ || bytes > kBytes || address - base_ > kBytes - bytes)
      throw Impossible("the program has no memory there");
    return bytes_.get() + (address - base_);
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  uint64_t base_ = 0;
  size_t used_bytes_ = 0;
};

}  // namespace rocemu::script
