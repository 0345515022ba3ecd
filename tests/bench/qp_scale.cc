// qp_scale: bandwidth of RDMA WRITEs over a few of many connected QPs.
//
//   qp_scale --from DEVICE --to DEVICE --qps N --active N [--message-bytes N] [--seconds S]
//   qp_scale --devices N --qps N --active N ...
//
// Connects N pairs of QPs between two devices, or from each of the first N devices to each other in
// turn, prints "connected SECONDS" and waits for a line on its standard input, so that somebody can
// look at the NIC meanwhile. Then it keeps 128 WRITEs in flight over the active ones, and one in
// each at least, evenly spread over all, and prints gigabytes (10^9) a second. Only the public
// libibverbs interface is used, so it runs on any RDMA device.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
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
  uint32_t devices = 0;  // 0: `from` and `to`
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

// A device with what all of its QPs write from and to.
struct Host {
  Host(const std::string& name, int gid_index, const Memory& source, const Memory& target,
       uint32_t cq_entries)
      : device(open_device(name, gid_index)),
        source_mr(must_register(source)),
        target_mr(must_register(target)),
        cq(must(
            ibv_create_cq(device.context.get(), static_cast<int>(cq_entries), nullptr, nullptr, 0),
            "ibv_create_cq")) {}

  MrPtr must_register(const Memory& memory) const {
    return MrPtr(must(register_memory(device.pd.get(), memory.data(), memory.bytes(),
                                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
                          .release(),
                      "ibv_reg_mr"));
  }

  Device device;
  MrPtr source_mr, target_mr;
  CqPtr cq;
};

struct Connection {
  const Host* from;
  const Host* to;
  QpPtr sender, receiver;
};

std::vector<std::string> names_of_devices(const Options& options) {
  if (options.devices == 0) return {options.from, options.to};
  int count = 0;
  std::unique_ptr<ibv_device*[], void (*)(ibv_device**)> list(ibv_get_device_list(&count),
                                                              ibv_free_device_list);
  if (!list || static_cast<uint32_t>(count) < options.devices)
    fail("%d devices, fewer than %u", count, options.devices);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < options.devices; ++i) names.emplace_back(ibv_get_device_name(list[i]));
  return names;
}

// Who writes to whom, as indices of devices.
std::vector<std::pair<size_t, size_t>> directions(const Options& options) {
  if (options.devices == 0) return {{0, 1}};
  std::vector<std::pair<size_t, size_t>> all;
  // By distance, so that the first QPs are of different devices.
  for (size_t distance = 1; distance < options.devices; ++distance)
    for (size_t from = 0; from < options.devices; ++from)
      all.emplace_back(from, (from + distance) % options.devices);
  return all;
}

class Traffic {
 public:
  explicit Traffic(const Options& options)
      : options_(options),
        depth_((kInFlight + options.active - 1) / options.active),
        source_(options.message_bytes),
        target_(options.message_bytes) {
    std::memset(source_.data(), 0x5a, source_.bytes());
    std::memset(target_.data(), 0, target_.bytes());
    const auto names = names_of_devices(options);
    const auto pairs = directions(options);
    const auto senders = options.devices == 0 ? 1 : options.devices;
    const uint32_t active_of_each = (options.active + senders - 1) / senders;
    for (const std::string& name : names)
      hosts_.push_back(std::make_unique<Host>(name, options.gid_index, source_, target_,
                                              depth_ * active_of_each + kInFlight));
    RcOptions rc;
    rc.path_mtu = IBV_MTU_4096;
    for (uint32_t i = 0; i < options.qps; ++i) {
      const auto [from, to] = pairs[i % pairs.size()];
      const Host &a = *hosts_[from], &b = *hosts_[to];
      connections_.push_back(
          {&a, &b, make_qp(a.device, a.cq.get(), depth_), make_qp(b.device, b.cq.get(), 1)});
      connect_pair(connections_.back().sender.get(), a.device, connections_.back().receiver.get(),
                   b.device, rc);
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
      int completed = 0;
      for (const auto& host : hosts_) completed += reap(*host);
      messages += static_cast<uint64_t>(completed);
      if (completed > 0) elapsed = seconds_since(start);
    } while (elapsed < options_.seconds);
    return static_cast<double>(messages) * options_.message_bytes / elapsed;
  }

 private:
  // Posts anew what has completed, and says how many those were.
  int reap(const Host& host) {
    ibv_wc completions[32];
    const int count = ibv_poll_cq(host.cq.get(), 32, completions);
    if (count < 0) fail("ibv_poll_cq failed");
    for (int i = 0; i < count; ++i) {
      if (completions[i].status != IBV_WC_SUCCESS) fail("%s", wc_text(completions[i]).c_str());
      post(static_cast<uint32_t>(completions[i].wr_id));
    }
    return count;
  }

  void post(uint32_t qp) {
    const Connection& connection = connections_[qp];
    ibv_sge sge{source_.address(), options_.message_bytes, connection.from->source_mr->lkey};
    ibv_send_wr wr{};
    wr.wr_id = qp;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {target_.address(), connection.to->target_mr->rkey};
    ibv_send_wr* bad = nullptr;
    must(ibv_post_send(connection.sender.get(), &wr, &bad), "ibv_post_send");
  }

  Options options_;
  uint32_t depth_;
  Memory source_, target_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Connection> connections_;
};

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  rocemu::bench::Arguments arguments("Bandwidth over a few of many connected QPs");
  arguments.text("--from", options.from, "Device that writes");
  arguments.text("--to", options.to, "Device that is written to");
  arguments.count("--devices", options.devices, "All to all among so many, instead of these two");
  arguments.index("--gid-index", options.gid_index, "Of all devices");
  arguments.count("--qps", options.qps, "Connected QPs");
  arguments.count("--active", options.active, "How many of them work");
  arguments.count("--message-bytes", options.message_bytes, "One WRITE");
  arguments.seconds(options.seconds);
  if (const auto code = arguments.parse(argc, argv)) return *code;
  if (options.active > options.qps) fail("more active QPs than QPs");
  if (options.devices == 1) fail("one device has none to write to");

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
