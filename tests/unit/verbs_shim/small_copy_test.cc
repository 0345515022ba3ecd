#include "verbs_shim/provider/common/small_copy.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

namespace rocemu::provider {
namespace {

TEST_CASE("a small copy is of all its bytes and of no others", "[shim]") {
  std::array<uint8_t, kSmallCopyMax + 2> from;
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i + 1);
  for (uint32_t bytes = 1; bytes <= kSmallCopyMax; ++bytes) {
    std::array<uint8_t, kSmallCopyMax + 2> to = {};
    copy_small(&to[1], &from[1], bytes);
    CHECK(std::equal(&to[1], &to[1 + bytes], &from[1]));
    CHECK(to[0] == 0);
    CHECK(std::all_of(to.begin() + 1 + bytes, to.end(), [](uint8_t byte) { return byte == 0; }));
  }
}

}  // namespace
}  // namespace rocemu::provider
