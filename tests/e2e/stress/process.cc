#include "tests/e2e/stress/process.h"

#include <sched.h>

#include <algorithm>
#include <deque>
#include <map>

#include "tests/e2e/stress/stress_end.h"
#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {

namespace {

constexpr uint32_t kReceives = 6;  // for each end: fewer than messages in flight, so that some wait
constexpr uint64_t kReceiveFlag = uint64_t{1} << 63;
constexpr std::chrono::seconds kStalled{90};
constexpr unsigned kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
using SrqPtr = std::unique_ptr<ibv_srq, Destroyer<&ibv_destroy_srq>>;

class Process {
 public:
  Process(const StressOptions& options, Board& board, uint32_t process, const std::string& device);
  void run();

 private:
  void make_end(const EndPlace& place);
  void connect();
  void post_receive(uint32_t buffer);
  bool poll();
  void exchange();
  void finish();
  bool all_arrived() const;
  uint32_t in_flight() const;
  std::string waits() const;  // what for
  std::span<std::byte> receive_buffer(uint32_t buffer) const;
  uint64_t& shared_word() const { return *reinterpret_cast<uint64_t*>(memory_.data()); }

  const StressOptions& options_;
  Board& board_;
  uint32_t process_;
  std::vector<EndPlace> places_;
  Device device_;
  Memory memory_;  // the shared word, the ends' memory, the receives' buffers
  MrPtr mr_;
  CqPtr cq_;
  SrqPtr srq_;
  std::deque<StressEnd> ends_;
  std::map<uint32_t, StressEnd*> by_qpn_;
};

std::vector<EndPlace> places_of(const StressOptions& options, uint32_t process) {
  std::vector<EndPlace> places;
  for (uint32_t index = 0; index < end_count(options); ++index) {
    const EndPlace place = end_place(options, index);
    if (place.process == process) places.push_back(place);
  }
  return places;
}

uint64_t bytes_for(const StressOptions& options, uint64_t ends) {
  const uint64_t receives = kReceives * EndMemory::stride(options.max_bytes);
  return kGuardBytes + ends * (EndMemory::bytes(options.max_bytes) + receives);
}

Process::Process(const StressOptions& options, Board& board, uint32_t process,
                 const std::string& device)
    : options_(options),
      board_(board),
      process_(process),
      places_(places_of(options, process)),
      device_(open_device(device, options.gid_index)),
      memory_(bytes_for(options, places_.size())) {
  poison({memory_.data(), memory_.bytes()});
  shared_word() = 0;
  mr_ = register_memory(device_.pd.get(), memory_.data(), memory_.bytes(), kRights);
  must(mr_.get(), "ibv_reg_mr");
  const auto ends = static_cast<int>(places_.size());
  const int entries = std::max(1, ends * static_cast<int>(kSlots + kReceives));
  cq_.reset(
      must(ibv_create_cq(device_.context.get(), entries, nullptr, nullptr, 0), "ibv_create_cq"));
  if (options.shared_receives) {
    ibv_srq_init_attr init{};
    init.attr.max_wr = static_cast<uint32_t>(ends) * kReceives;
    init.attr.max_sge = 1;
    srq_.reset(must(ibv_create_srq(device_.pd.get(), &init), "ibv_create_srq"));
  }
  for (const EndPlace& place : places_) make_end(place);
}

void Process::make_end(const EndPlace& place) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_.get();
  init.srq = srq_.get();
  init.qp_type = IBV_QPT_RC;
  init.cap = {kSlots, srq_ ? 0 : kReceives, 2, 1, kGuardBytes};
  QpPtr qp(must(ibv_create_qp(device_.pd.get(), &init), "ibv_create_qp"));
  const uint64_t number = ends_.size();
  std::byte* base = memory_.data() + kGuardBytes + number * EndMemory::bytes(options_.max_bytes);
  const EndMemory memory(base, options_.max_bytes);
  std::memset(memory.word(), 0, 8);
  Address& address = board_.addresses[place.index];
  address.qpn = qp->qp_num;
  address.lid = device_.port.lid;
  address.gid = device_.gid;
  address.memory = reinterpret_cast<uintptr_t>(base);
  address.shared_word = memory_.address();
  address.rkey = mr_->rkey;
  address.port_mtu = device_.port.active_mtu;
  const uint32_t peer_process = end_place(options_, place.peer()).process;
  ends_.emplace_back(
      StressEnd::Setting{&options_, &board_, place, peer_process, number * kSlots, mr_->lkey},
      std::move(qp), memory);
  by_qpn_[ends_.back().qp()->qp_num] = &ends_.back();
}

void Process::connect() {
  for (StressEnd& end : ends_) {
    const Address& peer = board_.addresses[end.place().peer()];
    const Address& own = board_.addresses[end.place().index];
    // Both ends draw alike, so the PSNs lie close before the wrap for both.
    Random random(mix64(options_.seed + end.place().index / 2));
    RcOptions rc;
    rc.access = kRights;
    rc.path_mtu =
        static_cast<ibv_mtu>(random.between(IBV_MTU_256, std::min(own.port_mtu, peer.port_mtu)));
    rc.sq_psn = rc.rq_psn = 0xffffff - random.between32(0, 1000);
    const int reads = std::min(device_.attr.max_qp_rd_atom, device_.attr.max_qp_init_rd_atom);
    rc.max_rd_atomic = rc.max_dest_rd_atomic = static_cast<uint8_t>(std::clamp(reads, 1, 4));
    connect_one(end.qp(), device_, rc, peer.gid, peer.lid, peer.qpn);
  }
  for (uint32_t buffer = 0; buffer < ends_.size() * kReceives; ++buffer) post_receive(buffer);
}

