// MetricsServer answers GET /metrics over HTTP/1.1 with a text that it asks for each time. It
// belongs to the thread of its io_context.
//
// Whoever reaches the address may read, and do nothing else: there are kMaxConnections, each idle
// for kIdle at most, with a request's header of kMaxHeaderBytes and no body. A text that is
// younger than kFresh is answered again, so that nobody makes the NIC write more of them.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/daemon/metrics/metrics_address.h"

namespace rocemu::daemon {

class MetricsServer {
 public:
  using Done = std::function<void(std::string text)>;
  // Makes the text and calls `done` with it on the io_context's thread, now or later.
  using Ask = std::function<void(Done done)>;

  static constexpr size_t kMaxConnections = 32;
  static constexpr uint32_t kMaxHeaderBytes = 8192;
  static constexpr std::chrono::seconds kIdle{60};
  static constexpr std::chrono::milliseconds kFresh{100};

  // Listens. Throws std::runtime_error with a message for the user. A Unix socket is its owner's
  // alone, and takes the place of one at which nobody answers.
  MetricsServer(boost::asio::io_context& io, const MetricsAddress& address,
                const char* content_type, Ask ask);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Returns the address as parse_metrics_address() takes it, with the port that the kernel chose
  // for port 0.
  std::string address() const;

 private:
  class Connection;
  using Protocol = boost::asio::generic::stream_protocol;

  void accept_next();
  void ask(Done done);
  void take(std::string text);

  boost::asio::io_context& io_;
  std::filesystem::path socket_path_;
  const char* content_type_;
  Ask ask_;
  boost::asio::basic_socket_acceptor<Protocol> acceptor_;
  boost::asio::steady_timer pause_;
  std::shared_ptr<size_t> connections_ = std::make_shared<size_t>(0);
  std::vector<Done> waiting_;
  std::string text_;
  std::chrono::steady_clock::time_point made_{};
};

}  // namespace rocemu::daemon
