// One session, without its socket and its thread: it checks the requests of one program against the
// operation table, has their handlers carry them out, and sends their replies.
//
// Requests are checked on the control thread, and queue memory is made there; what touches the
// device is done by the engine, which the session calls and whose answer it waits for. However and
// whenever the connection ends, the context goes with all that was made in it: a call under way is
// first let return, since it may be the one that makes the context.
#pragma once

#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "emulator/daemon/control/connection/received_message.h"
#include "emulator/daemon/control/operation_table.h"
#include "emulator/daemon/control/session_host.h"
#include "emulator/daemon/rings/event_writer.h"
#include "emulator/daemon/rings/shared_memory.h"

namespace rocemu::daemon {

class SessionCore {
 public:
  // Both outlive the session.
  SessionCore(const SessionHost& host, SessionPeer& peer) : host_(host), peer_(peer) {}
  SessionCore(const SessionCore&) = delete;
  SessionCore& operator=(const SessionCore&) = delete;

  // Answers by exactly one reply(), now or later, or has the peer closed. Not before the request
  // before has been answered.
  void on_request(ReceivedMessage& message);
  // The reply is on its way.
  void on_replied();
  // The connection has ended; once.
  void on_end();

  // All below is for handlers, on the control thread.
  const SessionHost& host() const { return host_; }
  SessionPeer& peer() { return peer_; }
  uint32_t device_index() const { return device_index_; }
  const device::HcaConfig& config() const { return host_.devices[device_index_]; }
  DeviceNetwork* network() const {
    return host_.networks.empty() ? nullptr : host_.networks[device_index_];
  }
  EngineContext* context() const { return context_; }
  CmProgram& cm() { return *cm_; }

  // Queue memory, and the writer of a pipe, that count as the program's. Throw std::system_error.
  SharedMemory make_memory(const char* name, size_t bytes);
  device::Result<std::unique_ptr<EventWriter>> open_pipe(const UniqueFd& theirs);
  // Charges the program for descriptors that are held otherwise; null when nobody counts.
  ProgramShare::Charge charge_descriptors(unsigned count);
  // Charges the program for what the connection itself needs as a context's.
  void charge_context() { context_charge_ = charge_descriptors(kContextDescriptors); }
  // Charges the program for a region that is mapped here; as above.
  ProgramShare::Charge charge_mapped_file();

  // A HELLO makes one of these of the connection.
  void become_control() { kind_ = ConnectionKind::control; }
  void become_cm(std::unique_ptr<CmProgram> program);
  void choose_device(uint32_t index) { device_index_ = index; }
  void become_context(EngineContext& context);

  template <class Body>
  void answer(Body body, std::span<const int> fds = {}, int status = 0);
  void answer_empty(std::span<const int> fds = {});
  void answer_handle(uint32_t handle);
  void refuse(int error);
  void shut_down_after_reply() { shut_down_after_reply_ = true; }

  // Runs work() on the engine thread, then done(result) here; perhaps before it returns, and also
  // when the connection has ended meanwhile. When work() finds no memory, the request is refused
  // with ENOMEM instead.
  template <class Work, class Done>
  void on_engine(Work work, Done done);
  // Runs work(EngineContext&) there. Then, unless the connection has ended meanwhile, refuses the
  // request with the error that it had, or runs done() after an errno of 0, done(value) for a
  // Result.
  template <class Work, class Done>
  void on_context(Work work, Done done);
  // Calls start(finish), which answers 0 or refuses the request with its errno. After 0 it has
  // finish(result) called later on this thread, which runs done(result).
  template <class Result, class Start, class Done>
  void on_later(Start start, Done done);
  // Runs next() here once the engine knows the path that `ah` describes, or refuses the request:
  // for every request with an address that a path is made from.
  template <class Next>
  void with_path(const device::AhAttr& ah, Next next);
  // Runs next() once the gate lets the operation pass, or refuses the request.
  template <class Next>
  void through_gate(uint32_t device, uint32_t operation, Next next);
  OperationGate::Asked asked(uint32_t device, uint32_t operation) const;

 private:
  // The socket, what ends the engine's sleep, the program's memory and its pidfd.
  static constexpr unsigned kContextDescriptors = 4;

  void dispatch(const Request& request, ReceivedMessage& message);
  bool needs_path(const device::AhAttr& ah) const;
  void finish();
  ProgramShare* share();

  // Runs handle(), and turns what it throws (no memory, no descriptors) into the request's answer.
  template <class Handle>
  void guarded(Handle handle);
  // A call elsewhere has come back: runs done(), and lets the session end that waited for it.
  template <class Done>
  void on_return(Done done);
  // Runs done() with what a device call gave, or refuses the request with its errno.
  template <class Done>
  void conclude(int error, Done& done);
  template <class Value, class Done>
  void conclude(device::Result<Value> result, Done& done);

