// Work queues, completion queues and doorbells that a hostile program scribbles on, between the
// NIC's turns and between any two of its accesses (access_trap.h). The input is a program of
// actions. A second, honest program uses the same device and must not notice.
#include <algorithm>
#include <array>

#include "base/time.h"
#include "base/verbs/numbers.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/nic/loopback.h"
#include "tests/fuzz/rings/access_trap.h"
#include "tests/fuzz/rings/program.h"

namespace {

using namespace rocemu;
using namespace rocemu::fuzz;

constexpr uint32_t kMaxSteps = 200;
constexpr size_t kMaxTrapped = 400;  // accesses of one input: each costs two signals
constexpr uint32_t kMaxTurns = 64;
constexpr uint8_t kWrOpcodes = verbs::wr_opcode::kAtomicWrite + 1;  // those of verbs, and some more
constexpr uint32_t kTsoHeaderBytes = 60;

// Ethernet, IPv4 and TCP with as few options as there can be.
std::array<std::byte, 54> tcp_headers() {
  std::array<std::byte, 54> headers{};
  headers[12] = std::byte{0x08};      // EtherType: IPv4
  headers[14] = std::byte{0x45};      // version, header length
  headers[23] = std::byte{6};         // protocol: TCP
  headers[46] = std::byte{0x5 << 4};  // data offset
  return headers;
}

rocemu_sge draw_sge(ByteSource& input, uint32_t key) {
  const uint8_t choice = input.u8();
  const auto length = input.pick<uint32_t>({16, 8, 0, 100, 1024, 3000, kProgramBytes, 0xffffffff});
  return {kProgramAddress + (choice & 0x3f) * 8u, length, choice < 0xf0 ? key : key + 1};
}

class Scribbles {
 public:
  explicit Scribbles(ByteSource& input)
      : input_(input),
        hca_(small_device(), {}, wire_),
        honest_(hca_, {}),
        hostile_(hca_, draw_options(input)),
        trap_([this](size_t piece, size_t offset) { on_access(piece, offset); }) {
    for (size_t i = 0; i < Program::kPieces; ++i) trap_.watch(hostile_.piece(i).nic);
    for (size_t i = 0; i < kQps; ++i) {
      hostile_.connect(i);
      honest_.connect(i);
    }
  }

  void run() {
    for (uint32_t i = 0; i < kMaxSteps && !input_.empty(); ++i) {
      step();
      check();
    }
    trap_.disarm();
    check_honest();
  }

 private:
  static Program::Options draw_options(ByteSource& input) {
    return {.cqe = input.pick<uint32_t>({8, 1, 100}),
            .entries = input.pick<uint32_t>({4, 1, 16, 0}),
            .sges = input.pick<uint32_t>({2, 1, 8, 0}),
            .inline_bytes = input.pick<uint32_t>({64, 0, 256}),
            .tso_header_bytes = input.below(4) == 3 ? kTsoHeaderBytes : 0};
  }

