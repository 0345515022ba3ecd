#include "emulator/daemon/rings/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "base/reaper/reaper.h"

namespace rocemu::daemon {
namespace {

// The pages of so much take some 100 us to give back, which the engine has no time for.
constexpr size_t kLongToUnmapBytes = size_t{1} << 20;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

UniqueFd make_memfd(const char* name) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) throw_errno("memfd_create");
  return fd;
}

void add_seals(int fd, int seals) {
  if (::fcntl(fd, F_ADD_SEALS, seals) != 0) throw_errno("F_ADD_SEALS");
}

// Mapping unmaps on the way out of a constructor that fails.
struct Mapping {
  std::byte* data = nullptr;
  size_t size_bytes = 0;
  ~Mapping() {
    if (data != nullptr) ::munmap(data, size_bytes);
  }
};

}  // namespace

SharedMemory::SharedMemory(const char* name, size_t bytes, Others others) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_bytes_ = (bytes + page - 1) / page * page;
  fd_ = make_memfd(name);
  if (::ftruncate(fd_.get(), static_cast<off_t>(size_bytes_)) != 0) throw_errno("ftruncate");
  void* address = ::mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (address == MAP_FAILED) throw_errno("mmap");
  Mapping mapping{static_cast<std::byte*>(address), size_bytes_};
  // F_SEAL_FUTURE_WRITE leaves this mapping, which exists already, writable.
  add_seals(fd_.get(), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL |
                           (others == Others::only_read ? F_SEAL_FUTURE_WRITE : 0));
  data_ = std::exchange(mapping.data, nullptr);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      charge_(std::move(other.charge_)) {}

SharedMemory::~SharedMemory() {
  if (data_ == nullptr) return;
  if (size_bytes_ < kLongToUnmapBytes) {
    ::munmap(data_, size_bytes_);
  } else {
    unmap_elsewhere(data_, size_bytes_);
  }
}

UniqueFd make_text_memfd(const char* name, std::string_view content) {
  UniqueFd fd = make_memfd(name);
  size_t written = 0;
  while (written < content.size()) {
    const ssize_t n = ::pwrite(fd.get(), content.data() + written, content.size() - written,
                               static_cast<off_t>(written));
    if (n < 0) throw_errno("pwrite");
    written += static_cast<size_t>(n);
  }
  add_seals(fd.get(), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  return fd;
}

}  // namespace rocemu::daemon