  const SessionHost& host_;
  SessionPeer& peer_;
  ConnectionKind kind_ = ConnectionKind::fresh;
  uint32_t device_index_ = 0;
  std::unique_ptr<CmProgram> cm_;        // a connection's for connection management
  EngineContext* context_ = nullptr;     // belongs to the engine; closed by finish()
  std::shared_ptr<ProgramShare> share_;  // null until it is asked for
  ProgramShare::Charge context_charge_;
  rocemu_header request_{};  // the one being answered
  bool call_under_way_ = false;
  bool ended_ = false;
  bool shut_down_after_reply_ = false;
};

template <class Body>
void SessionCore::answer(Body body, std::span<const int> fds, int status) {
  if (ended_) return;
  body.header = request_;
  body.header.length = sizeof(body);
  body.header.status = status;
  body.header.reserved = 0;
  peer_.reply(std::as_bytes(std::span(&body, 1)), fds);
}

template <class Handle>
void SessionCore::guarded(Handle handle) {
  try {
    handle();
  } catch (const std::system_error& error) {
    refuse(error.code().value());
  } catch (const std::bad_alloc&) {
    refuse(ENOMEM);
  } catch (const std::length_error&) {
    refuse(ENOMEM);
  } catch (const std::exception&) {
    refuse(EIO);
  }
}

// Returns what work() gives, or nothing when it found no memory. It runs on the engine thread,
// which serves others, too.
template <class Work>
auto attempt(Work& work) -> std::optional<decltype(work())> {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  } catch (const std::length_error&) {
    return std::nullopt;
  }
}

template <class Done>
void SessionCore::on_return(Done done) {
  call_under_way_ = false;
  guarded(std::move(done));
  if (ended_ && !call_under_way_) finish();
}

template <class Work, class Done>
void SessionCore::on_engine(Work work, Done done) {
  Task call([this, hold = peer_.hold(), work = std::move(work), done = std::move(done)]() mutable {
    host_.engine.come_back(Task(
        [this, hold = std::move(hold), done = std::move(done), result = attempt(work)]() mutable {
          on_return([&] {
            if (!result) throw std::bad_alloc();
            done(*std::move(result));
          });
        }));
  });
  call_under_way_ = true;
  host_.engine.post(std::move(call));
}

template <class Done>
void SessionCore::conclude(int error, Done& done) {
  error == 0 ? done() : refuse(error);
}

template <class Value, class Done>
void SessionCore::conclude(device::Result<Value> result, Done& done) {
  result ? done(*std::move(result)) : refuse(result.error());
}

template <class Result, class Start, class Done>
void SessionCore::on_later(Start start, Done done) {
  const int error = start([this, hold = peer_.hold(), done](const Result& result) {
    on_return([&] { done(result); });
  });
  if (error != 0) return refuse(error);
  call_under_way_ = true;
}

template <class Work, class Done>
void SessionCore::on_context(Work work, Done done) {
  on_engine([context = context_, work = std::move(work)]() mutable { return work(*context); },
            [this, done = std::move(done)](auto result) mutable {
              if (!ended_) conclude(std::move(result), done);
            });
}

template <class Next>
void SessionCore::through_gate(uint32_t device, uint32_t operation, Next next) {
  OperationGate& gate = *host_.gate;
  const OperationGate::Asked request = asked(device, operation);
  const OperationGate::Verdict verdict = gate.on_operation(request);
  if (verdict.error != 0) return refuse(verdict.error);
  if (verdict.delay_ns == 0) {
    next();
    return gate.passed(request);
  }
  call_under_way_ = true;
  gate.wait(verdict.delay_ns,
            [this, hold = peer_.hold(), &gate, request, next = std::move(next)]() mutable {
              on_return([&] {
                if (ended_) return;
                next();
                gate.passed(request);
              });
            });
}

template <class Next>
void SessionCore::with_path(const device::AhAttr& ah, Next next) {
  if (!needs_path(ah)) return next();
  call_under_way_ = true;
  network()->find_path(ah.dgid, [this, hold = peer_.hold(), gid = ah.dgid, next = std::move(next)](
                                    int error, const MacAddress& mac) mutable {
    on_return([&] {
      if (ended_) return;
      if (error != 0) return refuse(error);
      host_.engine.post(Task([network = network(), gid, mac] { network->learn(gid, mac); }));
      next();
    });
  });
}

}  // namespace rocemu::daemon
