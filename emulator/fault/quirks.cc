#include "emulator/fault/quirks.h"

#include <algorithm>
#include <iterator>

namespace rocemu::fault {
namespace {

// Registering pins the pages: some 80 to 100 ms for each GB (libfabric #4738, Mooncake #855). It
// fails with EAGAIN now and then (ucx #5291).
constexpr std::string_view kMlx5[] = {
    "call-slow call=reg-mr delay=5ms",
    "call-fails call=reg-mr errno=EAGAIN p=1%",
};
// Linux's qplib_fp.c, do_wa9060(): a completion is held back until the one of a request that the
// driver posts for it has come.
constexpr std::string_view kBnxt[] = {
    "completion-late delay=100us p=1%",
};
// No SRQs (ucx #9736). Its library called several errors fatal before rdma-core 39 and 43
// (rdma-core #1106, #1220).
constexpr std::string_view kIrdma[] = {
    "call-fails call=create-srq errno=EOPNOTSUPP",
    "completion-status status=fatal-err from=retry-exc-err",
    "completion-status status=fatal-err from=mw-bind-err",
    "completion-status status=fatal-err from=rem-inv-req-err",
};
// The last WQE is never announced (spdk #1697).
constexpr std::string_view kRxe[] = {
    "event-lost event=last-wqe",
};

constexpr std::string_view kFamilies[] = {"mlx5", "bnxt", "irdma", "rxe"};
constexpr std::span<const std::string_view> kTexts[] = {kMlx5, kBnxt, kIrdma, kRxe};
static_assert(std::size(kFamilies) == std::size(kTexts));

}  // namespace

std::span<const std::string_view> quirk_families() { return kFamilies; }

std::span<const std::string_view> quirk_texts(std::string_view family) {
  const auto* const found = std::ranges::find(kFamilies, family);
  if (found == std::end(kFamilies)) return {};
  return kTexts[found - std::begin(kFamilies)];
}

}  // namespace rocemu::fault
