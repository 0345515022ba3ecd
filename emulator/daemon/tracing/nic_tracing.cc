#include "emulator/daemon/tracing/nic_tracing.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "base/monotonic_clock.h"
#include "emulator/daemon/tracing/nic_knowledge.h"
#include "emulator/trace/record/cm_record.h"

namespace rocemu::daemon {

namespace {

// 16 MiB a device: some 20 ms of small messages at a million a second, which the writer has to come
// in.
constexpr size_t kRingRecords = size_t{1} << 18;
// A file may be so late on a NIC that does little.
constexpr std::chrono::milliseconds kFollowEvery{250};

uint64_t unix_now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// Only what cannot let the writer wait for somebody: no pipe, no terminal.
bool is_writable_file(int fd) {
  struct stat found;
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && (flags & O_PATH) == 0 &&
         ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
}

TraceResult result_of(const TraceWriter& writer) {
  return {writer.written_bytes(), writer.lost(), writer.error()};
}

void log_result(const TraceResult& result) {
  const bool is_whole = result.error == 0 && result.lost_records == 0;
  spdlog::log(is_whole ? spdlog::level::info : spdlog::level::err,
              "trace: {} bytes, {} records had no room{}{}", result.written_bytes,
              result.lost_records,
              result.error == 0 ? "" : std::string(", ") + std::strerror(result.error),
              is_whole ? "" : "; it is not whole");
}

}  // namespace

struct NicTracing::Run {
  TraceSettings settings;
  TracedPrograms programs;
  std::vector<std::unique_ptr<DeviceTracer>> tracers;
  std::unique_ptr<TraceWriter> writer;
  std::function<void(const TraceResult&)> done;
  bool ending = false;
  std::atomic<bool> attached{false};
  std::atomic<bool> failure_noted{false};
};

NicTracing::NicTracing(boost::asio::io_context& io, Engine& engine,
                       const std::vector<device::HcaConfig>& devices,
                       const std::vector<dpdk_io::LinkedPort*>& ports)
    : io_(io),
      engine_(engine),
      devices_(devices),
      ports_(ports),
      timer_(io),
      self_(std::make_shared<NicTracing*>(this)) {}

NicTracing::~NicTracing() {
  *self_ = nullptr;
  if (run_ == nullptr) return;
  run_->writer->finish(trace::Cause::nic_ended, {});
  run_->writer->wait();
  log_result(result_of(*run_->writer));
}

int NicTracing::start(UniqueFd file, const TraceSettings& settings) {
  if (run_ != nullptr) return EALREADY;
  if (!is_writable_file(file.get())) return EBADF;
  for (const std::string& name : settings.devices)
    if (std::ranges::find(devices_, name, &device::HcaConfig::name) == devices_.end())
      return ENODEV;
  // Not before: who asked may have named a file that holds something else.
  if (::ftruncate(file.get(), 0) != 0) return errno;

  trace::RecorderHost& host = *this;
  auto run = std::make_unique<Run>();
  run->settings = settings;
  std::vector<trace::Ring*> rings;
  for (const device::HcaConfig& device : devices_) {
    if (!settings.devices.empty() &&
        std::ranges::find(settings.devices, device.name) == settings.devices.end())
      continue;
    using enum trace::Ring::WhenFull;
    auto tracer = std::make_unique<DeviceTracer>(
        static_cast<uint16_t>(device.index), engine_.hca(device.index), *ports_[device.index],
        settings.on_error ? settings.last_records : kRingRecords,
        settings.on_error ? forget_old : lose_new, settings.filter, host,
        [this](const wire::Gid& gid) { return find(device_of(gid)); });
    if (!settings.on_error) rings.push_back(&tracer->ring());
    run->tracers.push_back(std::move(tracer));
  }
  trace::Header header = trace::make_header(trace::Clock::monotonic, monotonic_now_ns(),
                                            unix_now_ns(), "rocemud " ROCEMU_VERSION);
  if (settings.on_error) header.flags |= trace::Header::kLastEvents;
  run->writer = std::make_unique<TraceWriter>(
      std::move(file), header, settings.max_bytes, std::move(rings), run->programs,
      [this] { on_control([this] { end(trace::Cause::file_full); }); });
  run->writer->put(dictionary(settings));
  run_ = std::move(run);
  engine_.post(Task([this, &begun = *run_] { begin(begun); }));
  follow();
  return 0;
}

std::vector<trace::Record> NicTracing::dictionary(const TraceSettings& settings) const {
  std::vector<trace::Record> all = names_of_nic(devices_);
  trace::Record started;
  started.kind = trace::Kind::started;
  started.cause = trace::Cause::by_user;
  started.time_ns = monotonic_now_ns();
  if (!settings.on_error) all.push_back(started);
  return all;
}

// --- The engine thread ---

void NicTracing::begin(Run& run) {
  run.attached = true;
  for (const auto& tracer : run.tracers) tracer->attach();
}

void NicTracing::detach(Run& run) {
  if (!run.attached.exchange(false)) return;
  for (const auto& tracer : run.tracers) {
    tracer->sample_counters();
    tracer->detach();
  }
}

DeviceTracer* NicTracing::find(uint16_t device) {
  if (run_ == nullptr) return nullptr;
  for (const auto& tracer : run_->tracers)
    if (tracer->index() == device) return tracer.get();
  return nullptr;
}

TimeNs NicTracing::now() noexcept { return monotonic_now_ns(); }

// Asked once for each QP; whose QPs are traced is known afterwards, so those that are not are asked
// to say when they post as well, which does no harm.
trace::Owner NicTracing::owner_of(uint16_t device, wire::Qpn qpn) noexcept {
  DeviceTracer* const tracer = find(device);
  if (tracer == nullptr) return {};
  tracer->watch(qpn);
  return run_->programs.of(program_of(engine_.hca(device), qpn));
}

trace::QpQueues NicTracing::queues_of(uint16_t device, wire::Qpn qpn) noexcept {
  return queues_of_qp(engine_.hca(device), qpn);
}

uint16_t NicTracing::device_of(const wire::Gid& gid) noexcept {
  return device_with_address(engine_, gid);
}

trace::Cause NicTracing::explain_key(uint16_t device, wire::Qpn qpn, uint32_t key, uint64_t address,
                                     uint32_t length_bytes) noexcept {
  return why_refused(engine_.hca(device), qpn, key, address, length_bytes);
}

void NicTracing::on_half_full() noexcept {
  if (!run_->settings.on_error) run_->writer->wake();
}

void NicTracing::on_failure(uint16_t, wire::Qpn) noexcept {
  if (!run_->settings.on_error || run_->failure_noted.exchange(true)) return;
  on_control([this] { write_last(); });
}

// --- The control thread ---

void NicTracing::on_control(std::function<void()> work) {
  boost::asio::post(io_, [self = self_, work = std::move(work)] {
    if (*self != nullptr) work();
  });
}

// Writes what happened before the failure, and in the turn in which it came.
void NicTracing::write_last() {
  if (run_ == nullptr || run_->ending) return;
  engine_.post(Task([this, &run = *run_] {
    run.failure_noted = false;
    if (!run.attached) return;
    for (const auto& tracer : run.tracers) run.writer->put(tracer->take_last());
  }));
}

void NicTracing::follow() {
  timer_.expires_after(kFollowEvery);
  timer_.async_wait([this, self = self_](const boost::system::error_code& error) {
    if (error || *self == nullptr || run_ == nullptr || run_->ending) return;
    engine_.post(Task([&run = *run_] {
      if (!run.attached) return;
      for (const auto& tracer : run.tracers) {
        tracer->sample_counters();
        if (!run.settings.on_error) tracer->tell_polled();
      }
    }));
    run_->writer->wake();
    follow();
  });
}

int NicTracing::stop(std::function<void(const TraceResult&)> done) {
  if (run_ == nullptr) return ENOENT;
  if (run_->done) return EALREADY;
  run_->done = std::move(done);
  end(trace::Cause::by_user);
  return 0;
}

void NicTracing::end(trace::Cause cause) {
  if (run_ == nullptr || std::exchange(run_->ending, true)) return;
  timer_.cancel();
  engine_.post(Task([this, cause, &run = *run_] {
    detach(run);
    run.writer->finish(cause, [this] { on_control([this] { finished(); }); });
  }));
}

void NicTracing::finished() {
  if (run_ == nullptr) return;
  const std::unique_ptr<Run> run = std::move(run_);
  const TraceResult result = result_of(*run->writer);
  log_result(result);
  if (run->done) run->done(result);
}

void NicTracing::on_mad(uint32_t device, const wire::Gid& peer, std::span<const std::byte> mad,
                        bool sent) {
  if (run_ == nullptr || run_->ending) return;
  trace::Record record = trace::cm_record(mad, sent);
  if (record.kind == trace::Kind::none) return;
  record.time_ns = monotonic_now_ns();
  engine_.post(Task([this, device, peer, record, &run = *run_]() mutable {
    DeviceTracer* const tracer = find(static_cast<uint16_t>(device));
    if (!run.attached || tracer == nullptr) return;
    record.peer_device = device_of(peer);
    tracer->recorder().on_cm(record);
  }));
}

void NicTracing::on_context_end(uint32_t device, pid_t program) {
  if (run_ == nullptr || run_->ending || program == 0) return;
  engine_.post(Task([this, device, program, &run = *run_] {
    DeviceTracer* const tracer = find(static_cast<uint16_t>(device));
    if (run.attached && tracer != nullptr)
      tracer->recorder().on_context_end(static_cast<uint32_t>(program));
  }));
}

void NicTracing::detach_at_end() {
  timer_.cancel();
  if (run_ != nullptr) engine_.post(Task([this] { detach(*run_); }));
}

}  // namespace rocemu::daemon
