#include "emulator/cli/process/process_environment.h"

#include <catch2/catch.hpp>

namespace rocemu::cli {
namespace {

const Installation kInstallation{"/opt/lib"};
const std::string kPreload = "/opt/lib/librocemu-preload.so";

TEST_CASE("a program gets the NIC's variables", "[cli]") {
  const Environment environment = for_program({"HOME=/h"}, kInstallation, "/run/rocemu/x");
  CHECK(get(environment, "HOME") == "/h");
  CHECK(get(environment, "ROCEMU_DIR") == "/run/rocemu/x");
  CHECK(get(environment, "LD_PRELOAD") == kPreload);
  CHECK(get(environment, "RDMAV_DRIVERS") == "/opt/lib/librocemu");
  CHECK(get(environment, "IBV_DRIVERS") == "/opt/lib/librocemu");
}

TEST_CASE("the preload library goes in front of others and is named once", "[cli]") {
  CHECK(preload_list("", kPreload) == kPreload);
  CHECK(preload_list("/a.so", kPreload) == kPreload + ":/a.so");
  CHECK(preload_list("/a.so /b.so", kPreload) == kPreload + ":/a.so:/b.so");
  CHECK(preload_list("/a.so:" + kPreload, kPreload) == kPreload + ":/a.so");
}

TEST_CASE("a sanitizer's run-time library stays first", "[cli]") {
  CHECK(preload_list("/usr/lib/libasan.so.8:/a.so", kPreload) ==
        "/usr/lib/libasan.so.8:" + kPreload + ":/a.so");
}

TEST_CASE("AddressSanitizer lets the preload library be first", "[cli]") {
  const auto options = [](const char* existing) {
    return std::string(get(for_program({existing}, kInstallation, "/s"), "ASAN_OPTIONS"));
  };
  CHECK(options("HOME=/h") == "verify_asan_link_order=0");
  CHECK(options("ASAN_OPTIONS=detect_leaks=0") == "detect_leaks=0:verify_asan_link_order=0");
  CHECK(options("ASAN_OPTIONS=verify_asan_link_order=1") == "verify_asan_link_order=1");
}

TEST_CASE("an option of a sanitizer is added to others, unless it is there") {
  CHECK(without_option("", "x") == "x=0");
  CHECK(without_option("a=1", "x") == "a=1:x=0");
  CHECK(without_option("a=1:x=1", "x") == "a=1:x=1");
}

TEST_CASE("drivers that are set already are kept", "[cli]") {
  const Environment environment =
      for_program({"RDMAV_DRIVERS=/x/libfoo;/opt/lib/librocemu"}, kInstallation, "/s");
  CHECK(get(environment, "RDMAV_DRIVERS") == "/opt/lib/librocemu:/x/libfoo");
}

TEST_CASE("an inner NIC replaces the outer one", "[cli]") {
  Environment environment = for_program({}, kInstallation, "/outer");
  environment = for_program(environment, kInstallation, "/inner");
  CHECK(environment.size() == 5);
  CHECK(get(environment, "ROCEMU_DIR") == "/inner");
}

TEST_CASE("memory is shared when asked for, or when the environment says so already", "[cli]") {
  CHECK(get(for_program({}, kInstallation, "/s"), "ROCEMU_SHARE_MEMORY").empty());
  const Environment asked = for_program({"ROCEMU_SHARE_MEMORY=0"}, kInstallation, "/s", true);
  CHECK(get(asked, "ROCEMU_SHARE_MEMORY") == "1");
  const Environment inherited = for_program({"ROCEMU_SHARE_MEMORY=1"}, kInstallation, "/s");
  CHECK(get(inherited, "ROCEMU_SHARE_MEMORY") == "1");
}

TEST_CASE("the daemon does not see an outer NIC", "[cli]") {
  const Environment environment = for_daemon(for_program({}, kInstallation, "/outer"));
  CHECK(get(environment, "ROCEMU_DIR").empty());
  CHECK(get(environment, "LD_PRELOAD").empty());
}

TEST_CASE("the daemon has its own libraries, whatever the programs have", "[cli]") {
  CHECK(for_daemon({"LD_PRELOAD=/a.so", "LD_LIBRARY_PATH=/a", "LD_AUDIT=/b.so", "HOME=/h"}) ==
        Environment{"HOME=/h"});
}

TEST_CASE("a variable whose name only begins alike is another one", "[cli]") {
  Environment environment = {"ROCEMU_DIR_OLD=1"};
  set(environment, "ROCEMU_DIR", "2");
  CHECK(get(environment, "ROCEMU_DIR_OLD") == "1");
  CHECK(get(environment, "ROCEMU_DIR") == "2");
}

TEST_CASE("shell quoting survives a quote", "[cli]") {
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
}

}  // namespace
}  // namespace rocemu::cli
