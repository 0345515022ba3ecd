#include "emulator/transport/requester/unreliable_requester.h"

#include <algorithm>

#include "emulator/transport/qp/local_request.h"
#include "emulator/transport/qp/payload.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/service/unreliable_qp.h"

namespace rocemu::transport {

void UnreliableRequester::reset() {
  requests_.release();
  current_ = 0;
}

bool UnreliableRequester::take_next() {
  if (context_.state != QpState::ready_to_send) return false;
  Request& request = requests_.push_back();
  if (!context_.resources.send_queue->pop(request.work)) {
    requests_.pop_back();
    return false;
  }
  SendWork& work = request.work;
  if (work.fault == WcStatus::success) work.fault = service_.find_fault(work);
  if (work.fault == WcStatus::success && !may_use(context_, work, kLocalRead))
    work.fault = WcStatus::local_protection_error;
  request.first_psn = next_psn_;
  request.sent = 0;
  request.packets = work.fault != WcStatus::success || is_local(work.opcode)
                        ? 0
                        : packets_of(work.length_bytes, context_.attributes.path_mtu_bytes);
  next_psn_ = next_psn_ + request.packets;
  return true;
}

Turn UnreliableRequester::transmit(Burst& burst) {
  if (context_.state != QpState::ready_to_send && context_.state != QpState::send_queue_drain)
    return Turn::idle;
  if (current_ == requests_.size() && !take_next()) {
    note_drained();
    return Turn::idle;
  }
  Request& request = requests_[current_];
  if (request.work.fault != WcStatus::success) {
    // Behind others it fails when they have left.
    if (current_ == 0) fail_oldest(request.work.fault);
    return Turn::idle;
  }
  return is_local(request.work.opcode) ? take_local_turn(request.work)
                                       : send_packet(burst, request);
}

// Behind others it waits until they have left.
Turn UnreliableRequester::take_local_turn(const SendWork& work) {
  if (current_ > 0) return Turn::later;
  const WcStatus status = execute_local(context_, work);
  if (status != WcStatus::success) {
    fail_oldest(status);
    return Turn::idle;
  }
  complete_oldest(WcStatus::success);
  return Turn::later;
}

Turn UnreliableRequester::send_packet(Burst& burst, Request& request) {
  SendWork& work = request.work;
  const uint32_t mtu = context_.attributes.path_mtu_bytes;
  const uint32_t offset = request.sent * mtu;
  const uint32_t bytes = std::min(mtu, work.length_bytes - offset);
  const bool first = request.sent == 0;
  const bool last = request.sent + 1 == request.packets;

  wire::ExtendedHeaders ext;
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(context_.transport, message_operation(work.opcode, first, last));
  bth.pkey = context_.attributes.pkey;
  bth.psn = request.first_psn + request.sent;
  bth.solicited = last && work.solicited && work.opcode != WorkOpcode::write;
  if (first) ext.reth = {work.remote_address, work.rkey, work.length_bytes};
  ext.immediate = work.immediate;
  const Path* const path = service_.address(work, bth, ext);
  if (path == nullptr) {
    work.fault = WcStatus::local_qp_operation_error;  // the address handle has gone since
    if (current_ == 0) fail_oldest(work.fault);
    return Turn::idle;
  }

  std::byte* const payload = burst.add(context_.qp, Side::requester, *path, bth, ext, bytes);
  if (payload == nullptr) return Turn::no_buffer;
  burst.tell_when_sent(context_.qp);
  if (bytes > 0 && !gather(context_, burst, work, offset, bytes, payload)) {
    burst.discard_added();  // as if the memory could not be read
    return Turn::idle;
  }
  if (++request.sent == request.packets) ++current_;
  return Turn::sent;
}

void UnreliableRequester::on_burst_sent() {
  while (current_ > 0) complete_oldest(WcStatus::success);
  if (!requests_.empty() && requests_.front().work.fault != WcStatus::success)
    fail_oldest(requests_.front().work.fault);
  note_drained();
}

void UnreliableRequester::on_fetch_failed(wire::Psn psn) {
  for (uint32_t i = 0; i < requests_.size(); ++i) {
    Request& request = requests_[i];
    if (psn.before(request.first_psn) || !psn.before(request.first_psn + request.packets)) continue;
    request.work.fault = WcStatus::local_protection_error;
    current_ = i;
    return;
  }
}

void UnreliableRequester::note_drained() {
  if (context_.state != QpState::send_queue_drain || drain_noted_ || !requests_.empty()) return;
  drain_noted_ = true;
  if (context_.attributes.notify_drained)
    context_.events.on_qp_event(context_.qpn, QpEvent::send_queue_drained);
}

void UnreliableRequester::complete_oldest(WcStatus status) {
  const SendWork& work = requests_.front().work;
  Completion& completion = context_.deferred.complete(context_.qp, Side::requester,
                                                      *context_.resources.send_cq, work.signaled);
  completion.wr_id = work.wr_id;
  completion.qpn = context_.qpn;
  completion.status = status;
  completion.opcode = completion_opcode(work.opcode);
  completion.solicited = status != WcStatus::success;
  completion.byte_length = work.length_bytes;
  if (status != WcStatus::success) ++context_.counters.completions_with_error;
  context_.resources.send_queue->release(1);
  requests_.pop_front();
  if (current_ > 0) --current_;
}

void UnreliableRequester::fail_oldest(WcStatus status) {
  complete_oldest(status);
  context_.state = QpState::send_queue_error;
  flush();
  flush_posted();
}

void UnreliableRequester::flush() {
  while (!requests_.empty()) complete_oldest(WcStatus::flush_error);
  current_ = 0;
}

void UnreliableRequester::flush_posted() {
  constexpr uint32_t kMax = 65536;  // see RcRequester::flush_posted
  for (uint32_t i = 0; i < kMax; ++i) {
    Request& request = requests_.push_back();
    if (!context_.resources.send_queue->pop(request.work)) {
      requests_.pop_back();
      return;
    }
    complete_oldest(WcStatus::flush_error);
  }
}

}  // namespace rocemu::transport
