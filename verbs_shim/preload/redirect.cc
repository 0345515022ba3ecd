#include "verbs_shim/preload/redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <initializer_list>
#include <string_view>

namespace rocemu::preload {
namespace {

using std::string_view;

constexpr string_view kSys = "/sys";
constexpr string_view kRdmaClasses = "/sys/class/infiniband";
constexpr string_view kVerbsClass = "/class/infiniband_verbs";
constexpr string_view kMiscClass = "/class/misc";
constexpr string_view kRdmaCm = "rdma_cm";
constexpr string_view kDeviceNodes = "/dev/infiniband";
constexpr string_view kUverbs = "uverbs";

// string_view's own starts_with and substr can throw, for which a C++ runtime would be linked.
bool begins_with(string_view path, string_view start) {
  return path.size() >= start.size() && memcmp(path.data(), start.data(), start.size()) == 0;
}

string_view after(string_view path, size_t length) {
  return {path.data() + length, path.size() - length};
}

bool is_below(string_view path, string_view folder) {
  return begins_with(path, folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// Copies `path` without doubled slashes and "." components; the length, or 0 when it doesn't fit.
size_t tidy(const char* path, char (&out)[PATH_MAX]) {
  size_t length = 0;
  for (const char* from = path; *from != '\0'; ++from) {
    if (*from == '/') {
      if (from[1] == '/') continue;
      if (from[1] == '.' && (from[2] == '/' || from[2] == '\0')) {
        ++from;
        continue;
      }
    }
    if (length + 1 >= sizeof(out)) return 0;
    out[length++] = *from;
  }
  out[length] = '\0';
  return length;
}

// Writes the tree's path followed by `rest` to resolved.buffer.
bool in_tree(string_view rest, Resolved& resolved) {
  if (sysfs_tree_length() + rest.size() >= sizeof(resolved.buffer)) return false;
  memcpy(resolved.buffer, sysfs_tree(), sysfs_tree_length());
  memcpy(resolved.buffer + sysfs_tree_length(), rest.data(), rest.size());
  resolved.buffer[sysfs_tree_length() + rest.size()] = '\0';
  resolved.path = resolved.buffer;
  return true;
}

void nowhere(int error, Resolved& resolved) {
  resolved.where = Where::kNowhere;
  resolved.error = error;
}

void to_tree(string_view rest, Resolved& resolved) {
  if (in_tree(rest, resolved)) {
    resolved.where = Where::kTree;
  } else {
    nowhere(ENAMETOOLONG, resolved);
  }
}

bool exists(const char* path) { return syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0; }

// Reads "MAJOR:MINOR\n", as a sysfs `dev` file holds it.
bool read_device_number(const char* path, dev_t& number) {
  const auto fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  if (fd < 0) return false;
  char text[32];
  const long bytes = syscall(SYS_read, fd, text, sizeof(text));
  syscall(SYS_close, fd);
  unsigned part[2] = {0, 0};
  int at = 0;
  for (long i = 0; i < bytes; ++i) {
    if (text[i] == ':' && at == 0) {
      at = 1;
    } else if (text[i] >= '0' && text[i] <= '9') {
      part[at] = part[at] * 10 + static_cast<unsigned>(text[i] - '0');
    } else {
      break;
    }
  }
  number = makedev(part[0], part[1]);
  return at == 1;
}

// A device node is what the `dev` file of its folder in the tree says.
void resolve_numbered(const char* path, string_view folder, string_view name, Resolved& resolved) {
  constexpr string_view kDev = "/dev";
  char rest[kVerbsClass.size() + NAME_MAX + kDev.size() + 2];
  size_t length = 0;
  for (string_view part : {folder, string_view("/"), name, kDev}) {
    memcpy(rest + length, part.data(), part.size());
    length += part.size();
  }
  if (!in_tree({rest, length}, resolved)) return nowhere(ENAMETOOLONG, resolved);
  if (!read_device_number(resolved.path, resolved.cdev)) return nowhere(ENOENT, resolved);
  resolved.where = Where::kCdev;
  resolved.path = path;
}

void resolve_device_node(const char* path, string_view name, Resolved& resolved) {
  resolved.is_rdma_cm = name == kRdmaCm;
  if (resolved.is_rdma_cm) return resolve_numbered(path, kMiscClass, name, resolved);
  if (!begins_with(name, kUverbs) || name.size() > NAME_MAX ||
      name.find('/') != string_view::npos) {
    return nowhere(ENOENT, resolved);
  }
  resolve_numbered(path, kVerbsClass, name, resolved);
}

void resolve_tidied(const char* given, string_view path, Resolved& resolved) {
  if (begins_with(path, kRdmaClasses)) {
    to_tree(after(path, kSys.size()), resolved);
  } else if (is_below(path, kSys)) {
    if (path.size() <= kSys.size() + 1 || exists(path.data()) || errno != ENOENT) return;
    if (in_tree(after(path, kSys.size()), resolved) && exists(resolved.path)) {
      resolved.where = Where::kTree;
    } else {
      resolved.path = given;
    }
  } else if (is_below(path, kDeviceNodes)) {
    if (path.size() <= kDeviceNodes.size() + 1) return to_tree(kVerbsClass, resolved);
    resolve_device_node(given, after(path, kDeviceNodes.size() + 1), resolved);
  }
}

}  // namespace

void resolve(const char* path, Resolved& resolved) {
  const int saved = errno;
  char tidied[PATH_MAX];
  resolved.path = path;
  const size_t length = tidy(path, tidied);
  if (length != 0) resolve_tidied(path, {tidied, length}, resolved);
  errno = saved;
}

void name_as_sysfs(char* path) {
  const string_view given(path);
  string_view tree(sysfs_tree(), sysfs_tree_length());
  char canonical[PATH_MAX];
  if (!is_below(given, tree)) {
    if (real().realpath(sysfs_tree(), canonical) == nullptr) return;
    tree = canonical;
    if (!is_below(given, tree)) return;
  }
  memcpy(path, kSys.data(), kSys.size());
  memmove(path + kSys.size(), path + tree.size(), given.size() - tree.size() + 1);
}

}  // namespace rocemu::preload
