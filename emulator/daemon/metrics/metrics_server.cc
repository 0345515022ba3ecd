#include "emulator/daemon/metrics/metrics_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

namespace rocemu::daemon {
namespace {

namespace http = boost::beast::http;
using boost::asio::generic::stream_protocol;
using boost::asio::ip::tcp;
using boost::system::error_code;
using Response = http::response<http::string_body>;

constexpr std::chrono::milliseconds kPause{100};  // when no connection can be accepted

// The endpoint is TCP's, in a type that may hold one of any protocol.
std::string text_of(const stream_protocol::endpoint& endpoint) {
  tcp::endpoint of_tcp;
  of_tcp.resize(endpoint.size());
  std::memcpy(of_tcp.data(), endpoint.data(), endpoint.size());
  const std::string host = of_tcp.address().to_string();
  return (of_tcp.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(of_tcp.port());
}

bool somebody_answers(boost::asio::io_context& io, const MetricsAddress& address) {
  stream_protocol::socket probe(io);
  error_code error;
  probe.connect(address.endpoint, error);
  return !error;
}

// What is no socket stays where it is, and lets bind fail.
void remove_stale_socket(boost::asio::io_context& io, const MetricsAddress& address) {
  struct stat info = {};
  const bool is_socket =
      ::lstat(address.socket.c_str(), &info) == 0 && (info.st_mode & S_IFMT) == S_IFSOCK;
  if (is_socket && !somebody_answers(io, address)) ::unlink(address.socket.c_str());
}

void bind_to(boost::asio::basic_socket_acceptor<stream_protocol>& acceptor,
             const MetricsAddress& address) {
  acceptor.open(address.endpoint.protocol());
  if (address.socket.empty()) {
    acceptor.set_option(boost::asio::socket_base::reuse_address(true));
    acceptor.bind(address.endpoint);
    return;
  }
  const mode_t before = ::umask(0177);
  error_code error;
  acceptor.bind(address.endpoint, error);
  ::umask(before);
  if (error) throw boost::system::system_error(error);
}

}  // namespace

// One connection; it keeps itself alive while something is under way. The server outlives the run
// of the io_context, and so every handler.
class MetricsServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(MetricsServer& server, stream_protocol::socket socket)
      : server_(server), open_(server.connections_), stream_(std::move(socket)) {
    ++*open_;
  }
  ~Connection() { --*open_; }

  void read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(0);
    stream_.expires_after(kIdle);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](const error_code& error, size_t) {
                       if (!error) self->on_request();
                     });
  }

 private:
  void on_request() {
    const auto& request = parser_->get();
    const auto target = request.target().substr(0, request.target().find('?'));
    if (request.method() != http::verb::get && request.method() != http::verb::head)
      return answer(http::status::method_not_allowed, "text/plain", "GET or HEAD\n");
    if (target == "/") return answer(http::status::ok, "text/plain", "See /metrics\n");
    if (target != "/metrics")
      return answer(http::status::not_found, "text/plain", "See /metrics\n");
    server_.ask([self = shared_from_this()](const std::string& text) {
      self->answer(http::status::ok, self->server_.content_type_, text);
    });
  }

  void answer(http::status status, const char* type, std::string text) {
    const auto& request = parser_->get();
    response_ = Response(status, request.version());
    response_.set(http::field::server, "rocemud");
    response_.set(http::field::content_type, type);
    if (status == http::status::method_not_allowed) response_.set(http::field::allow, "GET, HEAD");
    response_.keep_alive(request.keep_alive());
    response_.content_length(text.size());
    if (request.method() != http::verb::head) response_.body() = std::move(text);
    stream_.expires_after(kIdle);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](const error_code& error, size_t) {
                        if (!error && self->response_.keep_alive()) self->read();
                      });
  }

  MetricsServer& server_;
  std::shared_ptr<size_t> open_;
  boost::beast::basic_stream<stream_protocol> stream_;
  boost::beast::flat_buffer buffer_{kMaxHeaderBytes};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Response response_;
};

MetricsServer::MetricsServer(boost::asio::io_context& io, const MetricsAddress& address,
                             const char* content_type, Ask ask)
    : io_(io),
      socket_path_(address.socket),
      content_type_(content_type),
      ask_(std::move(ask)),
      acceptor_(io),
      pause_(io) {
  try {
    if (!socket_path_.empty()) remove_stale_socket(io, address);
    bind_to(acceptor_, address);
    acceptor_.listen();
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error(
        "--metrics: can't listen at " +
        (socket_path_.empty() ? text_of(address.endpoint) : socket_path_.string()) + ": " +
        error.code().message());
  }
  accept_next();
}

MetricsServer::~MetricsServer() {
  if (!socket_path_.empty()) ::unlink(socket_path_.c_str());
}

std::string MetricsServer::address() const {
  return socket_path_.empty() ? text_of(acceptor_.local_endpoint()) : socket_path_.string();
}

void MetricsServer::accept_next() {
  acceptor_.async_accept([this](const error_code& error, Protocol::socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    if (error) {
      // Out of descriptors, most likely: the connection stays in the backlog until there is one.
      pause_.expires_after(kPause);
      return pause_.async_wait([this](const error_code& ended) {
        if (!ended) accept_next();
      });
    }
    if (*connections_ < kMaxConnections)
      std::make_shared<Connection>(*this, std::move(socket))->read();
    accept_next();
  });
}

// Those that ask while a text is made get the same one.
void MetricsServer::ask(Done done) {
  if (!text_.empty() && std::chrono::steady_clock::now() - made_ < kFresh) return done(text_);
  waiting_.push_back(std::move(done));
  if (waiting_.size() == 1) ask_([this](std::string text) { take(std::move(text)); });
}

void MetricsServer::take(std::string text) {
  text_ = std::move(text);
  made_ = std::chrono::steady_clock::now();
  for (const Done& done : std::exchange(waiting_, {})) done(text_);
}

}  // namespace rocemu::daemon
