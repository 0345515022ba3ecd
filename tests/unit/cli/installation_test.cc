#include "emulator/cli/process/installation.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "emulator/cli/process/exit_codes.h"
#include "tests/unit/cli/temporary_folder.h"

namespace rocemu::cli {
namespace {

TEST_CASE("libraries of a build tree are beside bin", "[cli]") {
  const TemporaryFolder folder;
  folder.make_file("lib/librocemu-preload.so");
  folder.make_file("lib/librocemu-rdmav34.so");
  const Installation found = find_installation(folder.path() / "bin/rocemu", "lib/multi");
  CHECK(found.library_dir == folder.path() / "lib");
  CHECK(found.driver_prefix() == folder.path() / "lib/librocemu");
}

TEST_CASE("installed libraries have a folder of their own", "[cli]") {
  const TemporaryFolder folder;
  folder.make_file("lib/multi/rocemu/librocemu-preload.so");
  folder.make_file("lib/multi/rocemu/librocemu-rdmav34.so");
  const Installation found = find_installation(folder.path() / "bin/rocemu", "lib/multi");
  CHECK(found.library_dir == folder.path() / "lib/multi/rocemu");
}

TEST_CASE("the private ABIs that are served are those of the providers", "[cli]") {
  const TemporaryFolder folder;
  folder.make_file("lib/librocemu-preload.so");
  for (const char* name : {"librocemu-rdmav64.so", "librocemu-rdmav34.so", "librocemu-rdmav.so",
                           "librocemu-rdmav9.a", "libother-rdmav33.so"})
    folder.make_file("lib/" + std::string(name));
  const Installation found = find_installation(folder.path() / "bin/rocemu", "lib");
  CHECK(private_abis(found) == std::vector<int>{34, 64});
}

TEST_CASE("half an installation is refused", "[cli]") {
  const TemporaryFolder folder;
  folder.make_file("lib/librocemu-preload.so");
  CHECK_THROWS_AS(find_installation(folder.path() / "bin/rocemu", "lib"), Failure);
}

TEST_CASE("a folder that LD_PRELOAD cannot name is refused", "[cli]") {
  const TemporaryFolder folder;
  folder.make_file("a b/lib/librocemu-preload.so");
  folder.make_file("a b/lib/librocemu-rdmav34.so");
  CHECK_THROWS_WITH(find_installation(folder.path() / "a b/bin/rocemu", "lib"),
                    Catch::Contains("LD_PRELOAD"));
}

TEST_CASE("a missing daemon is named", "[cli]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(find_daemon(folder.path() / "bin/rocemu"),
                    Catch::Contains((folder.path() / "bin/rocemud").native()));
}

}  // namespace
}  // namespace rocemu::cli
