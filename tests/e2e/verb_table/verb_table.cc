// verb_table DOCUMENT [DEVICE]: calls every verb there is once, correctly, and compares what comes
// of it with the table "Every verb" of docs/compatibility.md: "works" or "EOPNOTSUPP". Anything
// else that a verb answers is a failure, as is a verb that the table or this program does not have,
// or one that leaves something in errno after success, or not its error when it fails. Public
// libibverbs interface alone. Exits 0 when all agree, 1 otherwise.
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/e2e/tools/failure.h"
#include "tests/e2e/verb_table/bench.h"

namespace rocemu::e2e {
namespace {

// The rows "| `VERB` | STATE |" of the document.
std::map<std::string, std::string> read_table(const char* path) {
  std::ifstream document(path);
  std::map<std::string, std::string> rows;
  constexpr char kStart[] = "| `ibv_";
  for (std::string line; std::getline(document, line);) {
    const size_t end = line.find("` | ");
    if (line.rfind(kStart, 0) != 0 || end == std::string::npos) continue;
    const size_t state = end + 4;
    rows[line.substr(3, end - 3)] = line.substr(state, line.find(" |", state) - state);
  }
  return rows;
}

std::string state_of(int rc) {
  if (rc == 0) return "works";
  return rc == EOPNOTSUPP ? "EOPNOTSUPP" : errno_text(rc);
}

// What errno is before each call: no verb's error.
constexpr int kUntouched = EXFULL;

// Verbs that libibverbs refuses by itself, without errno, on devices that do not have them.
bool is_refused_without_errno(const std::string& verb) {
  return verb == "ibv_modify_qp_rate_limit" || verb == "ibv_query_ece" || verb == "ibv_set_ece";
}

// What is wrong with what the call left in errno; empty if nothing is.
std::string fault_of_errno(const std::string& verb, int rc, int left) {
  const bool right = left == (rc == 0 ? kUntouched : rc) ||
                     (rc == EOPNOTSUPP && left == kUntouched && is_refused_without_errno(verb));
  return right ? "" : "leaves " + errno_text(left) + " in errno after " + state_of(rc);
}

int run(const char* document, const std::string& device) {
  std::map<std::string, std::string> table = read_table(document);
  const Bench bench(device);
  std::vector<Probe> probes(memory_probes().begin(), memory_probes().end());
  for (const auto more : {queue_probes(), request_probes()})
    probes.insert(probes.end(), more.begin(), more.end());
  int wrong = 0;
  for (const Probe& probe : probes) {
    const std::string verb = probe.verb;
    errno = kUntouched;
    const int rc = probe.call(bench);
    const std::string fault = fault_of_errno(verb, rc, errno);
    if (!fault.empty()) {
      std::printf("FAIL %s %s\n", verb.c_str(), fault.c_str());
      ++wrong;
    }
    const std::string state = state_of(rc);
    const auto row = table.find(verb);
    const std::string said = row == table.end() ? "nothing" : row->second;
    if (said != state) {
      std::printf("FAIL %s: %s, and the table says %s\n", verb.c_str(), state.c_str(),
                  said.c_str());
      ++wrong;
    }
    if (row != table.end()) table.erase(row);
  }
  for (const auto& [verb, state] : table) {
    std::printf("FAIL %s: in the table, but not tried\n", verb.c_str());
    ++wrong;
  }
  std::printf("verb_table: %zu verbs, %d not as they must be\n", probes.size(), wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rocemu::e2e

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("verb_table DOCUMENT [DEVICE]\n", stderr);
    return 2;
  }
  try {
    return rocemu::e2e::run(argv[1], argc > 2 ? argv[2] : "");
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAIL %s\n", failure.what());
    return 1;
  }
}
