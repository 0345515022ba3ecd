// What a context and a control connection can ask for, request by request.
#include <spdlog/spdlog.h>

#include <array>
#include <cerrno>

#include "emulator/daemon/attachment/links.h"
#include "emulator/daemon/control/session.h"
#include "emulator/daemon/reports.h"
#include "emulator/daemon/rings/event_writer.h"
#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_completion_ring.h"
#include "emulator/daemon/rings/shared_work_queues.h"
#include "emulator/daemon/view/device_description.h"

namespace rocemu::daemon {
namespace {

struct CqOnChannel {
  device::Handle cq;
  device::Handle channel;  // 0: none
};

// With a channel of its own when there is a pipe.
device::Result<CqOnChannel> create_cq_on(EngineContext& context, device::CqSpec spec,
                                         std::unique_ptr<EventWriter> pipe,
                                         std::unique_ptr<SharedCompletionRing> ring) {
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

}  // namespace

void Session::query_device() { answer(describe_device(config())); }

void Session::query_port(const rocemu_query_port& message) {
  if (message.port_num != 1) return refuse(EINVAL);
  answer(describe_port(config().port, config().limits));
}

void Session::alloc_pd() {
  on_context([](EngineContext& context) { return context.hca().alloc_pd(context.id()); },
             [this](device::Result<device::Handle> pd) {
               if (!pd) return refuse(pd.error());
               answer_handle(*pd);
             });
}

void Session::dealloc_pd(uint32_t pd) {
  on_context([pd](EngineContext& context) { return context.hca().dealloc_pd(context.id(), pd); },
             [this, pd](int error) { answer_outcome(error, pd); });
}

void Session::reg_mr(const rocemu_reg_mr& message) { register_region(to_mr_spec(message)); }

void Session::dereg_mr(uint32_t mr) {
  on_context([mr](EngineContext& context) { return context.hca().dereg_mr(context.id(), mr); },
             [this, mr](int error) {
               if (error == 0) files_.erase(mr);
               answer_outcome(error, mr);
             });
}

void Session::create_channel(ReceivedMessage& received) {
  auto pipe = EventWriter::open(received.fds[0]);
  if (!pipe) return refuse(pipe.error());
  on_context(
      [pipe = std::move(*pipe)](EngineContext& context) mutable {
        return context.hca().create_channel(context.id(), std::move(pipe));
      },
      [this](device::Result<device::Handle> channel) {
        if (!channel) return refuse(channel.error());
        answer_handle(*channel);
      });
}

void Session::destroy_channel(uint32_t channel) {
  on_context(
      [channel](EngineContext& context) {
        return context.hca().destroy_channel(context.id(), channel);
      },
      [this, channel](int error) { answer_outcome(error, channel); });
}

void Session::create_cq(const rocemu_create_cq& message, ReceivedMessage& received) {
  const device::CqSpec spec = to_cq_spec(message);
  if (const int error = device::check_cq(config().limits, spec)) return refuse(error);
  std::unique_ptr<EventWriter> pipe;
  if (received.fd_count == 1) {
    auto opened = EventWriter::open(received.fds[0]);
    if (!opened || spec.channel != 0) return refuse(opened ? EINVAL : opened.error());
    pipe = std::move(*opened);
  }
  const uint32_t entries = cq_entries(spec.cqe);
  SharedMemory memory("rocemu-cq", cq_memory_bytes(entries));
  rocemu_create_cq_reply body{};
  body.entries = entries;
  body.memory_bytes = memory.size_bytes();
  UniqueFd fd = memory.take_fd();
  auto ring = std::make_unique<SharedCompletionRing>(std::move(memory), entries,
                                                     nic_.engine.completion_host());
  on_context(
      [spec, pipe = std::move(pipe), ring = std::move(ring)](EngineContext& context) mutable {
        return create_cq_on(context, spec, std::move(pipe), std::move(ring));
      },
      [this, body, fd = std::move(fd)](device::Result<CqOnChannel> created) mutable {
        if (!created) return refuse(created.error());
        body.cq = created->cq;
        body.channel = created->channel;
        answer(body, std::array{fd.get()});
      });
}

void Session::destroy_cq(uint32_t cq) {
  on_context([cq](EngineContext& context) { return context.hca().destroy_cq(context.id(), cq); },
             [this](const device::Result<device::EventCounts>& counts) { answer_events(counts); });
}

void Session::create_qp(const rocemu_create_qp& message) {
  const device::QpSpec spec = to_qp_spec(message);
  if (const int error = device::check_qp(config().limits, spec)) return refuse(error);
  const QpLayout layout = lay_out_qp(config().limits, spec);
  SharedMemory memory("rocemu-qp", layout.memory_bytes);
  rocemu_create_qp_reply body{};
  body.sq_entries = layout.send.entries;
  body.sq_stride_bytes = layout.send.stride_bytes;
  body.rq_entries = layout.receive.entries;
  body.rq_stride_bytes = layout.receive.stride_bytes;
  body.max_send_sge = layout.send.max_sge;
  body.max_recv_sge = layout.receive.max_sge;
  body.max_inline_data = layout.max_inline_data;
  body.sq_offset_bytes = layout.send.offset_bytes;
  body.rq_offset_bytes = layout.receive.offset_bytes;
  body.memory_bytes = memory.size_bytes();
  UniqueFd fd = memory.take_fd();
  auto queues =
      std::make_unique<SharedWorkQueues>(std::move(memory), layout, config().limits.max_msg_size);
  on_context(
      [spec, queues = std::move(queues)](EngineContext& context) mutable {
        return context.create_qp(spec, std::move(queues));
      },
      [this, body, fd = std::move(fd)](device::Result<CreatedQueuePair> created) mutable {
        if (!created) return refuse(created.error());
        body.qp = created->qp.qp;
        body.qp_num = created->qp.qpn.value;
        body.doorbell = created->doorbell;
        answer(body, std::array{fd.get()});
      });
}

void Session::modify_qp(const rocemu_modify_qp& message) {
  const device::QpAttr attr = to_qp_attr(message.attr);
  const auto modify = [this, qp = message.qp, mask = message.attr_mask, attr] {
    on_context(
        [qp, mask, attr](EngineContext& context) {
          return context.hca().modify_qp(context.id(), qp, mask, attr);
        },
        [this](device::Result<transport::QpState> state) {
          if (!state) return refuse(state.error());
          answer_handle(static_cast<uint32_t>(*state));
        });
  };
  if ((message.attr_mask & device::kAv) == 0) return modify();
  with_path(attr.ah, modify);
}

void Session::query_qp(uint32_t qp) {
  on_context([qp](EngineContext& context) { return context.hca().query_qp(context.id(), qp); },
             [this](const device::Result<device::QpAttr>& attr) {
               if (!attr) return refuse(attr.error());
               rocemu_query_qp_reply body{};
               body.attr = from_qp_attr(*attr);
               answer(body);
             });
}

void Session::destroy_qp(uint32_t qp) {
  on_context([qp](EngineContext& context) { return context.destroy_qp(qp); },
             [this](const device::Result<device::EventCounts>& counts) { answer_events(counts); });
}

void Session::status() {
  on_engine([&nic = nic_] { return take_status(nic); },
            [this](const Report& report) {
              if (ended()) return;
              const UniqueFd text = make_text_memfd("rocemu-status", report());
              answer_empty(std::array{text.get()});
            });
}

void Session::shutdown() {
  shut_down_after_reply_ = true;
  answer_empty();
}

void Session::link_set(const rocemu_link_set& message) {
  if (nic_.ports.empty()) return refuse(EOPNOTSUPP);
  auto parsed = impairment::parse_assignment(message.assignment);
  if (!parsed.assignment) return refuse(EINVAL);
  if (!names_a_device(*parsed.assignment, nic_.devices)) return refuse(ENODEV);
  spdlog::info("process {}: link {}", peer().pid, impairment::to_text(*parsed.assignment));
  on_engine(
      [&nic = nic_, assignment = std::move(*parsed.assignment)] {
        set_links(nic.ports, assignment, nic.devices);
        return true;
      },
      [this](bool) {
        if (!ended()) answer_empty();
      });
}

void Session::link_show() {
  if (nic_.ports.empty()) return refuse(EOPNOTSUPP);
  on_engine([&nic = nic_] { return take_links(nic); },
            [this](const Report& report) {
              if (ended()) return;
              const UniqueFd text = make_text_memfd("rocemu-links", report());
              answer_empty(std::array{text.get()});
            });
}

}  // namespace rocemu::daemon
