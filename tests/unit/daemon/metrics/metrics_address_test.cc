#include "emulator/daemon/metrics/metrics_address.h"

#include <boost/asio/ip/tcp.hpp>
#include <catch2/catch.hpp>
#include <cstring>

namespace rocemu::daemon {
namespace {

std::string read(const std::string& text) {
  const ParsedMetricsAddress parsed = parse_metrics_address(text);
  if (!parsed.address) return "";
  if (!parsed.address->socket.empty()) return parsed.address->socket;
  boost::asio::ip::tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), parsed.address->endpoint.data(), parsed.address->endpoint.size());
  return endpoint.address().to_string() + " " + std::to_string(endpoint.port());
}

}  // namespace

TEST_CASE("metrics are served on loopback unless somebody says otherwise") {
  CHECK(read("9400") == "127.0.0.1 9400");
  CHECK(read(":9400") == "127.0.0.1 9400");
  CHECK(read("127.0.0.1:0") == "127.0.0.1 0");
  CHECK(read("0.0.0.0:65535") == "0.0.0.0 65535");
  CHECK(read("[::1]:9400") == "::1 9400");
  CHECK(read("/run/metrics.sock") == "/run/metrics.sock");
  CHECK(read("./metrics.sock") == "./metrics.sock");
}

TEST_CASE("what is no address is refused by name") {
  for (const char* text :
       {"", ":", "here", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:9400",
        "[127.0.0.1]:9400", "[::1]", "127.0.0.1:-1", "127.0.0.1:9400x"}) {
    INFO(text);
    CHECK(read(text).empty());
    CHECK_FALSE(parse_metrics_address(text).error.empty());
  }
  CHECK(read("/" + std::string(200, 'x')).empty());
}

}  // namespace rocemu::daemon
