// Requests about the device itself, its channels, CQs and QPs.
#include <array>
#include <cerrno>

#include "base/time.h"
#include "emulator/daemon/control/conversions.h"
#include "emulator/daemon/control/device_description.h"
#include "emulator/daemon/control/handlers.h"
#include "emulator/daemon/rings/event_writer.h"
#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_completion_ring.h"
#include "emulator/daemon/rings/shared_work_queues.h"

namespace rocemu::daemon::handlers {
namespace {

struct CqOnChannel {
  device::Handle cq;
  device::Handle channel;  // 0: none
};

// Makes a CQ, with a channel of its own when there is a pipe.
device::Result<CqOnChannel> create_cq_on(EngineContext& context, device::CqSpec spec,
                                         std::unique_ptr<EventWriter> pipe,
                                         std::unique_ptr<device::CompletionRing> ring) {
  device::Hca& hca = context.hca();
  const bool own_channel = pipe != nullptr;
  if (own_channel) {
    const auto channel = hca.create_channel(context.id(), std::move(pipe));
    if (!channel) return tl::unexpected(channel.error());
    spec.channel = *channel;
  }
  const auto cq = hca.create_cq(context.id(), spec, std::move(ring));
  if (cq) return CqOnChannel{*cq, spec.channel};
  if (own_channel) hca.destroy_channel(context.id(), spec.channel);
  return tl::unexpected(cq.error());
}

// The memory of a CQ: the ring for the device, what the program is told, and its descriptor.
struct NewRing {
  std::unique_ptr<device::CompletionRing> ring;
  rocemu_create_cq_reply body{};
  UniqueFd fd;
};

NewRing make_ring(SessionCore& session, uint32_t cqe) {
  const uint32_t entries = cq_entries(session.config().limits, cqe);
  SharedMemory memory = session.make_memory("rocemu-cq", cq_memory_bytes(entries));
  NewRing made;
  made.body.entries = entries;
  made.body.memory_bytes = memory.size_bytes();
  made.fd = memory.take_fd();
  made.ring = std::make_unique<SharedCompletionRing>(std::move(memory), entries,
                                                     session.host().engine.completion_host());
  if (QueueDecorator* const decorator = session.host().decorator)
    made.ring = decorator->wrap_ring(session.device_index(), std::move(made.ring), entries);
  return made;
}

// Replaces the ring of a CQ, in as many turns as the unread completions take.
void replace_ring(SessionCore& session, std::shared_ptr<NewRing> made) {
  session.on_context(
      [made,
       &clock = session.host().engine.clock()](EngineContext& context) -> device::Result<bool> {
        const int error =
            context.hca().resize_cq(context.id(), made->body.cq, clock.now_ns(), made->ring);
        if (error != 0 && error != EINPROGRESS) return tl::unexpected(error);
        return error == 0;
      },
      [&session, made](bool done) {
        if (!done) return replace_ring(session, made);
        session.answer(made->body, std::array{made->fd.get()});
      });
}

rocemu_create_qp_reply describe_queues(const QpLayout& layout, const SharedMemory& memory) {
  rocemu_create_qp_reply body{};
  body.sq_entries = layout.send.granted;
  body.sq_stride_bytes = layout.send.stride_bytes;
  body.rq_entries = layout.receive.granted;
  body.rq_stride_bytes = layout.receive.stride_bytes;
  body.max_send_sge = layout.send.max_sge;
  body.max_recv_sge = layout.receive.max_sge;
  body.max_inline_data = layout.max_inline_data;
  body.sq_offset_bytes = layout.send.offset_bytes;
  body.rq_offset_bytes = layout.receive.offset_bytes;
  body.memory_bytes = memory.size_bytes();
  return body;
}

}  // namespace

void query_device(SessionCore& session) { session.answer(describe_device(session.config())); }

void query_device_ex(SessionCore& session) { session.answer(describe_device_ex(session.config())); }

void query_port(SessionCore& session, const rocemu_query_port& message) {
  if (message.port_num != 1) return session.refuse(EINVAL);
  session.answer(describe_port(session.config().port, session.config().limits));
}

void create_channel(SessionCore& session, ReceivedMessage& received) {
  auto pipe = session.open_pipe(received.fds[0]);
  if (!pipe) return session.refuse(pipe.error());
  session.on_context(
      [pipe = std::move(*pipe)](EngineContext& context) mutable {
        return context.hca().create_channel(context.id(), std::move(pipe));
      },
      [&session](device::Handle channel) { session.answer_handle(channel); });
}

void create_cq(SessionCore& session, const rocemu_create_cq& message, ReceivedMessage& received) {
  const device::CqSpec spec = to_cq_spec(message);
  if (const int error = device::check_cq(session.config().limits, spec))
    return session.refuse(error);
  std::unique_ptr<EventWriter> pipe;
  if (received.fd_count == 1) {
    auto opened = session.open_pipe(received.fds[0]);
    if (!opened || spec.channel != 0) return session.refuse(opened ? EINVAL : opened.error());
    pipe = std::move(*opened);
  }
  NewRing made = make_ring(session, spec.cqe);
  session.on_context(
      [spec, pipe = std::move(pipe), ring = std::move(made.ring)](EngineContext& context) mutable {
        return create_cq_on(context, spec, std::move(pipe), std::move(ring));
      },
      [&session, body = made.body, fd = std::move(made.fd)](const CqOnChannel& created) mutable {
        body.cq = created.cq;
        body.channel = created.channel;
        session.answer(body, std::array{fd.get()});
      });
}

void resize_cq(SessionCore& session, const rocemu_resize_cq& message) {
  if (message.cqe == 0 || message.cqe > session.config().limits.max_cqe)
    return session.refuse(EINVAL);
  auto made = std::make_shared<NewRing>(make_ring(session, message.cqe));
  made->body.cq = message.cq;
  replace_ring(session, std::move(made));
}

void moderate_cq(SessionCore& session, const rocemu_moderate_cq& message) {
  const device::CqModeration moderation{message.count, TimeNs{message.period_us} * 1000};
  session.on_context(
      [cq = message.cq, moderation](EngineContext& context) {
        return context.hca().moderate_cq(context.id(), cq, moderation);
      },
      [&session, cq = message.cq] { session.answer_handle(cq); });
}

void create_qp(SessionCore& session, const rocemu_create_qp& message) {
  const device::DeviceLimits& limits = session.config().limits;
  const device::QpSpec spec = to_qp_spec(message);
  if (const int error = device::check_qp(limits, spec)) return session.refuse(error);
  const QpLayout layout = lay_out_qp(limits, spec);
  SharedMemory memory = session.make_memory("rocemu-qp", layout.memory_bytes);
  rocemu_create_qp_reply body = describe_queues(layout, memory);
  UniqueFd fd = memory.take_fd();
  std::unique_ptr<device::WorkQueues> queues =
      std::make_unique<SharedWorkQueues>(std::move(memory), layout, limits.max_msg_size);
  if (QueueDecorator* const decorator = session.host().decorator)
    queues = decorator->wrap_queues(session.device_index(), std::move(queues), spec);
  session.on_context(
      [spec, queues = std::move(queues)](EngineContext& context) mutable {
        return context.create_qp(spec, std::move(queues));
      },
      [&session, body, fd = std::move(fd)](const CreatedQueuePair& created) mutable {
        body.qp = created.qp.qp;
        body.qp_num = created.qp.qpn.value;
        body.doorbell = created.doorbell;
        session.answer(body, std::array{fd.get()});
      });
}

void modify_qp(SessionCore& session, const rocemu_modify_qp& message) {
  const device::QpAttr attr = to_qp_attr(message.attr);
  const auto modify = [&session, qp = message.qp, mask = message.attr_mask, attr] {
    session.on_context(
        [qp, mask, attr](EngineContext& context) {
          return context.hca().modify_qp(context.id(), qp, mask, attr);
        },
        [&session](transport::QpState state) {
          session.answer_handle(static_cast<uint32_t>(state));
        });
  };
  const auto find_alternate_first = [&session, mask = message.attr_mask, attr, modify] {
    if ((mask & device::kAltPath) == 0) return modify();
    session.with_path(attr.alt_ah, modify);
  };
  if ((message.attr_mask & device::kAv) == 0) return find_alternate_first();
  session.with_path(attr.ah, find_alternate_first);
}

void limit_qp_rate(SessionCore& session, const rocemu_limit_qp_rate& message) {
  const transport::RateLimit limit{message.rate_kbps, message.max_burst_bytes};
  session.on_context(
      [qp = message.qp, limit](EngineContext& context) {
        return context.hca().limit_qp_rate(context.id(), qp, limit);
      },
      [&session, qp = message.qp] { session.answer_handle(qp); });
}

void query_qp(SessionCore& session, uint32_t qp) {
  session.on_context(
      [qp](EngineContext& context) { return context.hca().query_qp(context.id(), qp); },
      [&session](const device::QpAttr& attr) {
        rocemu_query_qp_reply body{};
        body.attr = from_qp_attr(attr);
        session.answer(body);
      });
}

void destroy_qp(SessionCore& session, uint32_t qp) {
  session.on_context(
      [qp](EngineContext& context) { return context.destroy_qp(qp); },
      [&session](const device::EventCounts& counts) { answer_events(session, counts); });
}

// Says whether a post fails. Without faults a program has no reason to ask, and need not again.
void ask_post(SessionCore& session, const rocemu_ask_post& message) {
  OperationGate* const gate = session.host().gate;
  OperationGate::PostVerdict verdict;
  if (gate != nullptr)
    verdict = gate->on_post(session.asked(session.device_index(), ROCEMU_OP_ASK_POST),
                            wire::Qpn{message.qp_num}, message.receives == 1);
  if (verdict.error != 0) return session.refuse(verdict.error);
  rocemu_ask_post_reply body{};
  body.ask_again = verdict.ask_again ? 1 : 0;
  session.answer(body);
}

}  // namespace rocemu::daemon::handlers
