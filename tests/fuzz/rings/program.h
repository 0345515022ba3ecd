// A program of the rings target: one context with a CQ and two QPs that are each other's peers, all
// in shared memory, of which it has mappings of its own.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "emulator/daemon/rings/doorbells.h"
#include "emulator/daemon/rings/shared_completion_ring.h"
#include "emulator/device/hca.h"
#include "tests/fuzz/rings/checked_queues.h"

namespace rocemu::fuzz {

inline constexpr size_t kQps = 2;
inline constexpr uint64_t kProgramAddress = 0x100000;
inline constexpr uint32_t kProgramBytes = 16 * 1024;

// One piece of shared memory: both mappings of it.
struct Piece {
  std::span<std::byte> nic;
  std::span<std::byte> program;
  size_t used_bytes = 0;  // what of it the NIC may access
};

class Program {
 public:
  struct Options {
    uint32_t cqe = 8;
    uint32_t entries = 4;
    uint32_t sges = 2;
    uint32_t inline_bytes = 64;
    uint32_t tso_header_bytes = 0;  // other than 0: the QPs are of raw packets, and segment TCP
  };
  struct Qp {
    device::Handle handle = 0;
    wire::Qpn qpn{};
    uint32_t doorbell = 0;
    daemon::QpLayout layout;
  };
  // Pieces of the QPs first, then these.
  static constexpr size_t kCompletions = kQps;
  static constexpr size_t kDoorbells = kQps + 1;
  static constexpr size_t kPieces = kQps + 2;

  Program(device::Hca& hca, const Options& options);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Piece& piece(size_t index) const { return pieces_[index]; }
  Qp& qp(size_t index) { return qps_[index]; }
  bool sends_raw_packets() const { return options_.tso_header_bytes != 0; }
  uint32_t key() const { return keys_.lkey.value; }

  // The QP from RESET to RTS, with the other as its peer where it is connected.
  void connect(size_t index);
  bool modify(size_t index, uint32_t mask, uint32_t state);

  // These do what a well-behaved program does. `headers` are those of TSO.
  void post_send(size_t index, const rocemu_send_wqe& wqe, std::span<const rocemu_sge> sges,
                 std::span<const std::byte> headers = {});
  void post_receive(size_t index, const rocemu_recv_wqe& wqe, std::span<const rocemu_sge> sges);
  void ring(size_t index);
  std::vector<rocemu_cqe> poll();

  rocemu_queue_header& queue_header(size_t index);
  rocemu_cq_header& completion_header();

  // Does what the engine does about doorbells.
  void scan_doorbells();

 private:
  Piece make_piece(daemon::SharedMemory& memory, size_t used_bytes);
  void make_qp(size_t index);

  device::Hca& hca_;
  Options options_;
  std::vector<std::byte> memory_;
  std::array<Piece, kPieces> pieces_;
  std::array<Qp, kQps> qps_;
  device::ContextId context_ = 0;
  device::Handle pd_ = 0;
  device::Handle cq_ = 0;
  device::MrKeys keys_;
  uint32_t cq_entries_ = 0;
  uint32_t consumer_ = 0;
  std::unique_ptr<daemon::Doorbells> doorbells_;
  daemon::CompletionHost host_;
};

}  // namespace rocemu::fuzz
