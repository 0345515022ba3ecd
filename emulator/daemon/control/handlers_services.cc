// Requests about address handles, SRQs, XRC domains and multicast groups:
// verbs_shim/abi/services.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <system_error>

#include "base/reaper/reaper.h"
#include "emulator/daemon/control/conversions.h"
#include "emulator/daemon/control/handlers.h"
#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_work_queues.h"

namespace rocemu::daemon::handlers {
namespace {

wire::Gid to_gid(const uint8_t (&bytes)[16]) {
  wire::Gid gid;
  std::copy(std::begin(bytes), std::end(bytes), gid.bytes.begin());
  return gid;
}

// Returns what names a file or a directory anywhere, as far as that is known without asking its
// server, which may not answer; nothing when the descriptor is of neither.
std::optional<device::FileIdentity> identify(int fd) {
  struct statx status;
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status) != 0)
    throw std::system_error(errno, std::generic_category());
  if (!S_ISREG(status.stx_mode) && !S_ISDIR(status.stx_mode)) return std::nullopt;
  return device::FileIdentity{makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
}

// Keeps the descriptor open for as long as anybody has what this returns.
std::shared_ptr<void> hold_file(UniqueFd fd, ProgramShare::Charge charge) {
  return {new UniqueFd(std::move(fd)), [charge = std::move(charge)](UniqueFd* held) {
            close_elsewhere(std::move(*held));
            delete held;
          }};
}

// The memory of an SRQ: the ring for the device, what the program is told, and its descriptor.
struct NewReceiveRing {
  std::unique_ptr<device::ReceiveRing> ring;
  rocemu_create_srq_reply body{};
  UniqueFd fd;
};

// Makes the memory of an SRQ. Then `spec` has as many requests as the program hears that there are.
NewReceiveRing make_ring(SessionCore& session, device::SrqSpec& spec) {
  const device::DeviceLimits& limits = session.config().limits;
  const SrqLayout layout = lay_out_srq(limits, spec);
  spec.max_wr = std::min(layout.ring.granted, limits.max_srq_wr);
  SharedMemory memory = session.make_memory("rocemu-srq", layout.memory_bytes);
  NewReceiveRing made;
  made.body.entries = layout.ring.granted;
  made.body.stride_bytes = layout.ring.stride_bytes;
  made.body.max_sge = layout.ring.max_sge;
  made.body.offset_bytes = layout.ring.offset_bytes;
  made.body.memory_bytes = memory.size_bytes();
  made.fd = memory.take_fd();
  made.ring = std::make_unique<SharedReceiveRing>(std::move(memory), layout.ring);
  return made;
}

// Replaces the ring of an SRQ, in as many turns as the waiting receives take.
void replace_ring(SessionCore& session, uint32_t max_wr, std::shared_ptr<NewReceiveRing> made) {
  session.on_context(
      [made, max_wr](EngineContext& context) -> device::Result<bool> {
        const int error =
            context.hca().resize_srq(context.id(), made->body.srq, max_wr, made->ring);
        if (error != 0 && error != EINPROGRESS) return tl::unexpected(error);
        return error == 0;
      },
      [&session, max_wr, made](bool done) {
        if (!done) return replace_ring(session, max_wr, made);
        session.answer(made->body, std::array{made->fd.get()});
      });
}

}  // namespace

void create_ah(SessionCore& session, const rocemu_create_ah& message) {
  const device::AhAttr attr = to_ah_attr(message.attr);
  session.with_path(attr, [&session, pd = message.pd, attr] {
    session.on_context(
        [pd, attr](EngineContext& context) {
          return context.hca().create_ah(context.id(), pd, attr);
        },
        [&session](device::Handle ah) { session.answer_handle(ah); });
  });
}

void create_srq(SessionCore& session, const rocemu_create_srq& message) {
  const device::DeviceLimits& limits = session.config().limits;
  device::SrqSpec spec = to_srq_spec(message);
  if (const int error = device::check_srq(limits, spec)) return session.refuse(error);
  NewReceiveRing made = make_ring(session, spec);
  session.on_context(
      [spec, ring = std::move(made.ring)](EngineContext& context) mutable {
        return context.hca().create_srq(context.id(), spec, std::move(ring));
      },
      [&session, body = made.body,
       fd = std::move(made.fd)](const device::CreatedSrq& created) mutable {
        body.srq = created.srq;
        body.srq_num = created.number.value;
        session.answer(body, std::array{fd.get()});
      });
}

