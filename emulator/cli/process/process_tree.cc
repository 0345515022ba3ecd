#include "emulator/cli/process/process_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <system_error>

namespace rocemu::cli {
namespace {

namespace fs = std::filesystem;

fs::path proc_of(pid_t pid) { return fs::path("/proc") / std::to_string(pid); }

// 0 when there is no such process. Its name, in brackets before it, may hold anything.
pid_t parent_of(pid_t pid) {
  std::string text;
  std::getline(std::ifstream(proc_of(pid) / "stat"), text, '\0');
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(text.substr(name_end + 1));
  char state = 0;
  pid_t parent = 0;
  rest >> state >> parent;
  return state == 'Z' ? 0 : parent;
}

// Inodes of the listening sockets in a process's network namespace (proc_net_tcp(5)).
std::set<std::string> listening_inodes(pid_t pid) {
  constexpr const char* kListen = "0A";
  std::set<std::string> inodes;
  for (const char* table : {"net/tcp", "net/tcp6"}) {
    std::ifstream file(proc_of(pid) / table);
    std::string line;
    std::getline(file, line);  // the heading
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
      fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
          timeout >> inode;
      if (state == kListen) inodes.insert(inode);
    }
  }
  return inodes;
}

bool listens_on_tcp(pid_t pid) {
  const std::set<std::string> inodes = listening_inodes(pid);
  std::error_code error;
  for (fs::directory_iterator it(proc_of(pid) / "fd", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code closed;
    const std::string target = fs::read_symlink(it->path(), closed);
    constexpr std::string_view kSocket = "socket:[";
    if (target.starts_with(kSocket) &&
        inodes.contains(target.substr(kSocket.size(), target.size() - kSocket.size() - 1)))
      return true;
  }
  return false;
}

}  // namespace

bool in_own_pid_namespace(pid_t pid) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/ns/pid", error);
  return !error && fs::read_symlink(proc_of(pid) / "ns/pid", error) == own;
}

std::vector<pid_t> process_tree(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = std::stoi(name);
    children.emplace(parent_of(pid), pid);
  }
  std::vector<pid_t> tree;
  if (parent_of(root) != 0) tree.push_back(root);
  for (size_t i = 0; i < tree.size(); ++i) {
    const auto [first, last] = children.equal_range(tree[i]);
    for (auto child = first; child != last; ++child) tree.push_back(child->second);
  }
  return tree;
}

bool any_listens_on_tcp(const std::vector<pid_t>& processes) {
  return std::ranges::any_of(processes, listens_on_tcp);
}

}  // namespace rocemu::cli
