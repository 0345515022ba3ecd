#include "emulator/transport/requester/unreliable_requester.h"

#include <algorithm>

#include "emulator/transport/qp/payload.h"
#include "emulator/transport/qp/qp.h"
#include "emulator/transport/requester/local_request.h"

namespace rocemu::transport {

WcStatus UnreliableRequester::find_fault(const SendWork& work) const {
  const WcStatus fault = service_.find_fault(work);
  if (fault != WcStatus::success) return fault;
  return may_use(context_, work, kLocalRead) ? WcStatus::success : WcStatus::local_protection_error;
}

Turn UnreliableRequester::transmit(TimeNs now, Burst& burst) {
  if (context_.state != QpState::ready_to_send && context_.state != QpState::send_queue_drain)
    return Turn::idle;
  if (behind_error_ > 0) [[unlikely]] {
    if (!context_.deferred.may_flush_now()) return Turn::later;
    const uint32_t flushed = window_.flush_posted(std::min(behind_error_, Qp::kFlushAtOnce));
    behind_error_ -= flushed;
    // A queue that shows nothing for now rings when it does.
    if (behind_error_ > 0) return flushed > 0 ? Turn::later : Turn::idle;
  }
  if (window_.at_end() &&
      !window_.take_next(now, [this](const SendWork& work) { return find_fault(work); })) {
    window_.note_drained();
    return Turn::idle;
  }
  Request& request = window_.current();
  if (request.work.fault != WcStatus::success) {
    // A request behind others fails when those have left.
    if (window_.at_oldest()) fail_oldest(request.work.fault);
    return Turn::idle;
  }
  return is_local(request.work.opcode) ? take_local_turn(request.work)
                                       : send_packet(burst, request);
}

// A request behind others waits until those have left.
Turn UnreliableRequester::take_local_turn(const SendWork& work) {
  if (!window_.at_oldest()) return Turn::later;
  const WcStatus status = execute_local(context_, work);
  if (status != WcStatus::success) {
    fail_oldest(status);
    return Turn::idle;
  }
  window_.complete_oldest(WcStatus::success);
  return Turn::later;
}

Turn UnreliableRequester::send_whole(Burst& burst, const Request& request) {
  const uint32_t bytes = request.work.length_bytes;
  std::byte* const frame = burst.add_whole(context_.qp, request.first_psn, bytes);
  if (frame == nullptr) return Turn::no_buffer;
  burst.tell_when_sent(context_.qp);
  if (!gather(context_, burst, request.work, 0, bytes, frame)) {
    burst.discard_added();  // as if the memory could not be read
    return Turn::idle;
  }
  window_.advance(1);
  return Turn::sent;
}

Turn UnreliableRequester::send_segment(Burst& burst, const Request& request) {
  const Segmentation& segmentation = request.work.segmentation;
  const uint32_t index = window_.current_packet();
  const uint32_t offset = index * segmentation.payload_bytes;
  const uint32_t bytes = std::min(segmentation.payload_bytes, request.work.length_bytes - offset);
  const auto headers_bytes = static_cast<uint32_t>(segmentation.headers.size());
  std::byte* const frame =
      burst.add_segment(context_.qp, request.first_psn + index, headers_bytes + bytes,
                        {index, offset, index + 1 == request.packets});
  if (frame == nullptr) return Turn::no_buffer;
  burst.tell_when_sent(context_.qp);
  std::ranges::copy(segmentation.headers, frame);
  if (bytes > 0 && !gather(context_, burst, request.work, offset, bytes, frame + headers_bytes)) {
    burst.discard_added();  // as if the memory could not be read
    return Turn::idle;
  }
  window_.advance(1);
  return Turn::sent;
}

Turn UnreliableRequester::send_packet(Burst& burst, Request& request) {
  if (sends_ == Sends::whole_frames) [[unlikely]]
    return request.work.opcode == WorkOpcode::tso ? send_segment(burst, request)
                                                  : send_whole(burst, request);
  SendWork& work = request.work;
  const uint32_t mtu = context_.attributes.path_mtu_bytes;
  const uint32_t index = window_.current_packet();
  const uint32_t offset = index * mtu;
  const uint32_t bytes = std::min(mtu, work.length_bytes - offset);
  const bool first = index == 0;
  const bool last = index + 1 == request.packets;

  wire::ExtendedHeaders ext;
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(context_.transport, message_operation(work.opcode, first, last));
  bth.pkey = context_.attributes.pkey;
  bth.psn = request.first_psn + index;
  bth.solicited = last && work.solicited && work.opcode != WorkOpcode::write;
  if (first) ext.reth = {work.remote_address, work.rkey, work.length_bytes};
  ext.immediate = work.immediate;
  const Path* const path = service_.address(work, bth, ext);
  if (path == nullptr) {
    work.fault = WcStatus::local_qp_operation_error;  // the address handle has gone since
    if (window_.at_oldest()) fail_oldest(work.fault);
    return Turn::idle;
  }

  std::byte* const payload = burst.add(context_.qp, Side::requester, *path, bth, ext, bytes);
  if (payload == nullptr) return Turn::no_buffer;
  burst.tell_when_sent(context_.qp);
  if (bytes > 0 && !gather(context_, burst, work, offset, bytes, payload)) {
    burst.discard_added();  // as if the memory could not be read
    return Turn::idle;
  }
  if (bth.destination_qp == wire::kMulticastQpn)
    context_.tally.note(TraceEvent::multicast_sent, bth.psn.value());
  window_.advance(1);
  return Turn::sent;
}

void UnreliableRequester::on_burst_sent() {
  while (!window_.at_oldest()) window_.complete_oldest(WcStatus::success);
  if (!window_.empty() && window_.oldest().work.fault != WcStatus::success)
    fail_oldest(window_.oldest().work.fault);
  window_.note_drained();
}

void UnreliableRequester::fail_oldest(WcStatus status) {
  window_.complete_oldest(status);
  context_.set_state(QpState::send_queue_error);
  flush();
  flush_posted();
}

}  // namespace rocemu::transport
