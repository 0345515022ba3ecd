#include "emulator/daemon/tracing/capture_comments.h"

#include "emulator/daemon/tracing/nic_knowledge.h"

namespace rocemu::daemon {
namespace {

// They are told before each frame, so that none but what has no frames may come so often.
constexpr size_t kCaptureRingRecords = size_t{1} << 14;

}  // namespace

CaptureComments::CaptureComments(PcapngFile& file, Engine& engine,
                                 const std::vector<device::HcaConfig>& devices,
                                 const std::vector<dpdk_io::LinkedPort*>& ports)
    : file_(file), engine_(engine), names_(names_of_nic(devices)) {
  trace::RecorderHost& host = *this;
  for (const device::HcaConfig& device : devices) {
    tracers_.push_back(std::make_unique<DeviceTracer>(
        static_cast<uint16_t>(device.index), engine.hca(device.index), *ports[device.index],
        kCaptureRingRecords, trace::Ring::WhenFull::lose_new, trace::Filter{}, host,
        [this](const wire::Gid& gid) {
          const uint16_t found = device_of(gid);
          return found == trace::kNoDevice ? nullptr : tracers_[found].get();
        }));
    tracers_.back()->attach();
  }
  file.set_knowledge(this);
}

CaptureComments::~CaptureComments() {
  engine_.stop();
  for (const auto& tracer : tracers_) tracer->detach();
  file_.set_knowledge(nullptr);
}

TimeNs CaptureComments::now() noexcept { return monotonic_now_ns(); }

trace::Owner CaptureComments::owner_of(uint16_t device, wire::Qpn qpn) noexcept {
  return programs_.of(program_of(engine_.hca(device), qpn));
}

trace::QpQueues CaptureComments::queues_of(uint16_t device, wire::Qpn qpn) noexcept {
  return queues_of_qp(engine_.hca(device), qpn);
}

uint16_t CaptureComments::device_of(const wire::Gid& gid) noexcept {
  return device_with_address(engine_, gid);
}

trace::Cause CaptureComments::explain_key(uint16_t device, wire::Qpn qpn, uint32_t key,
                                          uint64_t address, uint32_t length_bytes) noexcept {
  return why_refused(engine_.hca(device), qpn, key, address, length_bytes);
}

void CaptureComments::tell(trace::CommentedFrames& frames) noexcept {
  const std::vector<trace::Record> programs = programs_.take_new();
  names_.insert(names_.end(), programs.begin(), programs.end());
  for (const trace::Record& name : names_) frames.take_record(name);
  names_.clear();
  for (const auto& tracer : tracers_) {
    trace::Ring& ring = tracer->ring();
    for (auto piece = ring.peek(); !piece.empty(); piece = ring.peek()) {
      for (const trace::Record& record : piece) frames.take_record(record);
      ring.release(piece.size());
    }
  }
}

}  // namespace rocemu::daemon
