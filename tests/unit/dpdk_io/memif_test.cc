#include "dpdk_io/ethdev/memif.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "dpdk_io/ethdev/device_arguments.h"

namespace rocemu::dpdk_io {

TEST_CASE("a device's arguments are found by their names") {
  const char* const arguments = "net_memif0,role=server,socket=/tmp/a=b,rolex=1,role=client";
  CHECK(device_name(arguments) == "net_memif0");
  CHECK(device_argument(arguments, "role") == "client");
  CHECK(device_argument(arguments, "socket") == "/tmp/a=b");
  CHECK_FALSE(device_argument(arguments, "ro"));
  CHECK_FALSE(device_argument("net_tap0", "iface"));
}

TEST_CASE("buffers of memif hold whole frames unless the user says otherwise") {
  CHECK(with_memif_defaults("net_memif0") == "net_memif0,bsize=4352");
  CHECK(with_memif_defaults("net_memif0,bsize=2048") == "net_memif0,bsize=2048");
  CHECK(with_memif_defaults("net_tap0") == "net_tap0");
  CHECK(memif_mtu_bytes("net_memif0,bsize=4352") >= 4200);
  CHECK(memif_mtu_bytes("net_memif0,bsize=2048") == 2030);
  CHECK(memif_slots("net_memif0") == 1024);
  CHECK(memif_slots("net_memif0,rsize=8") == 256);
}

TEST_CASE("who connects is the client, and it is one by default") {
  CHECK(is_memif_client("net_memif0"));
  CHECK(is_memif_client("net_memif0,role=slave"));
  CHECK_FALSE(is_memif_client("net_memif0,role=server"));
  CHECK_FALSE(is_memif_client("net_memif0,role=master"));
  CHECK_FALSE(is_memif_client("net_tap0,role=client"));
}

TEST_CASE("a server is there when it says hello") {
  char folder[] = "/tmp/rocemu-memif-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/socket";
  const std::string arguments = "net_memif0,socket-abstract=no,socket=" + path;
  CHECK_FALSE(memif_server_answers(arguments));  // nobody
  const UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  // One that hangs: however often it is tried, nobody waits for long.
  for (unsigned i = 0; i < 4; ++i) CHECK_FALSE(memif_server_answers(arguments));
  std::thread server([&] {
    while (true) {
      const UniqueFd client(::accept(listener.get(), nullptr, nullptr));
      if (!client) return;
      ::send(client.get(), "hello", 5, MSG_NOSIGNAL);
    }
  });
  bool answered = false;
  for (unsigned i = 0; i < 500 && !answered; ++i) {
    answered = memif_server_answers(arguments);
    ::usleep(10'000);
  }
  CHECK(answered);
  ::shutdown(listener.get(), SHUT_RDWR);
  server.join();
  ::unlink(path.c_str());
  ::rmdir(folder);
}

}  // namespace rocemu::dpdk_io
