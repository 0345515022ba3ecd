#include "emulator/daemon/control/connection/program_connection.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <memory>

namespace rocemu::daemon {
namespace {

// Answers with what it was asked, and says what it saw.
class Echo final : public ProgramConnection {
 public:
  using ProgramConnection::ProgramConnection;

  int requests = 0;
  int ends = 0;
  bool ended_within_reply = false;

 private:
  void on_request(ReceivedMessage& message) override {
    ++requests;
    reply(message.bytes(), {});
    ended_within_reply |= ended();
  }
  void on_end() override { ++ends; }
};

}  // namespace

TEST_CASE("a reply to a program that is gone ends the connection after the request, not within") {
  std::array<int, 2> sockets{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets.data()) ==
          0);
  UniqueFd program(sockets[0]);
  boost::asio::io_context io;
  const auto connection = std::make_shared<Echo>(io, UniqueFd(sockets[1]), PeerCredentials{});
  const std::array<std::byte, 8> request{};
  REQUIRE(send_message(program.get(), request, {}) == SendResult::sent);
  program.reset();

  connection->start();
  io.run();
  REQUIRE(connection->requests == 1);
  REQUIRE_FALSE(connection->ended_within_reply);
  REQUIRE(connection->ended());
  REQUIRE(connection->ends == 1);
}

}  // namespace rocemu::daemon
