// What the provider says of rdma-core's private structures, against each release's own header.
#include <pthread.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/verbs_shim/release_layouts.h"
#include "verbs_shim/provider/layouts.h"

using namespace rocemu::provider;

namespace {

constexpr int kNewest = std::end(kReleaseLayouts)[-1].release;

// The names of op_table.inc.
const std::vector<std::string> kOps = {
#define ROCEMU_OP(op) #op,
#define ROCEMU_DATA_OP(op) #op,
#define ROCEMU_EVENT_OP(op) #op,
#define ROCEMU_NO_OP(op) #op,
#include "verbs_shim/provider/op_table.inc"
};

const ReleaseLayout& layout_of(int release) {
  const auto* after = std::find_if(std::begin(kReleaseLayouts), std::end(kReleaseLayouts),
                                   [&](const ReleaseLayout& row) { return row.release > release; });
  return after[-1];
}

std::set<std::string> ops_of(int release) {
  std::set<std::string> ops;
  for (const ReleaseLayout& row : kReleaseLayouts) {
    if (row.release > release) break;
    std::istringstream changes(row.ops);
    for (std::string change; changes >> change;) {
      const std::string op = change.substr(1);
      if (change[0] == '+') {
        ops.insert(op);
      } else {
        ops.erase(op);
      }
    }
  }
  return ops;
}

}  // namespace

TEST_CASE("verbs are listed in the order in which rdma-core has them") {
  CHECK(std::is_sorted(kOps.begin(), kOps.end()));
  CHECK(std::set<std::string>(kOps.begin(), kOps.end()).size() == kOps.size());
}

TEST_CASE("private structures are laid out as each release of rdma-core has them") {
  for (int release = std::begin(kReleaseLayouts)->release; release <= kNewest; ++release) {
    CAPTURE(release);
    const ReleaseLayout& layout = layout_of(release);
    std::set<std::string> ops;
    for (const std::string& op : kOps)
      if (has_op(release, op)) ops.insert(op);
    CHECK(ops == ops_of(release));
    CHECK(context_offset(release) == layout.context_offset);
    // The table is of x86-64. On arm64 the mutex of struct ibv_qp has more bytes.
    CHECK(qp_comp_mask_offset(release) == layout.comp_mask_offset + sizeof(pthread_mutex_t) - 40);
    CHECK(has_import_context(release) == layout.has_import_context);
    CHECK(known_release(layout.private_abi, release) == release);
  }
}

TEST_CASE("a release that is not known is taken for the nearest one of its private ABI") {
  CHECK(known_release(34, 0) == 56);
  CHECK(known_release(34, 99) == 56);
  CHECK(known_release(59, 0) == 63);
  CHECK(known_release(59, 58) == 59);
  CHECK(known_release(kNewest, 0) == kNewest);
}
