#include "emulator/dma/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>

#include "base/reaper/reaper.h"

namespace rocemu::dma {
namespace {

std::atomic<unsigned> mappings{0};
std::atomic<uint64_t> mapped_bytes{0};

// The size of the file's pages, or 0 when it is none that can be mapped.
uint64_t page_bytes(int fd, uint64_t end_bytes) {
  struct stat file;
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || (flags & O_PATH) != 0) return 0;
  if (!MappedFile::is_in_memory(fd) || ::fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return 0;
  if (static_cast<uint64_t>(file.st_size) < end_bytes || file.st_blksize <= 0) return 0;
  return static_cast<uint64_t>(file.st_blksize);
}

bool take_room(uint64_t bytes) {
  const bool room = mappings.fetch_add(1) < MappedFile::kMaxMappings &&
                    bytes <= MappedFile::kMaxBytes - mapped_bytes.load();
  if (room) {
    mapped_bytes.fetch_add(bytes);
  } else {
    mappings.fetch_sub(1);
  }
  return room;
}

void give_back_room(uint64_t bytes) {
  mappings.fetch_sub(1);
  mapped_bytes.fetch_sub(bytes);
}

}  // namespace

// They alone have seals (fcntl(2)).
bool MappedFile::is_in_memory(int fd) noexcept { return ::fcntl(fd, F_GET_SEALS) >= 0; }

std::shared_ptr<const MappedFile> MappedFile::map(int fd, uint64_t offset_bytes,
                                                  uint64_t length_bytes) {
  if (length_bytes == 0 || offset_bytes > kMaxBytes || length_bytes > kMaxBytes) return nullptr;
  const uint64_t page = page_bytes(fd, offset_bytes + length_bytes);
  if (page == 0) return nullptr;
  const uint64_t before = offset_bytes % page;
  const uint64_t size = (before + length_bytes + page - 1) / page * page;
  if (!take_room(size)) return nullptr;
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                          static_cast<off_t>(offset_bytes - before));
  if (at == MAP_FAILED) {
    give_back_room(size);
    return nullptr;
  }
  const std::span mapping(static_cast<std::byte*>(at), size);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(mapping, mapping.subspan(before, length_bytes)));
}

MappedFile::~MappedFile() {
  // There is room again when it has gone, and not before.
  unmap_elsewhere(mapping_.data(), mapping_.size(), &give_back_room);
}

}  // namespace rocemu::dma
