#include "emulator/lab/interfaces.h"

#include <fcntl.h>
#include <net/if.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <system_error>

#include "emulator/lab/namespaces.h"

namespace rocemu::lab {
namespace {

std::string contents(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Prints what `work` returns in a network namespace of its own; none where there can be no such.
std::optional<std::string> in_namespace(const std::function<std::string()>& work) {
  if (!output_of([] { make_namespaces(::geteuid() != 0); })) {
    WARN("no namespaces can be made here");
    return std::nullopt;
  }
  const auto printed = output_of([&] {
    make_namespaces(::geteuid() != 0);
    const std::string text = work();
    if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) ::_exit(1);
  });
  REQUIRE(printed);
  return printed;
}

TEST_CASE("a bridge with a veth in it, and addresses on the other end") {
  const auto seen = in_namespace([] {
    add_bridge("lab");
    bring_up("lab", 9000);
    add_veth("p1", 9000, "eth0", ::getpid());
    bring_up("p1", 0, "lab");
    add_address("eth0", "10.99.0.1", 24);
    bring_up("eth0", 1500);
    return std::to_string(::if_nametoindex("eth0") != 0) + contents("/proc/net/fib_trie") +
           contents("/proc/net/dev");
  });
  if (!seen) return;
  CHECK_THAT(*seen,
             Catch::Contains("10.99.0.1") && Catch::Contains("p1:") && Catch::Contains("lab:"));
}

TEST_CASE("what the kernel refuses is said") {
  const auto why = in_namespace([]() -> std::string {
    add_bridge("lab");
    try {
      add_bridge("lab");
    } catch (const std::system_error& error) {
      return error.what();
    }
    return "no error";
  });
  if (!why) return;
  CHECK(*why == "cannot make a bridge: File exists");
}

}  // namespace
}  // namespace rocemu::lab
