#include "dpdk_io/kernel/group_memberships.h"

#include <net/if.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>

#include "base/net/text.h"

namespace rocemu::dpdk_io {
namespace {

// Of the group 239.77.9.9, as the kernel writes it.
constexpr char kGroupInProc[] = "09094DEF";

bool kernel_is_member() {
  std::ifstream file("/proc/net/igmp");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.find(kGroupInProc) != std::string::npos;
}

}  // namespace

TEST_CASE("The kernel is in a group from joining until it is not kept") {
  GroupMemberships memberships(::if_nametoindex("lo"));
  const IpAddress group = *parse_ip_address("239.77.9.9");
  const IpAddress other = *parse_ip_address("239.77.9.10");
  REQUIRE(memberships.join(group) == 0);
  CHECK(memberships.join(group) == 0);
  REQUIRE(memberships.join(other) == 0);
  CHECK(memberships.count() == 2);
  CHECK(kernel_is_member());
  memberships.keep(std::array{group});
  CHECK(memberships.count() == 1);
  CHECK(kernel_is_member());
  memberships.keep({});
  CHECK(memberships.count() == 0);
  CHECK_FALSE(kernel_is_member());
}

TEST_CASE("What cannot be joined is refused") {
  GroupMemberships memberships(::if_nametoindex("lo"));
  CHECK(memberships.join(*parse_ip_address("10.0.0.1")) == EINVAL);
  CHECK(memberships.join(*parse_ip_address("fd00::1")) == EINVAL);
  GroupMemberships nowhere(0x7fffffff);
  CHECK(nowhere.join(*parse_ip_address("239.77.9.9")) == ENODEV);
  CHECK(memberships.count() == 0);
}

TEST_CASE("The number of groups is limited") {
  GroupMemberships memberships(::if_nametoindex("lo"));
  for (size_t i = 0; i < GroupMemberships::kMaxGroups; ++i) {
    IpAddress group = *parse_ip_address("239.78.0.0");
    group.bytes[14] = static_cast<uint8_t>(i >> 8);
    group.bytes[15] = static_cast<uint8_t>(i);
    REQUIRE(memberships.join(group) == 0);
  }
  CHECK(memberships.join(*parse_ip_address("239.79.0.1")) == ENOBUFS);
}

}  // namespace rocemu::dpdk_io
