#include "tests/e2e/faults/asked_fault.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {
namespace {

std::string rocemu(const std::string& words) {
  const char* const command = std::getenv("ROCEMU");
  const std::string line = std::string(command == nullptr ? "rocemu" : command) + " fault " + words;
  std::FILE* const output = popen(line.c_str(), "r");
  if (output == nullptr) fail_errno(errno, "popen");
  std::string text;
  for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output)) text += static_cast<char>(c);
  if (const int code = pclose(output); code != 0) fail("'%s' ended with %d", line.c_str(), code);
  return text;
}

// What stands between `before` and `end`, from `at` on.
std::string between(const std::string& text, const std::string& before, const char* end,
                    size_t at = 0) {
  const size_t begin = text.find(before, at);
  if (begin == std::string::npos) fail("no %s in %s", before.c_str(), text.c_str());
  const size_t first = begin + before.size();
  return text.substr(first, text.find_first_of(end, first) - first);
}

}  // namespace

AskedFault::AskedFault(const std::string& words)
    : ids_(between(rocemu("--json " + words), "\"ids\":[", "]")) {}

AskedFault::~AskedFault() {
  try {
    clear();
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
  }
}

void AskedFault::clear() {
  for (std::istringstream ids(std::exchange(ids_, "")); !ids.eof();) {
    std::string id;
    std::getline(ids, id, ',');
    if (!id.empty()) rocemu("clear " + id);
  }
}

std::string AskedFault::listed(const std::string& key) const {
  const std::string list = rocemu("list --json");
  const std::string id = ids_.substr(0, ids_.find(','));
  const size_t entry = list.find("\"id\": " + id + ",");
  if (entry == std::string::npos) fail("fault %s is not in %s", id.c_str(), list.c_str());
  return between(list, "\"" + key + "\": ", ",\n}", entry);
}

uint64_t AskedFault::strikes() const { return std::stoull(listed("strikes")); }

std::string AskedFault::state() const {
  return listed("state").substr(1, listed("state").size() - 2);
}

}  // namespace rocemu::e2e
