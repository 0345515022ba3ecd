// interop_scenario NAME DEVICE GID_INDEX TCP_PORT [HOST]
//
// One end of one scenario: the requester with HOST, else the responder. Prints one line of what
// this end saw, in words that depend on no address and no timing, so that the lines of two pairs of
// devices can be compared: completions in order, the QP's state afterwards, async events, whether
// the bytes are as they must be. Exit code 1 only when the scenario could not be carried out, or
// when other bytes came than were sent; a completion with an error is a finding like any other.
#include "tests/interop/scenario.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/tools/failure.h"
#include "tests/e2e/tools/verbs_objects.h"
#include "tests/interop/meeting.h"

namespace rocemu::interop {
namespace {

using e2e::must;

constexpr uint32_t kMessageBytes = 10000;  // several packets of every path MTU
constexpr uint32_t kDatagramBytes = 1000;
constexpr uint32_t kAtomicBytes = 8;
constexpr uint32_t kGrhBytes = 40;
constexpr size_t kRegionBytes = 16384;
constexpr uint32_t kWrongKeyBits = 0x00ff0000;
constexpr uint32_t kQkey = 0x1badcafe;
constexpr uint32_t kImmediate = 0xabcd0123;
constexpr uint64_t kWordBefore = 0x1122334455667788;
constexpr uint64_t kOperand = 0x0101010101010101;
constexpr std::chrono::milliseconds kPatience{30000};
constexpr std::chrono::milliseconds kQuiet{300};

struct Address {
  uint32_t qpn = 0, psn = 0, rkey = 0;
  uint64_t address = 0;
  ibv_gid gid{};
};

bool is_atomic(const Scenario& scenario) {
  return scenario.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
         scenario.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

std::byte pattern(size_t i, bool requester) {
  return static_cast<std::byte>(requester ? i * 7 + 1 : i * 5 + 129);
}

std::string status_text(const ibv_wc& wc) { return ibv_wc_status_str(wc.status); }

class End {
 public:
  End(const Scenario& scenario, const std::string& device, int gid_index, uint16_t port,
      const std::string& host)
      : scenario_(scenario),
        requester_(!host.empty()),
        device_(e2e::open_device(device, gid_index)),
        memory_(kRegionBytes),
        meeting_(host, port) {
    for (size_t i = 0; i < memory_.bytes(); ++i) memory_.data()[i] = pattern(i, requester_);
    if (is_atomic(scenario)) std::memcpy(memory_.data(), &kWordBefore, sizeof kWordBefore);
    unsigned access = IBV_ACCESS_LOCAL_WRITE;
    if (scenario.fault != Fault::no_right)
      access |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    mr_.reset(
        must(e2e::register_memory(device_.pd.get(), memory_.data(), kRegionBytes, access).release(),
             "ibv_reg_mr"));
    cq_.reset(must(ibv_create_cq(device_.context.get(), 16, nullptr, nullptr, 0), "ibv_create_cq"));
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_.get();
    attr.qp_type = scenario.datagram ? IBV_QPT_UD : IBV_QPT_RC;
    attr.sq_sig_all = 1;
    attr.cap = {.max_send_wr = 4,
                .max_recv_wr = 4,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    qp_.reset(must(ibv_create_qp(device_.pd.get(), &attr), "ibv_create_qp"));
    own_ = {qp_->qp_num, requester_ ? 0x112233u : 0xfffffeu, mr_->rkey, memory_.address(),
            device_.gid};
  }

  int run() {
    exchange_addresses();
    connect();
    if (!requester_) {
      post_receive();
      if (scenario_.fault == Fault::nobody_answers) qp_.reset();
    }
    meeting_.keep_step("ready");
    if (requester_) request();
    meeting_.keep_step("done");
    report();
    meeting_.keep_step("reported");
    return bytes_ == "other bytes" ? 1 : 0;
  }

 private:
  uint32_t message_bytes() const {
    if (is_atomic(scenario_)) return kAtomicBytes;
    return scenario_.datagram ? kDatagramBytes : kMessageBytes;
  }

  void exchange_addresses() {
    std::ostringstream text;
    text << std::hex << own_.qpn << ' ' << own_.psn << ' ' << own_.rkey << ' ' << own_.address;
    for (const uint8_t byte : own_.gid.raw) text << ' ' << static_cast<unsigned>(byte);
    meeting_.say(text.str());
    std::istringstream heard(meeting_.hear());
    heard >> std::hex >> peer_.qpn >> peer_.psn >> peer_.rkey >> peer_.address;
    for (uint8_t& byte : peer_.gid.raw) {
      unsigned value = 0;
      heard >> value;
      byte = static_cast<uint8_t>(value);
    }
    if (!heard) e2e::fail("the other end's address is not understood");
  }

  void connect() {
    if (scenario_.datagram) {
      e2e::QpChange change = e2e::change_to(IBV_QPS_INIT);
      change.attr.port_num = e2e::kPort;
      change.attr.qkey = kQkey;
      change.mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
      must(change.apply(qp_.get()), "ibv_modify_qp to INIT");
      must(e2e::change_to(IBV_QPS_RTR).apply(qp_.get()), "ibv_modify_qp to RTR");
      change = e2e::change_to(IBV_QPS_RTS);
      change.attr.sq_psn = own_.psn;
      change.mask |= IBV_QP_SQ_PSN;
      must(change.apply(qp_.get()), "ibv_modify_qp to RTS");
      return;
    }
    e2e::RcOptions options;
    options.access |= IBV_ACCESS_REMOTE_ATOMIC;
    options.sq_psn = own_.psn;
    options.rq_psn = peer_.psn;
    options.timeout = 15;  // 134 ms, which an emulated machine may need
    options.retry_cnt = scenario_.fault == Fault::nobody_answers ? 2 : 6;
    options.rnr_retry = scenario_.fault == Fault::no_receive ? 2 : 7;
    options.min_rnr_timer = 14;  // 1 ms
    e2e::connect_one(qp_.get(), device_, options, peer_.gid, 0, peer_.qpn);
  }

  void post_receive() {
    if (scenario_.fault == Fault::no_receive) return;
    ibv_sge sge{memory_.address(), kRegionBytes, mr_->lkey};
    if (scenario_.fault == Fault::short_receive) sge.length = message_bytes() - 1;
    ibv_recv_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    must(ibv_post_recv(qp_.get(), &wr, &bad), "ibv_post_recv");
  }

  // The request itself, and after a connection's faulty one another that must not be carried out.
  void request() {
    ibv_sge sge{memory_.address(), message_bytes(), mr_->lkey};
    ibv_send_wr wr{};
    wr.opcode = scenario_.opcode;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.imm_data = htonl(kImmediate);
    ibv_ah* handle = nullptr;
    if (scenario_.datagram) {
      ibv_ah_attr path{};
      path.is_global = 1;
      path.port_num = e2e::kPort;
      path.grh.dgid = peer_.gid;
      path.grh.sgid_index = device_.gid_index;
      path.grh.hop_limit = 64;
      handle = must(ibv_create_ah(device_.pd.get(), &path), "ibv_create_ah");
      wr.wr.ud.ah = handle;
      wr.wr.ud.remote_qpn = peer_.qpn;
      wr.wr.ud.remote_qkey = kQkey;
    } else {
      uint64_t address = peer_.address;
      uint32_t rkey = peer_.rkey;
      if (scenario_.fault == Fault::wrong_key) rkey ^= kWrongKeyBits;
      if (scenario_.fault == Fault::behind_the_region)
        address += kRegionBytes - message_bytes() + 1;
      if (is_atomic(scenario_)) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.rkey = rkey;
        const bool swap = scenario_.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
        wr.wr.atomic.compare_add = swap ? kWordBefore : kOperand;
        wr.wr.atomic.swap = kOperand;
      } else {
        wr.wr.rdma.remote_addr = address;
        wr.wr.rdma.rkey = rkey;
      }
    }
    const unsigned count = scenario_.fault == Fault::none ? 1 : 2;
    for (unsigned i = 0; i < count; ++i) {
      ibv_send_wr* bad = nullptr;
      must(ibv_post_send(qp_.get(), &wr, &bad), "ibv_post_send");
    }
    for (unsigned i = 0; i < count; ++i) {
      const auto wc = e2e::poll_one(cq_.get(), kPatience);
      if (!wc) e2e::fail("no completion");
      completions_.push_back(status_text(*wc));
    }
    if (handle != nullptr) must(ibv_destroy_ah(handle), "ibv_destroy_ah");
  }

  void report() {
    // What was posted last may still be on its way to this end's queues.
    while (const auto wc = e2e::poll_one(cq_.get(), kQuiet)) {
      std::string text = status_text(*wc);
      if (wc->status == IBV_WC_SUCCESS) {
        text += ", " + std::to_string(wc->byte_len) + " bytes";
        if ((wc->wc_flags & IBV_WC_WITH_IMM) != 0)
          text += ntohl(wc->imm_data) == kImmediate ? ", immediate" : ", other immediate";
      }
      completions_.push_back(text);
    }
    check_bytes();
    std::printf("%s: ", requester_ ? "requester" : "responder");
    for (const std::string& text : completions_) std::printf("%s; ", text.c_str());
    if (qp_) std::printf("state %d; ", e2e::query_state(qp_.get()));
    std::printf("%s\n", bytes_.c_str());
    for (const std::string& text : events()) std::printf("event: %s\n", text.c_str());
  }

  std::set<std::string> events() {
    std::set<std::string> found;
    pollfd fd{device_.context->async_fd, POLLIN, 0};
    while (::poll(&fd, 1, 0) == 1) {
      ibv_async_event event{};
      if (ibv_get_async_event(device_.context.get(), &event) != 0) break;
      // Whether it comes is a matter of what arrives first.
      if (event.event_type != IBV_EVENT_COMM_EST)
        found.insert(ibv_event_type_str(event.event_type));
      ibv_ack_async_event(&event);
    }
    return found;
  }

  void check_bytes() {
    if (scenario_.fault != Fault::none) {
      // Nothing of the other end's may have come here, but for what a message that was too long
      // left in its receive, and all of a WRITE that then finds no receive for its immediate.
      bytes_ = "untouched";
      if (scenario_.fault == Fault::short_receive || scenario_.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        return;
      for (size_t i = is_atomic(scenario_) ? kAtomicBytes : 0; i < kRegionBytes; ++i)
        if (memory_.data()[i] != pattern(i, requester_)) bytes_ = "other bytes";
      if (is_atomic(scenario_) && word() != kWordBefore) bytes_ = "other bytes";
      return;
    }
    bool right = true;
    if (is_atomic(scenario_)) {
      const uint64_t after =
          scenario_.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? kOperand : kWordBefore + kOperand;
      right = word() == (requester_ ? kWordBefore : after);
    } else {
      const bool taken = requester_ == (scenario_.opcode == IBV_WR_RDMA_READ);
      const size_t offset = taken && scenario_.datagram ? kGrhBytes : 0;
      for (size_t i = 0; i < message_bytes(); ++i)
        right &= memory_.data()[offset + i] == pattern(i, taken != requester_);
    }
    bytes_ = right ? "right bytes" : "other bytes";
  }

  uint64_t word() const {
    uint64_t value;
    std::memcpy(&value, memory_.data(), sizeof value);
    return value;
  }

  const Scenario& scenario_;
  bool requester_;
  e2e::Device device_;
  e2e::Memory memory_;
  e2e::MrPtr mr_;
  e2e::CqPtr cq_;
  e2e::QpPtr qp_;
  Meeting meeting_;
  Address own_, peer_;
  std::vector<std::string> completions_;
  std::string bytes_;
};

int main_of(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const Scenario& scenario : scenarios()) std::printf("%s\n", scenario.name.data());
    return 0;
  }
  const Scenario* const scenario = argc > 1 ? find_scenario(argv[1]) : nullptr;
  if (scenario == nullptr || argc < 5 || argc > 6) {
    std::fprintf(stderr, "interop_scenario --list | NAME DEVICE GID_INDEX TCP_PORT [HOST]\n");
    return 2;
  }
  End end(*scenario, argv[2], std::stoi(argv[3]), static_cast<uint16_t>(std::stoi(argv[4])),
          argc == 6 ? argv[5] : "");
  return end.run();
}

}  // namespace
}  // namespace rocemu::interop

int main(int argc, char** argv) {
  try {
    return rocemu::interop::main_of(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "interop_scenario: %s\n", failure.what());
    return 1;
  }
}
