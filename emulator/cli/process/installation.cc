#include "emulator/cli/process/installation.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProvider = "librocemu-rdmav";

std::vector<int> providers_in(const fs::path& directory) {
  std::vector<int> numbers;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    int number = 0;
    const auto digits = name.find_first_of("0123456789");
    if (!name.starts_with(kProvider) || !name.ends_with(".so") || digits != kProvider.size())
      continue;
    std::from_chars(name.data() + digits, name.data() + name.size(), number);
    numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
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
    if (!fs::exists(found.preload_library(), error) || providers_in(directory).empty()) continue;
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

std::vector<int> private_abis(const Installation& installation) {
  return providers_in(installation.library_dir);
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
