#include "emulator/cli/process/obstacle.h"

#include <elf.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

namespace rocemu::cli {
namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr Elf64_Half kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kOwnMachine = EM_AARCH64;
#endif

// Finds the program as execvp(3) does.
fs::path find_in_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / program;
    std::error_code error;
    if (::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file, error)) return file;
  }
  return {};
}

template <typename Value>
bool read_at(std::ifstream& file, uint64_t offset, Value* values, size_t count = 1) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(values), static_cast<std::streamsize>(count * sizeof(Value)));
  return static_cast<bool>(file);
}

// The path behind "#!"; empty when the file does not begin so.
std::string interpreter_of_script(std::ifstream& file) {
  char start[2] = {};
  std::string path;
  if (!read_at(file, 0, start, sizeof(start)) || start[0] != '#' || start[1] != '!') return path;
  file >> path;
  return path;
}

// Returns what PT_INTERP names, empty when the program has none; nothing where the file is no ELF
// of 64 bits.
std::optional<std::string> loader_of(std::ifstream& file, const Elf64_Ehdr& header) {
  constexpr size_t kMaxHeaders = 256;  // of hostile files there may be more
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxHeaders) return std::nullopt;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read_at(file, header.e_phoff, segments.data(), segments.size())) return std::nullopt;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_INTERP) continue;
    if (segment.p_filesz > PATH_MAX) return std::nullopt;
    std::string path(segment.p_filesz, '\0');
    if (!read_at(file, segment.p_offset, path.data(), path.size())) return std::nullopt;
    return path.c_str();
  }
  return "";
}

// True when the kernel starts it with other rights than this process has, so that the loader takes
// no libraries from the environment (ld.so(8), "secure-execution mode").
bool gains_rights(const fs::path& file) {
  struct stat status;
  struct statvfs system;
  if (::stat(file.c_str(), &status) != 0 || ::statvfs(file.c_str(), &system) != 0) return false;
  if ((system.f_flag & ST_NOSUID) != 0 || ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
    return false;
  const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid();
  const bool other_group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
                           status.st_gid != ::getgid();
  const bool capabilities =
      ::getuid() != 0 && ::getxattr(file.c_str(), "security.capability", nullptr, 0) > 0;
  return other_user || other_group || capabilities;
}

Obstacle obstacle_of(std::ifstream& file, const fs::path& path) {
  Elf64_Ehdr header = {};
  if (!read_at(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kOwnMachine)
    return {
        "is for another processor architecture than rocemu's libraries: it sees no devices of the "
        "NIC"};
  // The loader itself, started with a program as its argument, is as good as that program.
  if (path.filename().native().starts_with("ld-linux")) return {};
  const std::optional<std::string> loader = loader_of(file, header);
  if (!loader) return {};
  if (loader->empty())
    return {
        "is statically linked, as Go programs without cgo are: it sees no devices of the NIC, only "
        "dynamically linked programs that it starts do"};
  if (fs::path(*loader).filename().native().starts_with("ld-musl"))
    return {
        "is linked with musl, and rocemu's libraries are for glibc: it sees no devices of the NIC",
        /*refuses_preload=*/true};
  if (gains_rights(path))
    return {
        "is setuid or setgid or has file capabilities, so that the loader ignores LD_PRELOAD: "
        "neither it nor what it starts sees devices of the NIC, unless it starts `rocemu exec`"};
  return {};
}

}  // namespace

Obstacle find_obstacle(const std::string& program) {
  constexpr int kScriptsInARow = 4;  // of which one is the next one's interpreter, as in the kernel
  fs::path path = find_in_path(program);
  for (int i = 0; i <= kScriptsInARow; ++i) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return {};  // a pipe would be waited for
    std::ifstream file(path, std::ios::binary);
    const std::string interpreter = interpreter_of_script(file);
    if (interpreter.empty()) {
      Obstacle obstacle = obstacle_of(file, path);
      if (!obstacle.text.empty()) obstacle.text.insert(0, path.native() + " ");
      return obstacle;
    }
    path = interpreter;
  }
  return {};
}

}  // namespace rocemu::cli
