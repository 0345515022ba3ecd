#include "tests/fuzz/rings/program.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "base/verbs/numbers.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/nic/loopback.h"

namespace rocemu::fuzz {

namespace {

constexpr uint32_t kAllAccess = 15;
constexpr uint32_t kDoorbellSlots = 64;

// Nobody looks at the events.
struct Events final : device::EventChannel {
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
};

// Returns where, behind the entry, its elements have their room.
template <class Wqe>
std::byte* write_entry(const Piece& piece, const daemon::RingLayout& ring, uint32_t producer,
                       const Wqe& wqe, std::span<const rocemu_sge> sges) {
  std::byte* const slot = piece.program.data() + ring.offset_bytes +
                          size_t{producer & (ring.entries - 1)} * ring.stride_bytes;
  std::memcpy(slot, &wqe, sizeof(wqe));
  std::byte* const elements = slot + sizeof(wqe);
  if (!sges.empty()) std::memcpy(elements, sges.data(), sges.size_bytes());
  return elements;
}

}  // namespace

Program::Program(device::Hca& hca, const Options& options)
    : hca_(hca), options_(options), memory_(kProgramBytes) {
  context_ = hca.open_context(dma::AddressSpace::local(memory_, kProgramAddress),
                              std::make_unique<Events>())
                 .value();
  pd_ = hca.alloc_pd(context_).value();
  keys_ = hca.reg_mr(context_, {pd_, kAllAccess, kProgramAddress, kProgramBytes, kProgramAddress})
              .value();

  cq_entries_ = daemon::cq_entries({}, options.cqe);
  const size_t cq_bytes = daemon::cq_memory_bytes(cq_entries_);
  daemon::SharedMemory ring("fuzz-cq", cq_bytes);
  pieces_[kCompletions] = make_piece(ring, cq_bytes);
  const auto channel = hca.create_channel(context_, std::make_unique<Events>()).value();
  cq_ = hca.create_cq(
               context_, {options.cqe, channel, 0, 0},
               std::make_unique<daemon::SharedCompletionRing>(std::move(ring), cq_entries_, host_))
            .value();

  daemon::SharedMemory page("fuzz-doorbells", sizeof(rocemu_doorbell_page));
  pieces_[kDoorbells] = make_piece(page, sizeof(rocemu_doorbell_page));
  doorbells_ = std::make_unique<daemon::Doorbells>(std::move(page), kDoorbellSlots);
  for (size_t i = 0; i < kQps; ++i) make_qp(i);
}

Program::~Program() {
  hca_.close_context(context_);
  for (const Piece& piece : pieces_) ::munmap(piece.program.data(), piece.program.size());
}

Piece Program::make_piece(daemon::SharedMemory& memory, size_t used_bytes) {
  void* const mapping =
      ::mmap(nullptr, memory.size_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd(), 0);
  expect(mapping != MAP_FAILED, "the program can map what it was given");
  return {{memory.data(), memory.size_bytes()},
          {static_cast<std::byte*>(mapping), memory.size_bytes()},
          used_bytes};
}

void Program::make_qp(size_t index) {
  device::QpSpec spec;
  spec.pd = pd_;
  spec.send_cq = spec.receive_cq = cq_;
  spec.type = sends_raw_packets() ? verbs::qp_type::kRawPacket : verbs::qp_type::kRc;
  spec.max_send_wr = spec.max_recv_wr = options_.entries;
  spec.max_send_sge = spec.max_recv_sge = options_.sges;
  spec.max_inline_data = options_.inline_bytes;
  spec.max_tso_header = options_.tso_header_bytes;
  const device::DeviceLimits& limits = hca_.config().limits;
  Qp& qp = qps_[index];
  qp.layout = daemon::lay_out_qp(limits, spec);
  daemon::SharedMemory memory("fuzz-qp", qp.layout.memory_bytes);
  pieces_[index] = make_piece(memory, qp.layout.memory_bytes);
  const auto created = hca_.create_qp(context_, spec,
                                      std::make_unique<CheckedQueues>(std::move(memory), qp.layout,
                                                                      limits.max_msg_size))
                           .value();
  qp.handle = created.qp;
  qp.qpn = created.qpn;
  qp.doorbell = doorbells_->allocate(qp.qpn).value();
}

bool Program::modify(size_t index, uint32_t mask, uint32_t state) {
  device::QpAttr attr = attributes_for(hca_.config(), qps_[(index + 1) % kQps].qpn.value);
  attr.qp_state = state;
  return hca_.modify_qp(context_, qps_[index].handle, mask, attr).has_value();
}

void Program::connect(size_t index) {
  const bool is_raw = sends_raw_packets();
  const uint32_t to_init = is_raw ? device::kState | device::kPort : kToInit;
  const uint32_t to_receive = is_raw ? device::kState : kToReceive;
  const uint32_t to_send = is_raw ? device::kState : kToSend;
  const bool connected = modify(index, device::kState, 0) && modify(index, to_init, 1) &&
                         modify(index, to_receive, 2) && modify(index, to_send, 3);
  expect(connected, "a QP can be connected again from any state");
}

rocemu_queue_header& Program::queue_header(size_t index) {
  return *reinterpret_cast<rocemu_queue_header*>(pieces_[index].program.data());
}

rocemu_cq_header& Program::completion_header() {
  return *reinterpret_cast<rocemu_cq_header*>(pieces_[kCompletions].program.data());
}

void Program::post_send(size_t index, const rocemu_send_wqe& wqe, std::span<const rocemu_sge> sges,
                        std::span<const std::byte> headers) {
  uint32_t& producer = queue_header(index).sq_producer;
  const daemon::RingLayout& ring = qps_[index].layout.send;
  std::byte* const elements = write_entry(pieces_[index], ring, producer, wqe, sges);
  if (!headers.empty()) {
    std::byte* const room = elements + ring.max_sge * sizeof(rocemu_sge);
    std::memcpy(room, headers.data(), headers.size());
  }
  ++producer;
}

void Program::post_receive(size_t index, const rocemu_recv_wqe& wqe,
                           std::span<const rocemu_sge> sges) {
  uint32_t& producer = queue_header(index).rq_producer;
  write_entry(pieces_[index], qps_[index].layout.receive, producer, wqe, sges);
  ++producer;
}

void Program::ring(size_t index) {
  auto& page = *reinterpret_cast<rocemu_doorbell_page*>(pieces_[kDoorbells].program.data());
  const uint32_t slot = qps_[index].doorbell;
  page.groups[0].words[slot / 64] |= uint64_t{1} << slot % 64;
  page.groups[0].summary |= 1;
}

std::vector<rocemu_cqe> Program::poll() {
  std::vector<rocemu_cqe> result;
  rocemu_cq_header& header = completion_header();
  const std::byte* const ring = pieces_[kCompletions].program.data() + ROCEMU_CQ_RING_OFFSET;
  for (; consumer_ != header.producer; ++consumer_) {
    rocemu_cqe cqe;
    std::memcpy(&cqe, ring + size_t{consumer_ & (cq_entries_ - 1)} * sizeof(cqe), sizeof(cqe));
    result.push_back(cqe);
    expect(result.size() <= cq_entries_, "a CQ holds no more than its ring");
  }
  header.consumer = consumer_;
  return result;
}

void Program::scan_doorbells() {
  if (!doorbells_->any_rung()) return;
  doorbells_->scan(UINT32_MAX, [&](wire::Qpn qpn) {
    expect(qpn == qps_[0].qpn || qpn == qps_[1].qpn, "a doorbell rings for its own QPs");
    hca_.endpoint().on_doorbell(qpn);
  });
}

}  // namespace rocemu::fuzz
