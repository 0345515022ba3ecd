// round_trips: how long a small message and its answer take, beside whatever else the machine does.
//
//   round_trips [--tcp | --from DEVICE --to DEVICE] [--message-bytes N] [--seconds S]
//
// Two threads, each at one end: one sends and waits for the answer, the other one answers. By RC
// SEND, both poll; by TCP over the loopback interface, both wait in recv(2). Prints "ready", waits
// for a line on its standard input, and then prints the median, the 99th percentile and the worst
// of the round trips in microseconds, and how many there were. Only the public libibverbs interface
// is used, so it runs on any RDMA device.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/arguments.h"
#include "tests/e2e/tools/failure.h"
#include "tests/e2e/tools/verbs_objects.h"

using namespace rocemu::e2e;

namespace {

struct Options {
  std::string from = "rocemu0", to = "rocemu1";
  int gid_index = 1;
  bool tcp = false;
  uint32_t message_bytes = 64;
  double seconds = 5;
};

// One end of a connection that carries messages of one size. receive() is false when it has ended.
class End {
 public:
  virtual ~End() = default;
  virtual void send() = 0;
  virtual bool receive() = 0;
  virtual void close() = 0;  // no message follows
};

std::atomic<bool> over{false};

class VerbsEnd final : public End {
 public:
  VerbsEnd(const std::string& device, const Options& options)
      : device_(open_device(device, options.gid_index)),
        memory_(options.message_bytes),
        mr_(register_memory(device_.pd.get(), memory_.data(), memory_.bytes(),
                            IBV_ACCESS_LOCAL_WRITE)),
        cq_(must(ibv_create_cq(device_.context.get(), 16, nullptr, nullptr, 0), "ibv_create_cq")) {
    must(mr_.get(), "ibv_reg_mr");
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_.get();
    attr.qp_type = IBV_QPT_RC;
    attr.sq_sig_all = 1;
    attr.cap = {.max_send_wr = 4,
                .max_recv_wr = 4,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    qp_.reset(must(ibv_create_qp(device_.pd.get(), &attr), "ibv_create_qp"));
  }

  void connect(VerbsEnd& peer) {
    connect_pair(qp_.get(), device_, peer.qp_.get(), peer.device_, {});
    for (VerbsEnd* end : {this, &peer}) end->post_receive();
  }

  void send() override {
    ibv_sge sge = place();
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    must(ibv_post_send(qp_.get(), &wr, &bad), "ibv_post_send");
  }

  bool receive() override {
    while (!over.load(std::memory_order_relaxed)) {
      ibv_wc wc;
      const int count = ibv_poll_cq(cq_.get(), 1, &wc);
      if (count < 0) fail("ibv_poll_cq failed");
      if (count == 0) continue;
      if (wc.status != IBV_WC_SUCCESS) fail("%s", wc_text(wc).c_str());
      if (wc.opcode != IBV_WC_RECV) continue;
      post_receive();
      return true;
    }
    return false;
  }

  void close() override { over = true; }

 private:
  ibv_sge place() const { return {memory_.address(), uint32_t(memory_.bytes()), mr_->lkey}; }

  void post_receive() {
    ibv_sge sge = place();
    ibv_recv_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    must(ibv_post_recv(qp_.get(), &wr, &bad), "ibv_post_recv");
  }

  Device device_;
  Memory memory_;
  MrPtr mr_;
  CqPtr cq_;
  QpPtr qp_;
};

class TcpEnd final : public End {
 public:
  TcpEnd(int fd, const Options& options) : fd_(fd), buffer_(options.message_bytes) {
    const int one = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  }
  ~TcpEnd() override { ::close(fd_); }

  void send() override {
    if (::send(fd_, buffer_.data(), buffer_.size(), MSG_NOSIGNAL) < 0) fail("send failed");
  }
  bool receive() override {
    const ssize_t got = ::recv(fd_, buffer_.data(), buffer_.size(), MSG_WAITALL);
    return got == static_cast<ssize_t>(buffer_.size());
  }
  void close() override { ::shutdown(fd_, SHUT_RDWR); }

 private:
  int fd_;
  std::vector<char> buffer_;
};

struct Ends {
  std::unique_ptr<End> asks, answers;
};

Ends connect_by_verbs(const Options& options) {
  auto a = std::make_unique<VerbsEnd>(options.from, options);
  auto b = std::make_unique<VerbsEnd>(options.to, options);
  a->connect(*b);
  return {std::move(a), std::move(b)};
}

Ends connect_by_tcp(const Options& options) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::bind(listener, any, length) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, any, &length) != 0)
    fail("cannot listen");
  const int a = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(a, any, length) != 0) fail("cannot connect");
  const int b = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  return {std::make_unique<TcpEnd>(a, options), std::make_unique<TcpEnd>(b, options)};
}

std::vector<double> measure(Ends& ends, double seconds) {
  std::thread answerer([&] {
    while (ends.answers->receive()) ends.answers->send();
  });
  std::vector<double> trips_us;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto before = Clock::now();
  do {
    ends.asks->send();
    ends.asks->receive();
    const auto after = Clock::now();
    trips_us.push_back(std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  } while (before < end);
  ends.asks->close();
  answerer.join();
  return trips_us;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  rocemu::bench::Arguments arguments("Round trips of a small message");
  arguments.flag("--tcp", options.tcp, "Over TCP instead of verbs");
  arguments.text("--from", options.from, "Device that asks");
  arguments.text("--to", options.to, "Device that answers");
  arguments.index("--gid-index", options.gid_index, "Of both devices");
  arguments.count("--message-bytes", options.message_bytes, "One message");
  arguments.seconds(options.seconds);
  if (const auto code = arguments.parse(argc, argv)) return *code;

  Ends ends = options.tcp ? connect_by_tcp(options) : connect_by_verbs(options);
  std::cout << "ready" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  std::vector<double> trips_us = measure(ends, options.seconds);
  std::ranges::sort(trips_us);
  const size_t count = trips_us.size();
  std::printf("%.1f %.1f %.1f %zu\n", trips_us[count / 2], trips_us[count * 99 / 100],
              trips_us.back(), count);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "round_trips: %s\n", error.what());
  return 1;
}
