// Control messages in any order and state of repair, from programs that use what they make at the
// same time. The input draws datagrams (datagram.h), which sessions of rocemud carry out on a
// device; answers are held against a model of each program (client.h).
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "base/time.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/control/client.h"
#include "tests/fuzz/control/datagram.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/nic/inline_engine.h"
#include "tests/fuzz/nic/loopback.h"

namespace {

using namespace rocemu;
using namespace rocemu::fuzz;

constexpr uint32_t kMaxSteps = 300;
constexpr size_t kClients = 2;

class Control {
 public:
  explicit Control(ByteSource& input) : input_(input) {
    inspection_.watch(0, hca_);
    for (auto& client : clients_) connect(client);
  }

  void run() {
    for (uint32_t i = 0; i < kMaxSteps && !input_.empty(); ++i) {
      step();
      check();
    }
    for (auto& client : clients_) client.reset();
    check();
    expect(hca_.endpoint().qp_count() == 0, "no QP is left");
    expect(!hca_.endpoint().wants_transmit(), "without QPs there is nothing to send");
    expect(hca_.endpoint().next_deadline() == kNever, "without QPs no timers");
    hca_.publish_completions(0);
  }

 private:
  void connect(std::unique_ptr<Client>& client) {
    const auto token = static_cast<uint64_t>(&client - clients_.data());
    client = std::make_unique<Client>(host_, engine_, xrc_file_.fd(), token);
  }

  void step() {
    const uint8_t choice = input_.u8();
    auto& client = clients_[choice % kClients];
    switch (choice / kClients % 8) {
      case 0:
        return turn();
      case 1:
        return post(*client);
      case 2:
        // The program is killed, another one comes.
        if (choice < 0xf0) break;
        client.reset();
        return connect(client);
      case 3:
        for (uint32_t i = input_.below(12); i > 0; --i)
          client->send(next_datagram(hca_.config(), client->model()));
        return;
      default:
        break;
    }
    if (!client->send(draw_datagram(input_, hca_.config(), client->model()))) {
      client.reset();
      connect(client);
    }
  }

  void turn() {
    now_ns_ += input_.pick<TimeNs>({1000, 100'000'000});
    engine_.advance_to(now_ns_);
    reads_events_ = !reads_events_;
    for (const auto& client : clients_) {
      client->scan_doorbells();
      if (reads_events_) client->read_events();
    }
    wire_.turn(hca_, now_ns_);
  }

  // A request over a region of the program, as often as not with rights.
  void post(Client& client) {
    struct {
      rocemu_send_wqe wqe{};
      rocemu_sge sge{};
    } entry;
    const Model& model = client.model();
    const uint32_t key = model.mrs.empty() ? 0 : model.mrs.begin()->second.key;
    entry.wqe.opcode = static_cast<uint8_t>(input_.below(16));
    entry.wqe.flags = static_cast<uint8_t>(input_.below(16));
    entry.wqe.num_sge = static_cast<uint16_t>(input_.below(3));
    entry.wqe.remote_address = Client::kAddress + input_.u8() * 8u;
    entry.wqe.rkey = key;
    entry.wqe.imm_or_rkey = key;
    entry.wqe.compare_add = 64;
    entry.wqe.ah = input_.below(3);
    entry.wqe.remote_qpn = remote_number(model);
    entry.sge = {Client::kAddress + input_.u8(), input_.pick<uint32_t>({8, 64, 3000}), key};
    client.scribble(input_.u8(), std::as_bytes(std::span(&entry, 1)));
  }

  // A QP's for UD, an SRQ's for XRC.
  uint32_t remote_number(const Model& model) {
    if (input_.flag()) return model.srqs.empty() ? 0 : model.srqs.begin()->second.number;
    return model.qps.empty() ? 0 : model.qps.begin()->second.qpn;
  }

  void check() {
    device::ObjectCounts expected;
    std::map<uint64_t, uint64_t> dm_bytes;  // by memory
    for (const auto& client : clients_) {
      if (!client) continue;
      const Model& model = client->model();
      ++expected.contexts;
      expected.pds += static_cast<uint32_t>(model.pds.size());
      expected.mrs += static_cast<uint32_t>(model.mrs.size());
      expected.channels += static_cast<uint32_t>(model.channels.size());
      expected.cqs += static_cast<uint32_t>(model.cqs.size());
      expected.qps += static_cast<uint32_t>(model.qps.size());
      expected.mws += static_cast<uint32_t>(model.mws.size());
      expected.ahs += static_cast<uint32_t>(model.ahs.size());
      expected.srqs += static_cast<uint32_t>(model.srqs.size());
      expected.xrcds += static_cast<uint32_t>(model.xrcds.size());
      for (const auto& [handle, dm] : model.dms) dm_bytes[dm.memory] = dm.bytes;
    }
    for (const auto& [memory, bytes] : dm_bytes) expected.dm_bytes += bytes;
    const device::ObjectCounts counts = hca_.counts();
    expect(counts.contexts == expected.contexts && counts.pds == expected.pds &&
               counts.mrs == expected.mrs && counts.channels == expected.channels &&
               counts.cqs == expected.cqs && counts.qps == expected.qps &&
               counts.mws == expected.mws && counts.ahs == expected.ahs &&
               counts.srqs == expected.srqs && counts.xrcds == expected.xrcds &&
               counts.dm_bytes == expected.dm_bytes,
           "objects are counted");
    const device::DeviceLimits& limits = hca_.config().limits;
    expect(counts.pds <= limits.max_pd && counts.mrs <= limits.max_mr &&
               counts.channels <= limits.max_channels && counts.cqs <= limits.max_cq &&
               counts.qps <= limits.max_qp && counts.mws <= limits.max_mw &&
               counts.ahs <= limits.max_ah && counts.srqs <= limits.max_srq &&
               counts.xrcds <= limits.max_xrcd && counts.dm_bytes <= limits.max_dm_size,
           "limits hold");
  }

  ByteSource& input_;
  TimeNs now_ns_ = 1000;
  bool reads_events_ = false;
  std::vector<device::HcaConfig> devices_{small_device()};
  Loopback wire_{devices_[0].port};
  inspection::Inspection inspection_{1};
  device::Hca hca_{devices_[0], {}, wire_, inspection_.decorate(0)};
  InlineEngine engine_{hca_};
  NoAdministration administration_;
  daemon::SessionHost host_{devices_, engine_, administration_, {}, {}, {}, nullptr, &inspection_};
  daemon::SharedMemory xrc_file_{"fuzz-xrc", 4096};
  std::array<std::unique_ptr<Client>, kClients> clients_;
};

}  // namespace

// libFuzzer looks for leaks between inputs, and what a thread of the reaper (base/reaper) starts
// with belongs to nobody while the kernel makes the thread.
extern "C" const char* __lsan_default_suppressions() { return "leak:Reaper::start_thread\n"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  ByteSource input(data, size_bytes);
  Control(input).run();
  return 0;
}
