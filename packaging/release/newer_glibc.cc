// What the C++ runtime and rocemu want of glibc and an older one lacks, for executables that are
// linked with the older one (cmake/release.cmake): __libc_single_threaded and strerrorname_np
// (2.32), close_range (2.34), _dl_find_object and epoll_pwait2 (2.35), arc4random (2.36).
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

// Nobody here says when a second thread begins, so there may always be one.
char __libc_single_threaded = 0;

uint32_t arc4random() {
  uint32_t value;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

int close_range(unsigned first, unsigned last, int flags) noexcept {
  return static_cast<int>(syscall(SYS_close_range, first, last, flags));
}

int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* timeout,
                 const sigset_t* signals) noexcept {
  constexpr size_t kKernelSetBytes = 8;
  return static_cast<int>(
      syscall(SYS_epoll_pwait2, epoll, events, most, timeout, signals, kKernelSetBytes));
}

const char* strerrorname_np(int number) noexcept {
  switch (number) {
    case 0:
      return "0";
// clang-format off
#define E(name) case name: return #name;
    E(EPERM) E(ENOENT) E(ESRCH) E(EINTR) E(EIO) E(ENXIO) E(E2BIG) E(ENOEXEC) E(EBADF) E(ECHILD)
    E(EAGAIN) E(ENOMEM) E(EACCES) E(EFAULT) E(ENOTBLK) E(EBUSY) E(EEXIST) E(EXDEV) E(ENODEV)
    E(ENOTDIR) E(EISDIR) E(EINVAL) E(ENFILE) E(EMFILE) E(ENOTTY) E(ETXTBSY) E(EFBIG) E(ENOSPC)
    E(ESPIPE) E(EROFS) E(EMLINK) E(EPIPE) E(EDOM) E(ERANGE) E(ENAMETOOLONG) E(ENOLCK) E(ENOSYS)
    E(ENOTEMPTY) E(ELOOP) E(ENOMSG) E(EIDRM) E(ECHRNG) E(EL2NSYNC) E(EL3HLT) E(EL3RST) E(ELNRNG)
    E(EUNATCH) E(ENOCSI) E(EL2HLT) E(EBADE) E(EBADR) E(EXFULL) E(ENOANO) E(EBADRQC) E(EBADSLT)
    E(EBFONT) E(ENOSTR) E(ENODATA) E(ETIME) E(ENOSR) E(ENONET) E(ENOPKG) E(EREMOTE) E(ENOLINK)
    E(EADV) E(ESRMNT) E(ECOMM) E(EPROTO) E(EMULTIHOP) E(EDOTDOT) E(EBADMSG) E(EOVERFLOW)
    E(ENOTUNIQ) E(EBADFD) E(EREMCHG) E(ELIBACC) E(ELIBBAD) E(ELIBSCN) E(ELIBMAX) E(ELIBEXEC)
    E(EILSEQ) E(ERESTART) E(ESTRPIPE) E(EUSERS) E(ENOTSOCK) E(EDESTADDRREQ) E(EMSGSIZE)
    E(EPROTOTYPE) E(ENOPROTOOPT) E(EPROTONOSUPPORT) E(ESOCKTNOSUPPORT) E(EOPNOTSUPP) E(EPFNOSUPPORT)
    E(EAFNOSUPPORT) E(EADDRINUSE) E(EADDRNOTAVAIL) E(ENETDOWN) E(ENETUNREACH) E(ENETRESET)
    E(ECONNABORTED) E(ECONNRESET) E(ENOBUFS) E(EISCONN) E(ENOTCONN) E(ESHUTDOWN) E(ETOOMANYREFS)
    E(ETIMEDOUT) E(ECONNREFUSED) E(EHOSTDOWN) E(EHOSTUNREACH) E(EALREADY) E(EINPROGRESS) E(ESTALE)
    E(EUCLEAN) E(ENOTNAM) E(ENAVAIL) E(EISNAM) E(EREMOTEIO) E(EDQUOT) E(ENOMEDIUM) E(EMEDIUMTYPE)
    E(ECANCELED) E(ENOKEY) E(EKEYEXPIRED) E(EKEYREVOKED) E(EKEYREJECTED) E(EOWNERDEAD)
    E(ENOTRECOVERABLE) E(ERFKILL) E(EHWPOISON)
#undef E
          // clang-format on
          default : return nullptr;
  }
}

// By which exceptions find their handlers: the module that `code` is in. libgcc reads eh_frame.
static int look_into(dl_phdr_info* info, size_t, void* wanted) {
  auto& found = *static_cast<dl_find_object*>(wanted);
  const auto code = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  bool is_here = false;
  void* header = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && code >= at && code - at < part.p_memsz) is_here = true;
    if (part.p_type == PT_GNU_EH_FRAME) header = reinterpret_cast<void*>(at);
  }
  if (!is_here || header == nullptr) return 0;
  found.dlfo_eh_frame = header;
  return 1;
}

int _dl_find_object(void* code, dl_find_object* result) noexcept {
  *result = {};
  result->dlfo_map_start = code;
  return dl_iterate_phdr(look_into, result) == 0 ? -1 : 0;
}

}  // extern "C"
