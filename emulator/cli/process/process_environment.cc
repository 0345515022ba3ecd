#include "emulator/cli/process/process_environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "verbs_shim/abi/control.h"

namespace rocemu::cli {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD";
constexpr const char* kAsanOptions = "ASAN_OPTIONS";

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += ':';
    text += part;
  }
  return text;
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_sanitizer_runtime(std::string_view path) {
  static constexpr std::array<std::string_view, 5> kRuntimes = {"libasan", "libtsan", "libubsan",
                                                                "liblsan", "libclang_rt."};
  return std::ranges::any_of(
      kRuntimes, [&](std::string_view runtime) { return file_name(path).starts_with(runtime); });
}

std::string driver_list(std::string_view existing, const std::string& ours) {
  std::vector<std::string> drivers = split(existing, ":;");
  std::erase(drivers, ours);
  drivers.insert(drivers.begin(), ours);
  return join(drivers);
}

bool names(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
}

}  // namespace

Environment current_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return environment;
}

std::string_view get(const Environment& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (names(entry, name)) return std::string_view(entry).substr(name.size() + 1);
  }
  return {};
}

void unset(Environment& environment, std::string_view name) {
  std::erase_if(environment, [&](const std::string& entry) { return names(entry, name); });
}

void set(Environment& environment, std::string_view name, std::string_view value) {
  unset(environment, name);
  environment.push_back(std::string(name) + "=" + std::string(value));
}

std::string preload_list(std::string_view existing, const std::filesystem::path& library) {
  std::vector<std::string> libraries = split(existing, ": \t\n");
  std::erase(libraries, library.native());
  libraries.insert(std::ranges::find_if_not(libraries, is_sanitizer_runtime), library.native());
  return join(libraries);
}

std::string without_option(std::string_view existing, std::string_view name) {
  std::string options(existing);
  if (existing.find(name) != std::string_view::npos) return options;
  if (!options.empty()) options += ':';
  return options + std::string(name) + "=0";
}

std::vector<std::pair<std::string, std::string>> nic_variables(
    const Environment& environment, const Installation& installation,
    const std::filesystem::path& state_dir) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {ROCEMU_ENV_DIR, state_dir.native()},
      {std::string(kPreload),
       preload_list(get(environment, kPreload), installation.preload_library())}};
  // AddressSanitizer's shared run-time library ends a program in which another library stands
  // before it. The preload library may: it has none of the functions of memory.
  variables.emplace_back(kAsanOptions,
                         without_option(get(environment, kAsanOptions), "verify_asan_link_order"));
  // libibverbs reads the second only when the first is not set; older versions know the second.
  for (const char* name : {"RDMAV_DRIVERS", "IBV_DRIVERS"}) {
    variables.emplace_back(name, driver_list(get(environment, name), installation.driver_prefix()));
  }
  return variables;
}

Environment for_program(Environment environment, const Installation& installation,
                        const std::filesystem::path& state_dir, bool share_memory) {
  for (const auto& [name, value] : nic_variables(environment, installation, state_dir)) {
    set(environment, name, value);
  }
  if (share_memory) set(environment, ROCEMU_ENV_SHARE_MEMORY, "1");
  return environment;
}

Environment for_daemon(Environment environment) {
  unset(environment, ROCEMU_ENV_DIR);
  for (const char* name : {"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"}) unset(environment, name);
  return environment;
}

std::string shell_quoted(std::string_view value) {
  std::string quoted = "'";
  for (const char c : value) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::vector<char*> as_exec_array(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace rocemu::cli