std::span<std::byte> Process::receive_buffer(uint32_t buffer) const {
  const uint64_t stride = EndMemory::stride(options_.max_bytes);
  const uint64_t first = kGuardBytes + ends_.size() * EndMemory::bytes(options_.max_bytes);
  return {memory_.data() + first + buffer * stride, stride};
}

void Process::post_receive(uint32_t buffer) {
  ibv_sge piece{reinterpret_cast<uintptr_t>(receive_buffer(buffer).data()), options_.max_bytes,
                mr_->lkey};
  ibv_recv_wr wr{};
  wr.wr_id = kReceiveFlag | buffer;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (srq_) {
    must(ibv_post_srq_recv(srq_.get(), &wr, &bad), "ibv_post_srq_recv");
  } else {
    must(ibv_post_recv(ends_[buffer / kReceives].qp(), &wr, &bad), "ibv_post_recv");
  }
}

// Whether there was something.
bool Process::poll() {
  ibv_wc wcs[16];
  const int count = ibv_poll_cq(cq_.get(), 16, wcs);
  if (count < 0) fail("ibv_poll_cq returned %d", count);
  for (int i = 0; i < count; ++i) {
    const auto end = by_qpn_.find(wcs[i].qp_num);
    if (end == by_qpn_.end()) fail("a completion of no QP: %s", wc_text(wcs[i]).c_str());
    if ((wcs[i].wr_id & kReceiveFlag) == 0) {
      end->second->on_request_completion(wcs[i]);
      continue;
    }
    const auto buffer = static_cast<uint32_t>(wcs[i].wr_id & ~kReceiveFlag);
    if (buffer >= ends_.size() * kReceives)
      fail("no receive has this number: %s", wc_text(wcs[i]).c_str());
    end->second->on_receive_completion(wcs[i], receive_buffer(buffer));
    post_receive(buffer);
  }
  return count > 0;
}

uint32_t Process::in_flight() const {
  uint32_t sum = 0;
  for (const StressEnd& end : ends_) sum += end.in_flight();
  return sum;
}

bool Process::all_arrived() const {
  return std::all_of(ends_.begin(), ends_.end(), [this](const StressEnd& end) {
    return end.received() ==
           board_.messages_sent[end.place().peer()].load(std::memory_order_acquire);
  });
}

std::string Process::waits() const {
  std::string text;
  for (const StressEnd& end : ends_) {
    if (end.in_flight() != 0) text += "; " + end.oldest();
  }
  return text;
}

// Requests until the time is over, then answers until all processes' requests are.
void Process::exchange() {
  enum class Phase { kRequest, kDrain, kLastRead, kQuiet };
  Phase phase = Phase::kRequest;
  const auto end_time = Clock::now() + std::chrono::seconds(options_.seconds);
  auto last_progress = Clock::now();
  for (;;) {
    const auto now = Clock::now();
    if (phase == Phase::kRequest && now >= end_time) phase = Phase::kDrain;
    if (phase == Phase::kRequest) {
      for (StressEnd& end : ends_) end.post();
    } else if (phase == Phase::kDrain && in_flight() == 0) {
      for (StressEnd& end : ends_) end.post_last_read();
      phase = Phase::kLastRead;
    } else if (phase == Phase::kLastRead && in_flight() == 0) {
      phase = Phase::kQuiet;
      board_.quiet_processes.fetch_add(1);
    } else if (phase == Phase::kQuiet && board_.quiet_processes.load() == options_.processes &&
               all_arrived()) {
      return;
    }
    if (poll()) {
      last_progress = now;
    } else if (now - last_progress > kStalled) {
      fail("no completion for %lld s%s", static_cast<long long>(kStalled.count()), waits().c_str());
    } else {
      sched_yield();
    }
  }
}

void Process::finish() {
  for (const StressEnd& end : ends_) end.check_guards();
  for (uint32_t buffer = 0; buffer < ends_.size() * kReceives; ++buffer) {
    const auto bytes = receive_buffer(buffer);
    if (poison_difference(bytes) != bytes.size())
      fail("receive buffer %u was written to without a message", buffer);
  }
  const uint64_t added = board_.added[process_].load();
  if (shared_word() != added) {
    fail("the shared word is %llu after %llu additions",
         static_cast<unsigned long long>(shared_word()), static_cast<unsigned long long>(added));
  }
}

void Process::run() {
  board_.meet();  // all addresses are on the board
  connect();
  board_.meet();  // all QPs can receive
  exchange();
  board_.meet();  // nobody requests anything
  if (poll()) fail("a completion after the last one");
  finish();
  board_.meet();
}

}  // namespace

void run_process(const StressOptions& options, Board& board, uint32_t process,
                 const std::string& device) {
  Process(options, board, process, device).run();
  if (destroy_failures() != 0) fail("%d verbs objects could not be destroyed", destroy_failures());
}

}  // namespace rocemu::e2e
