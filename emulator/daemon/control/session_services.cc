// What a context can ask for by verbs_shim/abi/services.h.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "emulator/daemon/attachment/port_description.h"
#include "emulator/daemon/control/session.h"
#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_work_queues.h"

namespace rocemu::daemon {

namespace {

wire::Gid to_gid(const uint8_t (&bytes)[16]) {
  wire::Gid gid;
  std::copy(std::begin(bytes), std::end(bytes), gid.bytes.begin());
  return gid;
}

}  // namespace

bool Session::dispatch_service(const Request& request, ReceivedMessage& message) {
  const uint32_t handle = request.handle();
  switch (request.header.op) {
    case ROCEMU_OP_CREATE_AH:
      create_ah(std::get<rocemu_create_ah>(request.body));
      return true;
    case ROCEMU_OP_DESTROY_AH:
      destroy_ah(handle);
      return true;
    case ROCEMU_OP_CREATE_SRQ:
      create_srq(std::get<rocemu_create_srq>(request.body));
      return true;
    case ROCEMU_OP_MODIFY_SRQ:
      modify_srq(std::get<rocemu_srq_limit>(request.body));
      return true;
    case ROCEMU_OP_RESIZE_SRQ:
      resize_srq(std::get<rocemu_resize_srq>(request.body));
      return true;
    case ROCEMU_OP_QUERY_SRQ:
      query_srq(std::get<rocemu_srq_limit>(request.body).srq);
      return true;
    case ROCEMU_OP_DESTROY_SRQ:
      destroy_srq(handle);
      return true;
    case ROCEMU_OP_OPEN_XRCD:
      open_xrcd(std::get<rocemu_open_xrcd>(request.body), message);
      return true;
    case ROCEMU_OP_CLOSE_XRCD:
      close_xrcd(handle);
      return true;
    case ROCEMU_OP_OPEN_QP:
      open_qp(std::get<rocemu_open_qp>(request.body));
      return true;
    case ROCEMU_OP_ATTACH_MCAST:
    case ROCEMU_OP_DETACH_MCAST:
      change_mcast(std::get<rocemu_mcast>(request.body));
      return true;
    default:
      return false;
  }
}

void Session::create_ah(const rocemu_create_ah& message) {
  const device::AhAttr attr = to_ah_attr(message.attr);
  with_path(attr, [this, pd = message.pd, attr] {
    on_context(
        [pd, attr](EngineContext& context) {
          return context.hca().create_ah(context.id(), pd, attr);
        },
        [this](device::Result<device::Handle> ah) {
          if (!ah) return refuse(ah.error());
          answer_handle(*ah);
        });
  });
}

void Session::destroy_ah(uint32_t ah) {
  on_context([ah](EngineContext& context) { return context.hca().destroy_ah(context.id(), ah); },
             [this, ah](int error) { answer_outcome(error, ah); });
}

namespace {

rocemu_create_srq_reply describe_srq(const SrqLayout& layout, const SharedMemory& memory) {
  rocemu_create_srq_reply body{};
  body.entries = layout.ring.entries;
  body.stride_bytes = layout.ring.stride_bytes;
  body.max_sge = layout.ring.max_sge;
  body.offset_bytes = layout.ring.offset_bytes;
  body.memory_bytes = memory.size_bytes();
  return body;
}

}  // namespace

void Session::create_srq(const rocemu_create_srq& message) {
  device::SrqSpec spec = to_srq_spec(message);
  if (const int error = device::check_srq(config().limits, spec)) return refuse(error);
  const SrqLayout layout = lay_out_srq(config().limits, spec);
  spec.max_wr = std::min(layout.ring.entries, config().limits.max_srq_wr);  // as the program hears
  SharedMemory memory("rocemu-srq", layout.memory_bytes);
  rocemu_create_srq_reply body = describe_srq(layout, memory);
  UniqueFd fd = memory.take_fd();
  auto ring = std::make_unique<SharedReceiveRing>(std::move(memory), layout.ring);
  on_context(
      [spec, ring = std::move(ring)](EngineContext& context) mutable {
        return context.hca().create_srq(context.id(), spec, std::move(ring));
      },
      [this, body, fd = std::move(fd)](device::Result<device::CreatedSrq> created) mutable {
        if (!created) return refuse(created.error());
        body.srq = created->srq;
        body.srq_num = created->number.value;
        answer(body, std::array{fd.get()});
      });
}

void Session::modify_srq(const rocemu_srq_limit& message) {
  on_context(
      [srq = message.srq, limit = message.limit](EngineContext& context) {
        return context.hca().set_srq_limit(context.id(), srq, limit);
      },
      [this, srq = message.srq](int error) { answer_outcome(error, srq); });
}

void Session::resize_srq(const rocemu_resize_srq& message) {
  device::SrqSpec spec;
  spec.max_wr = message.max_wr;
  spec.max_sge = message.max_sge;
  if (const int error = device::check_srq(config().limits, spec)) return refuse(error);
  const SrqLayout layout = lay_out_srq(config().limits, spec);
  spec.max_wr = std::min(layout.ring.entries, config().limits.max_srq_wr);
  SharedMemory memory("rocemu-srq", layout.memory_bytes);
  rocemu_create_srq_reply body = describe_srq(layout, memory);
  body.srq = message.srq;
  UniqueFd fd = memory.take_fd();
  auto ring = std::make_unique<SharedReceiveRing>(std::move(memory), layout.ring);
  on_context(
      [srq = message.srq, max_wr = spec.max_wr,
       ring = std::move(ring)](EngineContext& context) mutable {
        return context.hca().resize_srq(context.id(), srq, max_wr, std::move(ring));
      },
      [this, body, fd = std::move(fd)](int error) mutable {
        if (error != 0) return refuse(error);
        answer(body, std::array{fd.get()});
      });
}

void Session::query_srq(uint32_t srq) {
  on_context([srq](EngineContext& context) { return context.hca().srq_limit(context.id(), srq); },
             [this, srq](device::Result<uint32_t> limit) {
               if (!limit) return refuse(limit.error());
               rocemu_srq_limit body{};
               body.srq = srq;
               body.limit = *limit;
               answer(body);
             });
}

void Session::destroy_srq(uint32_t srq) {
  on_context([srq](EngineContext& context) { return context.hca().destroy_srq(context.id(), srq); },
             [this](const device::Result<device::EventCounts>& counts) { answer_events(counts); });
}

void Session::open_xrcd(const rocemu_open_xrcd& message, ReceivedMessage& received) {
  device::XrcdSpec spec;
  spec.create = (message.flags & ROCEMU_XRCD_CREATE) != 0;
  spec.exclusive = (message.flags & ROCEMU_XRCD_EXCLUSIVE) != 0;
  if (received.fd_count == 1) {
    // Kept open, so that no other file gets its identity.
    auto file = std::make_shared<UniqueFd>(std::move(received.fds[0]));
    struct stat status;
    if (::fstat(file->get(), &status) != 0) throw std::system_error(errno, std::generic_category());
    // The close of a socket, say, may take its time.
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return refuse(EINVAL);
    spec.file = device::FileIdentity{status.st_dev, status.st_ino};
    spec.file_hold = std::move(file);
  }
  on_context([spec = std::move(spec)](
                 EngineContext& context) { return context.hca().open_xrcd(context.id(), spec); },
             [this](device::Result<device::Handle> xrcd) {
               if (!xrcd) return refuse(xrcd.error());
               answer_handle(*xrcd);
             });
}

void Session::close_xrcd(uint32_t xrcd) {
  on_context(
      [xrcd](EngineContext& context) { return context.hca().close_xrcd(context.id(), xrcd); },
      [this, xrcd](int error) { answer_outcome(error, xrcd); });
}

void Session::open_qp(const rocemu_open_qp& message) {
  on_context([xrcd = message.xrcd, qpn = wire::Qpn{message.qp_num}, pointer = message.user_pointer](
                 EngineContext& context) { return context.open_qp(xrcd, qpn, pointer); },
             [this](device::Result<device::CreatedQp> opened) {
               if (!opened) return refuse(opened.error());
               answer_handle(opened->qp);
             });
}

void Session::change_mcast(const rocemu_mcast& message) {
  on_context(
      [attach = message.header.op == ROCEMU_OP_ATTACH_MCAST, qp = message.qp,
       group = to_gid(message.gid)](EngineContext& context) {
        device::Hca& hca = context.hca();
        return attach ? hca.attach_multicast(context.id(), qp, group)
                      : hca.detach_multicast(context.id(), qp, group);
      },
      [this, message](int error) {
        if (error == 0 && message.header.op == ROCEMU_OP_ATTACH_MCAST)
          join_group(message);
        else
          answer_outcome(error, message.qp);
      });
}

// The machine's network has to send the group here, too.
void Session::join_group(const rocemu_mcast& message) {
  dpdk_io::MulticastGroups* const groups = nic_.groups_of(device_index_);
  const int error = groups == nullptr ? 0 : groups->join(to_ip_address(to_gid(message.gid)));
  if (error == 0) return answer_outcome(0, message.qp);
  on_context(
      [qp = message.qp, group = to_gid(message.gid)](EngineContext& context) {
        return context.hca().detach_multicast(context.id(), qp, group);
      },
      [this, error, qp = message.qp](int) { answer_outcome(error, qp); });
}

}  // namespace rocemu::daemon
