#include "emulator/daemon/metrics/metrics_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <fstream>

namespace rocemu::daemon {
namespace {

using boost::asio::generic::stream_protocol;

// A server at a Unix socket, and those who ask it.
class Stage {
 public:
  ~Stage() { io_.poll(); }

  // What comes back until the other end closes, or for so long.
  std::string say(const std::string& request) {
    stream_protocol::socket client(io_);
    client.connect(address_.endpoint);
    boost::asio::write(client, boost::asio::buffer(request));
    std::string answer;
    bool over = false;
    boost::asio::async_read(client, boost::asio::dynamic_buffer(answer),
                            [&](const boost::system::error_code&, size_t) { over = true; });
    while (!over) io_.run_one();
    return answer;
  }
  std::string get(const std::string& target) {
    return say("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  std::unique_ptr<MetricsServer> make() {
    return std::make_unique<MetricsServer>(io_, address_, "text/plain; version=0.0.4",
                                           [this](MetricsServer::Done done) {
                                             ++asked;
                                             boost::asio::post(io_, [done] { done("metric 1\n"); });
                                           });
  }

  int asked = 0;
  std::string path = "/tmp/rocemud-metrics-" + std::to_string(::getpid());

 private:
  MetricsAddress address_ = *parse_metrics_address(path).address;
  boost::asio::io_context io_;

 public:
  std::unique_ptr<MetricsServer> server = make();
  boost::asio::io_context& io() { return io_; }
  const MetricsAddress& address() const { return address_; }
};

bool has(const std::string& answer, const std::string& text) {
  return answer.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("GET /metrics is answered with the text, and nothing else with it") {
  Stage stage;
  const std::string answer = stage.get("/metrics");
  CHECK(answer.starts_with("HTTP/1.1 200 "));
  CHECK(has(answer, "\r\nContent-Type: text/plain; version=0.0.4\r\n"));
  CHECK(answer.ends_with("\r\n\r\nmetric 1\n"));
  CHECK(stage.get("/metrics?x=1").ends_with("metric 1\n"));
  CHECK(stage.get("/").starts_with("HTTP/1.1 200 "));
  CHECK(stage.get("/metrics/").starts_with("HTTP/1.1 404 "));
  const std::string head = stage.say("HEAD /metrics HTTP/1.0\r\n\r\n");
  CHECK(has(head, "Content-Length: 9\r\n"));
  CHECK(head.ends_with("\r\n\r\n"));
  const std::string post = stage.say("POST /metrics HTTP/1.0\r\n\r\n");
  CHECK(post.starts_with("HTTP/1.0 405 "));
  CHECK(has(post, "Allow: GET, HEAD\r\n"));
}

TEST_CASE("a connection serves several requests, and a fresh text is not made anew") {
  Stage stage;
  const std::string answers = stage.say(
      "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
      "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  CHECK(answers.find("metric 1\n") != answers.rfind("metric 1\n"));
  CHECK(stage.asked == 1);
}

TEST_CASE("what is no request, or too much of one, ends the connection") {
  Stage stage;
  CHECK(stage.say("\x01\x02\x03\r\n\r\n").empty());
  CHECK(stage.say("GET /metrics HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n").empty());
  CHECK(stage.say("GET /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\n123456789").empty());
  CHECK(stage.asked == 0);
  CHECK(stage.get("/metrics").ends_with("metric 1\n"));
}

TEST_CASE("so many are served at a time, and others when one of them has gone") {
  Stage stage;
  std::vector<stream_protocol::socket> idle;
  for (size_t i = 0; i < MetricsServer::kMaxConnections; ++i) {
    idle.emplace_back(stage.io());
    idle.back().connect(stage.address().endpoint);
  }
  stream_protocol::socket late(stage.io());
  late.connect(stage.address().endpoint);
  std::string answer;
  bool closed = false;
  boost::asio::async_read(late, boost::asio::dynamic_buffer(answer),
                          [&](const boost::system::error_code&, size_t) { closed = true; });
  while (!closed) stage.io().run_one();
  CHECK(answer.empty());
  idle.clear();
  while (stage.io().poll_one() != 0) {
  }
  CHECK(stage.get("/metrics").ends_with("metric 1\n"));
}

TEST_CASE("the socket is its owner's alone, and goes with the server") {
  Stage stage;
  struct stat info = {};
  REQUIRE(::stat(stage.path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(stage.server->address() == stage.path);
  CHECK_THROWS_WITH(stage.make(), Catch::Contains("can't listen at " + stage.path));  // it answers
  stage.server.reset();
  CHECK(::stat(stage.path.c_str(), &info) != 0);

  std::ofstream(stage.path) << "something else";
  CHECK_THROWS_WITH(stage.make(), Catch::Contains("can't listen at"));
  CHECK(::stat(stage.path.c_str(), &info) == 0);
  ::unlink(stage.path.c_str());
}

TEST_CASE("the kernel chooses a port where none is given") {
  boost::asio::io_context io;
  const MetricsServer server(io, *parse_metrics_address("0").address, "text/plain",
                             [](const MetricsServer::Done&) {});
  CHECK(server.address().starts_with("127.0.0.1:"));
  CHECK(server.address() != "127.0.0.1:0");
}

}  // namespace rocemu::daemon
