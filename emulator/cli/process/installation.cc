#include "emulator/cli/process/installation.h"

#include <unistd.h>

#include <array>
#include <string>
#include <system_error>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli {
namespace {

namespace fs = std::filesystem;

bool has_provider(const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.starts_with("librocemu-rdmav") && name.ends_with(".so")) return true;
  }
  return false;
}

}  // namespace

fs::path own_executable() {
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (error) throw Failure("cannot read /proc/self/exe (" + error.message() + "); mount /proc");
  return path;
}

Installation find_installation(const fs::path& executable, const fs::path& install_libdir) {
  const fs::path prefix = executable.parent_path().parent_path();
  const std::array<fs::path, 2> candidates = {prefix / "lib", prefix / install_libdir / "rocemu"};
  for (const fs::path& directory : candidates) {
    std::error_code error;
    const Installation found{directory};
    if (!fs::exists(found.preload_library(), error) || !has_provider(directory)) continue;
    if (directory.native().find_first_of(" :;\t\n") != std::string::npos) {
      throw Failure("the folder '" + directory.native() +
                    "' cannot be named in LD_PRELOAD because of a blank, ':' or ';' in it; move "
                    "rocemu to another folder");
    }
    return found;
  }
  throw Failure("librocemu-preload.so and librocemu-rdmavNN.so are neither in " +
                candidates[0].native() + " nor in " + candidates[1].native() +
                "; build or install all of rocemu");
}

fs::path find_daemon(const fs::path& executable) {
  const fs::path bin = executable.parent_path();
  const std::array<fs::path, 2> candidates = {bin / "rocemud",
                                              bin.parent_path() / "libexec" / "rocemu" / "rocemud"};
  for (const fs::path& path : candidates) {
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  throw Failure("rocemud is neither " + candidates[0].native() + " nor " + candidates[1].native() +
                "; build or install all of rocemu");
}

}  // namespace rocemu::cli
