#include "emulator/daemon/control/session.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <cerrno>

namespace rocemu::daemon {

Session::Session(boost::asio::io_context& io, const Nic& nic, UniqueFd socket,
                 const PeerCredentials& peer, Ended ended)
    : Connection(io, std::move(socket), peer, nic.mailbox_poller),
      nic_(nic),
      ended_callback_(std::move(ended)) {}

void Session::on_request(ReceivedMessage& message) {
  if (kind_ == Kind::cm) return dispatch_cm(message);
  const auto request = decode(message.bytes());
  if (!request) {
    spdlog::warn("process {}: {}; closing", peer().pid, to_string(request.error()));
    return end();
  }
  request_ = request->header;
  guarded([&] { dispatch(*request, message); });
}

void Session::dispatch(const Request& request, ReceivedMessage& message) {
  if (kind_ == Kind::fresh) {
    if (request_.op == ROCEMU_OP_HELLO && request.error == EPROTO) return answer_hello(EPROTO, {});
    if (request_.op == ROCEMU_OP_HELLO && request.error == 0)
      return hello(std::get<rocemu_hello>(request.body), message);
    if (request.error != 0) return refuse(request.error);
    spdlog::warn("process {}: request {} before a hello; closing", peer().pid, request_.op);
    return end();
  }
  if (request.error != 0) return refuse(request.error);
  const bool takes_fd =
      request_.op == ROCEMU_OP_CREATE_CHANNEL || request_.op == ROCEMU_OP_REG_FILE_MR;
  const bool may_take_fd =
      (request_.op == ROCEMU_OP_OPEN_XRCD || request_.op == ROCEMU_OP_CREATE_CQ) &&
      message.fd_count <= 1;
  if (message.fd_count != (takes_fd ? 1 : 0) && !may_take_fd) return refuse(EINVAL);
  if (kind_ == Kind::control) return dispatch_control(request);
  dispatch_context(request, message);
}

void Session::dispatch_cm(ReceivedMessage& message) {
  if (cm_->on_request(message, [this](std::span<const std::byte> bytes) { reply(bytes, {}); }))
    return;
  spdlog::warn("process {}: malformed message about connections; closing", peer().pid);
  end();
}

void Session::dispatch_control(const Request& request) {
  switch (request.header.op) {
    case ROCEMU_OP_STATUS:
      return status();
    case ROCEMU_OP_SHUTDOWN:
      return shutdown();
    case ROCEMU_OP_LINK_SET:
      return link_set(std::get<rocemu_link_set>(request.body));
    case ROCEMU_OP_LINK_SHOW:
      return link_show();
    default:
      return refuse(EINVAL);
  }
}

void Session::dispatch_context(const Request& request, ReceivedMessage& message) {
  const uint32_t handle = request.handle();
  switch (request.header.op) {
    case ROCEMU_OP_QUERY_DEVICE:
      return query_device();
    case ROCEMU_OP_QUERY_PORT:
      return query_port(std::get<rocemu_query_port>(request.body));
    case ROCEMU_OP_ALLOC_PD:
      return alloc_pd();
    case ROCEMU_OP_DEALLOC_PD:
      return dealloc_pd(handle);
    case ROCEMU_OP_REG_MR:
      return reg_mr(std::get<rocemu_reg_mr>(request.body));
    case ROCEMU_OP_REG_FILE_MR:
      return reg_file_mr(std::get<rocemu_reg_file_mr>(request.body), message);
    case ROCEMU_OP_DEREG_MR:
      return dereg_mr(handle);
    case ROCEMU_OP_QUERY_DEVICE_EX:
      return query_device_ex();
    case ROCEMU_OP_REREG_MR:
      return rereg_mr(std::get<rocemu_rereg_mr>(request.body));
    case ROCEMU_OP_ALLOC_MW:
      return alloc_mw(std::get<rocemu_alloc_mw>(request.body));
    case ROCEMU_OP_DEALLOC_MW:
      return dealloc_mw(handle);
    case ROCEMU_OP_ALLOC_NULL_MR:
      return alloc_null_mr(handle);
    case ROCEMU_OP_ALLOC_DM:
      return alloc_dm(std::get<rocemu_alloc_dm>(request.body));
    case ROCEMU_OP_FREE_DM:
      return free_dm(handle);
    case ROCEMU_OP_REG_DM_MR:
      return reg_dm_mr(std::get<rocemu_reg_dm_mr>(request.body));
    case ROCEMU_OP_CHECK_PREFETCH:
      return check_prefetch(std::get<rocemu_check_prefetch>(request.body));
    case ROCEMU_OP_RESIZE_CQ:
      return resize_cq(std::get<rocemu_resize_cq>(request.body));
    case ROCEMU_OP_MODERATE_CQ:
      return moderate_cq(std::get<rocemu_moderate_cq>(request.body));
    case ROCEMU_OP_CONTEXT_TICKET:
      return context_ticket();
    case ROCEMU_OP_JOIN_CONTEXT:
      return join_context(std::get<rocemu_join_context>(request.body));
    case ROCEMU_OP_IMPORT_PD:
      return import_pd(handle);
    case ROCEMU_OP_IMPORT_MR:
      return import_mr(std::get<rocemu_import_mr>(request.body));
    case ROCEMU_OP_IMPORT_DM:
      return import_dm(handle);
    case ROCEMU_OP_CREATE_CHANNEL:
      return create_channel(message);
    case ROCEMU_OP_DESTROY_CHANNEL:
      return destroy_channel(handle);
    case ROCEMU_OP_CREATE_CQ:
      return create_cq(std::get<rocemu_create_cq>(request.body), message);
    case ROCEMU_OP_DESTROY_CQ:
      return destroy_cq(handle);
    case ROCEMU_OP_CREATE_QP:
      return create_qp(std::get<rocemu_create_qp>(request.body));
    case ROCEMU_OP_MODIFY_QP:
      return modify_qp(std::get<rocemu_modify_qp>(request.body));
    case ROCEMU_OP_QUERY_QP:
      return query_qp(handle);
    case ROCEMU_OP_DESTROY_QP:
      return destroy_qp(handle);
    default:
      if (!dispatch_service(request, message)) refuse(EINVAL);
  }
}

namespace {

struct HeaderAlone {
  rocemu_header header{};
};

}  // namespace

void Session::answer_empty(std::span<const int> fds) { answer(HeaderAlone{}, fds); }

void Session::refuse(int error) { answer(HeaderAlone{}, {}, error); }

void Session::answer_outcome(int error, uint32_t handle) {
  if (error != 0) return refuse(error);
  answer_handle(handle);
}

void Session::answer_handle(uint32_t handle) {
  rocemu_handle_message body{};
  body.handle = handle;
  answer(body);
}

void Session::answer_events(const device::Result<device::EventCounts>& counts) {
  if (!counts) return refuse(counts.error());
  rocemu_destroy_events_reply body{};
  body.comp_events = counts->completion;
  body.async_events = counts->async;
  answer(body);
}

void Session::on_replied() {
  if (shut_down_after_reply_) nic_.shut_down();
}

void Session::on_end() {
  if (!call_under_way_) finish();
}

void Session::finish() {
  cm_.reset();
  if (EngineContext* context = std::exchange(context_, nullptr)) {
    Engine& engine = nic_.engine;
    engine.post(Task([&engine, context, &home = io(), files = std::move(files_)]() mutable {
      engine.close_context(*context);
      if (!files.empty()) boost::asio::post(home, [files = std::move(files)] {});
    }));
  }
  ended_callback_(*this);
}

}  // namespace rocemu::daemon
