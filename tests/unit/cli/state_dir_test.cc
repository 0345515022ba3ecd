#include "emulator/cli/state_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "emulator/cli/process/exit_codes.h"
#include "tests/unit/cli/temporary_folder.h"

namespace rocemu::cli {
namespace {

namespace fs = std::filesystem;

TEST_CASE("names of NICs", "[cli]") {
  for (const char* name : {"default", "a", "_x", "A.b_c-9", "12345678901234567890123456789012"}) {
    CHECK(valid_name(name));
  }
  for (const char* name : {"", ".", "..", ".lock", "-x", "a/b", "a b", "a\n", "\xc3\xa4",
                           "123456789012345678901234567890123"}) {
    CHECK_FALSE(valid_name(name));
  }
  CHECK(valid_name(private_name()));
  CHECK(private_name() != private_name());
}

TEST_CASE("the base is chosen by what is there and whose it is", "[cli]") {
  const TemporaryFolder folder;
  const uid_t user = ::geteuid();
  const fs::path tmp_base = folder.path() / ("rocemu-" + std::to_string(user));
  BasePlaces places{folder.path() / "xdg", folder.path() / "absent", folder.path() / "absent",
                    folder.path()};

  CHECK(choose_base(places, user) == tmp_base);
  fs::create_directory(places.xdg_runtime_dir);
  CHECK(choose_base(places, user) == places.xdg_runtime_dir / "rocemu");
  CHECK(choose_base(places, user + 1) == folder.path() / ("rocemu-" + std::to_string(user + 1)));
  places.xdg_runtime_dir = "relative";
  CHECK(choose_base(places, user) == tmp_base);
}

TEST_CASE("a base in memory is preferred", "[cli]") {
  const TemporaryFolder folder;
  const uid_t user = ::geteuid();
  const std::string name = "rocemu-" + std::to_string(user);
  BasePlaces places{"", folder.path() / "run", folder.path() / "shm", folder.path()};
  for (const fs::path& place : {places.run, places.shm}) fs::create_directory(place);

  places.in_memory = [](const fs::path&) { return false; };
  CHECK(choose_base(places, user) == (user == 0 ? places.run / "rocemu" : places.tmp / name));
  places.in_memory = [](const fs::path& path) { return path.filename() == "shm"; };
  CHECK(choose_base(places, user) == places.shm / (user == 0 ? "rocemu" : name));
  places.in_memory = [](const fs::path&) { return true; };
  CHECK(choose_base(places, user) == (user == 0 ? places.run / "rocemu" : places.shm / name));

  CHECK_FALSE(is_in_memory("/proc"));
  CHECK_FALSE(is_in_memory(folder.path() / "absent"));
}

TEST_CASE("a base that others prepared is refused", "[cli]") {
  const TemporaryFolder folder;
  const fs::path base = folder.path() / "base";
  const uid_t user = ::geteuid();
  CHECK_FALSE(check_base(base, user));

  fs::create_directory(base);
  REQUIRE(::chmod(base.c_str(), 0700) == 0);
  CHECK(check_base(base, user));
  CHECK_THROWS_WITH(check_base(base, user + 1), Catch::Contains("belongs to user"));

  REQUIRE(::chmod(base.c_str(), 0722) == 0);
  CHECK_THROWS_WITH(check_base(base, user), Catch::Contains("written by other users"));

  fs::create_directory_symlink(base, folder.path() / "link");
  CHECK_THROWS_WITH(check_base(folder.path() / "link", user), Catch::Contains("not a folder"));
}

TEST_CASE("a state directory is its maker's while the lock is held", "[cli]") {
  const TemporaryFolder folder;
  const fs::path base = folder.path() / "base";
  CHECK(liveness(base, "x") == Liveness::kAbsent);
  {
    const StateDir first = StateDir::create(base, "x");
    CHECK(liveness(base, "x") == Liveness::kAlive);
    CHECK((fs::status(first.path()).permissions() & fs::perms::all) == fs::perms::owner_all);
    CHECK_FALSE(remove_if_dead(base, "x"));
    try {
      StateDir::create(base, "x");
      FAIL("a second one was made");
    } catch (const Failure& failure) {
      CHECK(failure.exit_code() == kWrongState);
    }
    fs::create_directories(first.path() / "sys/class");
  }
  CHECK(liveness(base, "x") == Liveness::kDead);
  StateDir second = StateDir::create(base, "x");
  CHECK_FALSE(fs::exists(second.path() / "sys"));
  second.remove();
  CHECK(liveness(base, "x") == Liveness::kAbsent);
}

TEST_CASE("only dead private directories are swept", "[cli]") {
  const TemporaryFolder folder;
  const fs::path base = folder.path() / "base";
  const StateDir living = StateDir::create(base, "run-1-a");
  StateDir::create(base, "run-2-b");
  StateDir::create(base, "named");
  fs::create_directory(base / "run-3-without-lock");

  remove_stale_private(base);

  CHECK(fs::exists(living.path()));
  CHECK_FALSE(fs::exists(base / "run-2-b"));
  CHECK_FALSE(fs::exists(base / "run-3-without-lock"));
  CHECK(fs::exists(base / "named"));
}

TEST_CASE("a path too long for a socket is refused before anything is made", "[cli]") {
  // 107 bytes with "/nic.sock"
  const fs::path longest = "/" + std::string(97, 'd');
  CHECK_NOTHROW(require_socket_path_fits(longest));
  CHECK_THROWS_WITH(require_socket_path_fits(longest.native() + "d"), Catch::Contains("108 bytes"));
}

}  // namespace
}  // namespace rocemu::cli
