// Finds the other parts of rocemu, seen from the `rocemu` executable: in a build tree (bin/ beside
// lib/) or installed (bin/, LIBDIR/rocemu/, maybe libexec/rocemu/).
#pragma once

#include <filesystem>
#include <vector>

namespace rocemu::cli {

struct Installation {
  std::filesystem::path library_dir;  // holds librocemu-preload.so and librocemu-rdmavNN.so

  std::filesystem::path preload_library() const { return library_dir / "librocemu-preload.so"; }
  // RDMAV_DRIVERS wants it so: libibverbs appends "-rdmavNN.so".
  std::filesystem::path driver_prefix() const { return library_dir / "librocemu"; }
};

// The running executable, links resolved.
std::filesystem::path own_executable();

// `install_libdir` is CMAKE_INSTALL_LIBDIR: relative to the prefix, or absolute.
// Throws Failure when the preload library or the provider is missing, or when their folder's name
// cannot be written in LD_PRELOAD (it is a list separated by colons and blanks).
Installation find_installation(const std::filesystem::path& executable,
                               const std::filesystem::path& install_libdir);

// The numbers of rdma-core's private ABI for which there is a provider, ascending.
std::vector<int> private_abis(const Installation& installation);

// The daemon's executable. Throws Failure when it is missing.
std::filesystem::path find_daemon(const std::filesystem::path& executable);

}  // namespace rocemu::cli
