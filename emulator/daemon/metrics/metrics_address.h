// MetricsAddress says where metrics are served: ADDRESS:PORT, [ADDRESS]:PORT, PORT on loopback, or
// a path, which has a slash, for a Unix socket.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <filesystem>
#include <optional>
#include <string>

namespace rocemu::daemon {

struct MetricsAddress {
  boost::asio::generic::stream_protocol::endpoint endpoint;
  std::filesystem::path socket;  // empty: TCP
};

struct ParsedMetricsAddress {
  std::optional<MetricsAddress> address;
  std::string error;  // when there is none
};

ParsedMetricsAddress parse_metrics_address(const std::string& text);

}  // namespace rocemu::daemon