  void step() {
    const size_t qp = input_.below(kQps);
    switch (input_.below(12)) {
      case 0:
        return scribble(input_.below(Program::kPieces), input_.u16());
      case 1:
        return write_index(qp);
      case 2:
      case 3:
        return post_send(qp);
      case 4:
        return post_receive(qp);
      case 5:
        return hostile_.ring(qp);
      case 6:
        hostile_.completion_header().consumer = hostile_.completion_header().producer;
        hostile_.completion_header().arm = input_.below(4);
        return;
      case 7:
        return change_state(qp);
      case 8:
        now_ns_ += input_.pick<TimeNs>({1000, 10'000'000, 1'000'000'000});
        return turn();
      default:
        return turn();
    }
  }

  // With the trap armed, as often as an input may have it.
  template <class Call>
  void trapped(Call call) {
    trap_.arm(kMaxTrapped - trapped_);
    call();
    trap_.disarm();
  }

  void turn() {
    trapped([&] {
      hostile_.scan_doorbells();
      wire_.turn(hca_, now_ns_);
    });
  }

  void change_state(size_t qp) {
    const uint32_t choice = input_.below(3);
    trapped([&] {
      if (choice == 0) {
        hostile_.connect(qp);
      } else {
        hostile_.modify(qp, device::kState, choice == 1 ? 6 : 0);  // ERROR, RESET
      }
    });
  }

  void on_access(size_t piece, size_t offset) {
    expect(offset < hostile_.piece(piece).used_bytes, "only what the ring has is accessed");
    ++trapped_;
    const uint8_t choice = input_.u8();
    if (choice < 0xa0) return;
    if (piece < kQps && choice < 0xc0) return write_index(piece);
    scribble(piece, choice < 0xe0 ? offset + input_.below(64) : input_.u16());
  }

  // Any bytes anywhere in a piece.
  void scribble(size_t piece, size_t offset) {
    const std::span<std::byte> memory = hostile_.piece(piece).program;
    const uint32_t count = 1 + input_.below(8);
    for (uint32_t i = 0; i < count; ++i)
      memory[(offset + i) % memory.size()] = std::byte{input_.u8()};
  }

  void write_index(size_t qp) {
    rocemu_queue_header& header = hostile_.queue_header(qp);
    const uint8_t choice = input_.u8();
    uint32_t& index = (choice & 1) != 0 ? header.rq_producer : header.sq_producer;
    if ((choice & 2) != 0) {
      index += static_cast<uint32_t>(static_cast<int8_t>(input_.u8()));
    } else {
      index = input_.u32();
    }
  }

  void post_send(size_t qp) {
    if (hostile_.qp(qp).layout.send.entries == 0) return;
    rocemu_send_wqe wqe{};
    wqe.opcode = input_.u8() % kWrOpcodes;
    wqe.flags = static_cast<uint8_t>(input_.u8() & 0x1f);
    wqe.num_sge = static_cast<uint16_t>(input_.below(4));
    wqe.remote_address = kProgramAddress + 4096 + input_.u8() / 16 * 8u;
    wqe.rkey = hostile_.key();
    wqe.inline_bytes = input_.u16() % 400;
    const std::array headers = tcp_headers();
    const bool segments = wqe.opcode == verbs::wr_opcode::kTso && hostile_.sends_raw_packets();
    if (segments) {
      wqe.rkey = input_.pick<uint32_t>({64, 1, 0, 1400, 60'000, UINT32_MAX});  // of each segment
      wqe.inline_bytes = input_.pick<uint32_t>({54, kTsoHeaderBytes, kTsoHeaderBytes + 1, 10, 0});
    }
    std::array<rocemu_sge, 4> sges;
    const uint32_t room = std::min<uint32_t>(wqe.num_sge, hostile_.qp(qp).layout.send.max_sge);
    for (uint32_t i = 0; i < room; ++i) sges[i] = draw_sge(input_, hostile_.key());
    hostile_.post_send(qp, wqe, std::span(sges).first(room),
                       std::span(headers).first(segments ? headers.size() : 0));
    hostile_.ring(qp);
  }

  void post_receive(size_t qp) {
    if (hostile_.qp(qp).layout.receive.entries == 0) return;
    rocemu_recv_wqe wqe{};
    wqe.num_sge = input_.below(4);
    std::array<rocemu_sge, 4> sges;
    const uint32_t room = std::min(wqe.num_sge, hostile_.qp(qp).layout.receive.max_sge);
    for (uint32_t i = 0; i < room; ++i) sges[i] = draw_sge(input_, hostile_.key());
    hostile_.post_receive(qp, wqe, std::span(sges).first(room));
  }

  void check() {
    for (size_t i = 0; i < kQps; ++i) {
      const transport::QpLoad load = hca_.endpoint().load(hostile_.qp(i).qpn);
      expect(load.requests <= hostile_.qp(i).layout.send.entries + 1,
             "no more requests are under way than the ring holds");
    }
  }

  // One message between the honest program's QPs.
  void check_honest() {
    wire_.lose_frames();
    for (size_t i = 0; i < kQps; ++i) hostile_.modify(i, device::kState, 6);
    const rocemu_sge from{kProgramAddress, 100, honest_.key()};
    const rocemu_sge to{kProgramAddress + 200, 100, honest_.key()};
    rocemu_recv_wqe receive{};
    receive.wr_id = 1;
    receive.num_sge = 1;
    honest_.post_receive(1, receive, {&to, 1});
    rocemu_send_wqe send{};
    send.wr_id = 2;
    send.opcode = verbs::wr_opcode::kSend;
    send.flags = ROCEMU_SEND_SIGNALED;
    send.num_sge = 1;
    honest_.post_send(0, send, {&from, 1});
    honest_.ring(0);

    std::vector<rocemu_cqe> completions;
    for (uint32_t i = 0; i < kMaxTurns && completions.size() < 2; ++i) {
      honest_.scan_doorbells();
      wire_.turn(hca_, now_ns_);
      for (const rocemu_cqe& cqe : honest_.poll()) completions.push_back(cqe);
    }
    expect(completions.size() == 2, "the honest program's message arrives");
    for (const rocemu_cqe& cqe : completions)
      expect(cqe.status == 0, "the honest program does not notice");
  }

  ByteSource& input_;
  TimeNs now_ns_ = 1000;
  Loopback wire_{small_device().port};
  device::Hca hca_;
  Program honest_;
  Program hostile_;
  AccessTrap trap_;
  size_t trapped_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  ByteSource input(data, size_bytes);
  Scribbles(input).run();
  return 0;
}