void modify_srq(SessionCore& session, const rocemu_srq_limit& message) {
  session.on_context(
      [srq = message.srq, limit = message.limit](EngineContext& context) {
        return context.hca().set_srq_limit(context.id(), srq, limit);
      },
      [&session, srq = message.srq] { session.answer_handle(srq); });
}

void change_tags(SessionCore& session, const rocemu_change_tags& message) {
  session.on_context(
      [srq = message.srq, op = to_tag_op(message)](EngineContext& context) {
        return context.hca().change_tags(context.id(), srq, op);
      },
      [&session](uint32_t handle) { session.answer_handle(handle); });
}

void resize_srq(SessionCore& session, const rocemu_resize_srq& message) {
  const device::DeviceLimits& limits = session.config().limits;
  device::SrqSpec spec;
  spec.max_wr = message.max_wr;
  spec.max_sge = message.max_sge;
  if (const int error = device::check_srq(limits, spec)) return session.refuse(error);
  auto made = std::make_shared<NewReceiveRing>(make_ring(session, spec));
  made->body.srq = message.srq;
  replace_ring(session, spec.max_wr, std::move(made));
}

void query_srq(SessionCore& session, const rocemu_srq_limit& message) {
  session.on_context(
      [srq = message.srq](EngineContext& context) {
        return context.hca().srq_limit(context.id(), srq);
      },
      [&session, srq = message.srq](uint32_t limit) {
        rocemu_srq_limit body{};
        body.srq = srq;
        body.limit = limit;
        session.answer(body);
      });
}

void open_xrcd(SessionCore& session, const rocemu_open_xrcd& message, ReceivedMessage& received) {
  device::XrcdSpec spec;
  spec.create = (message.flags & ROCEMU_XRCD_CREATE) != 0;
  spec.exclusive = (message.flags & ROCEMU_XRCD_EXCLUSIVE) != 0;
  if (received.fd_count == 1) {
    // Kept open, so that no other file gets its identity.
    spec.file = identify(received.fds[0].get());
    if (!spec.file) return session.refuse(EINVAL);
    spec.file_hold = hold_file(std::move(received.fds[0]), session.charge_descriptors(1));
  }
  session.on_context(
      [spec = std::move(spec)](EngineContext& context) {
        return context.hca().open_xrcd(context.id(), spec);
      },
      [&session](device::Handle xrcd) { session.answer_handle(xrcd); });
}

void open_qp(SessionCore& session, const rocemu_open_qp& message) {
  session.on_context(
      [xrcd = message.xrcd, qpn = wire::Qpn{message.qp_num}, pointer = message.user_pointer](
          EngineContext& context) { return context.open_qp(xrcd, qpn, pointer); },
      [&session](const device::CreatedQp& opened) { session.answer_handle(opened.qp); });
}

// The network that the device is on has to send the group here, too. When it does not, the QP is
// detached again.
void attach_mcast(SessionCore& session, const rocemu_mcast& message) {
  session.on_context(
      [qp = message.qp, group = to_gid(message.gid)](EngineContext& context) {
        return context.hca().attach_multicast(context.id(), qp, group);
      },
      [&session, qp = message.qp, group = to_gid(message.gid)] {
        DeviceNetwork* const network = session.network();
        const int error = network == nullptr ? 0 : network->join(group);
        if (error == 0) return session.answer_handle(qp);
        session.on_context(
            [qp, group, error](EngineContext& context) {
              context.hca().detach_multicast(context.id(), qp, group);
              return error;
            },
            [] {});
      });
}

void detach_mcast(SessionCore& session, const rocemu_mcast& message) {
  session.on_context(
      [qp = message.qp, group = to_gid(message.gid)](EngineContext& context) {
        return context.hca().detach_multicast(context.id(), qp, group);
      },
      [&session, qp = message.qp] { session.answer_handle(qp); });
}

}  // namespace rocemu::daemon::handlers
