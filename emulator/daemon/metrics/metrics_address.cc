#include "emulator/daemon/metrics/metrics_address.h"

#include <sys/un.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <charconv>

namespace rocemu::daemon {
namespace {

using boost::asio::ip::tcp;

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

ParsedMetricsAddress parse_path(const std::string& text) {
  if (text.size() >= sizeof(sockaddr_un::sun_path))
    return {std::nullopt, "the path '" + text + "' is too long for a Unix socket"};
  return {MetricsAddress{boost::asio::local::stream_protocol::endpoint(text), text}, ""};
}

}  // namespace

ParsedMetricsAddress parse_metrics_address(const std::string& text) {
  if (text.find('/') != text.npos) return parse_path(text);
  const size_t colon = text.rfind(':');
  std::string host = colon == text.npos ? "" : text.substr(0, colon);
  // An IPv6 address has colons of its own, and so brackets around it.
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto port = parse_port(std::string_view(text).substr(colon == text.npos ? 0 : colon + 1));
  boost::system::error_code error;
  const auto address = host.empty()
                           ? boost::asio::ip::address(boost::asio::ip::address_v4::loopback())
                           : boost::asio::ip::make_address(host, error);
  if (!port || error || address.is_v6() != bracketed)
    return {std::nullopt, "'" + text +
                              "' is no ADDRESS:PORT, [IPV6 ADDRESS]:PORT, PORT or path of a Unix "
                              "socket (which has a slash)"};
  return {MetricsAddress{tcp::endpoint(address, *port), {}}, ""};
}

}  // namespace rocemu::daemon
