// qp_scale: bandwidth of RDMA WRITEs over a few of many connected QPs.
//
//   qp_scale --from DEVICE --to DEVICE --qps N --active N [--message-bytes N] [--seconds S]
//
// Connects N pairs of QPs between the devices, prints "connected SECONDS" and waits for a line on
// its standard input, so that somebody can look at the NIC meanwhile. Then it keeps 128 WRITEs in
// flight over the active ones, evenly spread over all, and prints gigabytes (10^9) a second. Only
// the public libibverbs interface is used, so it runs on any RDMA device.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "tests/bench/arguments.h"
#include "tests/e2e/tools/failure.h"
#include "tests/e2e/tools/verbs_objects.h"

using namespace rocemu::e2e;

namespace {

constexpr uint32_t kInFlight = 128;

struct Options {
  std::string from = "rocemu0", to = "rocemu1";
  int gid_index = 1;
  uint32_t qps = 1, active = 1;
  uint32_t message_bytes = 65536;
  double seconds = 1;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

QpPtr make_qp(const Device& device, ibv_cq* cq, uint32_t depth) {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {.max_send_wr = depth,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  return QpPtr(must(ibv_create_qp(device.pd.get(), &attr), "ibv_create_qp"));
}

class Traffic {
 public:
  explicit Traffic(const Options& options)
      : options_(options),
        depth_((kInFlight + options.active - 1) / options.active),
        a_(open_device(options.from, options.gid_index)),
        b_(open_device(options.to, options.gid_index)),
        source_(options.message_bytes),
        target_(options.message_bytes),
        source_mr_(must_register(a_, source_)),
        target_mr_(must_register(b_, target_)),
        cq_a_(must(ibv_create_cq(a_.context.get(), 2 * kInFlight, nullptr, nullptr, 0), "cq")),
        cq_b_(must(ibv_create_cq(b_.context.get(), 16, nullptr, nullptr, 0), "cq")) {
    std::memset(source_.data(), 0x5a, source_.bytes());
    std::memset(target_.data(), 0, target_.bytes());
    RcOptions rc;
    rc.path_mtu = IBV_MTU_4096;
    for (uint32_t i = 0; i < options.qps; ++i) {
      senders_.push_back(make_qp(a_, cq_a_.get(), depth_));
      receivers_.push_back(make_qp(b_, cq_b_.get(), 1));
      connect_pair(senders_.back().get(), a_, receivers_.back().get(), b_, rc);
    }
  }

  double run() {
    const uint32_t stride = options_.qps / options_.active;
    for (uint32_t i = 0; i < options_.active; ++i)
      for (uint32_t j = 0; j < depth_; ++j) post(i * stride);
    const auto start = Clock::now();
    uint64_t messages = 0;
    double elapsed = 0;
    do {
      ibv_wc completions[32];
      const int count = ibv_poll_cq(cq_a_.get(), 32, completions);
      if (count < 0) fail("ibv_poll_cq failed");
      for (int i = 0; i < count; ++i) {
        if (completions[i].status != IBV_WC_SUCCESS) fail("%s", wc_text(completions[i]).c_str());
        post(static_cast<uint32_t>(completions[i].wr_id));
      }
      messages += static_cast<uint64_t>(count);
      if (count > 0) elapsed = seconds_since(start);
    } while (elapsed < options_.seconds);
    return static_cast<double>(messages) * options_.message_bytes / elapsed;
  }

 private:
  static MrPtr must_register(const Device& device, const Memory& memory) {
    return MrPtr(must(register_memory(device.pd.get(), memory.data(), memory.bytes(),
                                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
                          .release(),
                      "ibv_reg_mr"));
  }

  void post(uint32_t qp) {
    ibv_sge sge{source_.address(), options_.message_bytes, source_mr_->lkey};
    ibv_send_wr wr{};
    wr.wr_id = qp;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {target_.address(), target_mr_->rkey};
    ibv_send_wr* bad = nullptr;
    must(ibv_post_send(senders_[qp].get(), &wr, &bad), "ibv_post_send");
  }

  Options options_;
  uint32_t depth_;
  Device a_, b_;
  Memory source_, target_;
  MrPtr source_mr_, target_mr_;
  CqPtr cq_a_, cq_b_;
  std::vector<QpPtr> senders_, receivers_;
};

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  rocemu::bench::Arguments arguments("Bandwidth over a few of many connected QPs");
  arguments.text("--from", options.from, "Device that writes");
  arguments.text("--to", options.to, "Device that is written to");
  arguments.index("--gid-index", options.gid_index, "Of both devices");
  arguments.count("--qps", options.qps, "Connected QPs");
  arguments.count("--active", options.active, "How many of them work");
  arguments.count("--message-bytes", options.message_bytes, "One WRITE");
  arguments.seconds(options.seconds);
  if (const auto code = arguments.parse(argc, argv)) return *code;
  if (options.active > options.qps) fail("more active QPs than QPs");

  const auto start = Clock::now();
  Traffic traffic(options);
  std::cout << "connected " << seconds_since(start) << std::endl;
  std::string line;
  std::getline(std::cin, line);
  std::printf("%.3f\n", traffic.run() / 1e9);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "qp_scale: %s\n", error.what());
  return 1;
}
