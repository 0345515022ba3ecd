#include "emulator/daemon/control/session_core.h"

#include "emulator/daemon/control/handlers.h"
#include "emulator/device/attributes/path.h"

namespace rocemu::daemon {

void SessionCore::on_request(ReceivedMessage& message) {
  const auto request = check_request(message.bytes(), kind_);
  if (!request) return peer_.close(to_string(request.error()));
  request_ = request->header;
  guarded([&] { dispatch(*request, message); });
}

void SessionCore::dispatch(const Request& request, ReceivedMessage& message) {
  const Operation& operation = request.operation;
  if (kind_ == ConnectionKind::fresh && request.error == EPROTO)
    return handlers::answer_hello(*this, EPROTO);
  if (request.error != 0) return refuse(request.error);
  if (kind_ == ConnectionKind::fresh && operation.connection != kind_)
    return peer_.close("a request before a hello");
  if (operation.connection != kind_ || message.fd_count < operation.min_fds ||
      message.fd_count > operation.max_fds)
    return refuse(EINVAL);
  if (host_.gate == nullptr || host_.gate->open() || kind_ != ConnectionKind::context)
    return operation.handle(*this, message);
  // The message may have to wait longer than whoever brought it keeps it.
  const auto kept = std::make_shared<ReceivedMessage>(std::move(message));
  message.fd_count = 0;
  through_gate(device_index_, operation.number,
               [this, kept, &operation] { operation.handle(*this, *kept); });
}

OperationGate::Asked SessionCore::asked(uint32_t device, uint32_t operation) const {
  OperationGate::Asked request{.operation = operation, .device = device, .program = peer_.pid()};
  if (context_ != nullptr) request.context = context_->id();
  return request;
}

void SessionCore::become_cm(std::unique_ptr<CmProgram> program) {
  cm_ = std::move(program);
  kind_ = ConnectionKind::cm;
}

ProgramShare* SessionCore::share() {
  if (!share_ && host_.shares != nullptr) share_ = host_.shares->of(peer_.pid());
  return share_.get();
}

SharedMemory SessionCore::make_memory(const char* name, size_t bytes) {
  ProgramShare::Charge charge;
  if (ProgramShare* const counted = share()) charge = counted->mapping();
  SharedMemory memory(name, bytes);
  memory.hold(std::move(charge));
  return memory;
}

device::Result<std::unique_ptr<EventWriter>> SessionCore::open_pipe(const UniqueFd& theirs) {
  ProgramShare::Charge charge = charge_descriptors(1);
  auto pipe = EventWriter::open(theirs);
  if (pipe) (*pipe)->hold(std::move(charge));
  return pipe;
}

ProgramShare::Charge SessionCore::charge_descriptors(unsigned count) {
  ProgramShare* const counted = share();
  return counted == nullptr ? nullptr : counted->descriptors(count);
}

ProgramShare::Charge SessionCore::charge_mapped_file() {
  ProgramShare* const counted = share();
  return counted == nullptr ? nullptr : counted->mapped_file();
}

void SessionCore::become_context(EngineContext& context) {
  context_ = &context;
  kind_ = ConnectionKind::context;
}

namespace {

struct HeaderAlone {
  rocemu_header header{};
};

}  // namespace

void SessionCore::answer_empty(std::span<const int> fds) { answer(HeaderAlone{}, fds); }

void SessionCore::refuse(int error) { answer(HeaderAlone{}, {}, error); }

void SessionCore::answer_handle(uint32_t handle) {
  rocemu_handle_message body{};
  body.handle = handle;
  answer(body);
}

bool SessionCore::needs_path(const device::AhAttr& ah) const {
  return network() != nullptr && !device::is_multicast(ah.dgid) &&
         device::names_a_path(config().port, ah);
}

void SessionCore::on_replied() {
  if (shut_down_after_reply_) host_.administration.shut_down();
}

void SessionCore::on_end() {
  ended_ = true;
  if (!call_under_way_) finish();
}

namespace {

// A program can make much, so its end is spread over many turns.
constexpr uint32_t kObjectsAtOnce = 64;

void close_in_steps(DeviceEngine& engine, EngineContext& context) {
  engine.post(Task([&engine, &context] {
    if (!context.hca().clear_context(context.id(), kObjectsAtOnce))
      return close_in_steps(engine, context);
    engine.close_context(context);
  }));
}

}  // namespace

void SessionCore::finish() {
  cm_.reset();
  if (context_ != nullptr && host_.on_context_end) host_.on_context_end(device_index_, peer_.pid());
  if (EngineContext* context = std::exchange(context_, nullptr))
    close_in_steps(host_.engine, *context);
  peer_.finished();
}

}  // namespace rocemu::daemon
