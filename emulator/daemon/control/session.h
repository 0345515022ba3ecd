// A connection that speaks verbs_shim/abi/control.h: one opened device, or a control connection.
//
// Requests are decoded and checked here, on the control thread, and queue memory is made here; what
// touches the device is done by the engine, which the session calls and whose answer it waits for.
// However and whenever the connection ends, the context goes with all that was made in it: a call
// under way is first let return, since it may be the one that makes the context.
#pragma once

#include <boost/asio/dispatch.hpp>
#include <cerrno>
#include <functional>
#include <memory>
#include <new>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "emulator/daemon/cm_service/cm_conversation.h"
#include "emulator/daemon/control/connection.h"
#include "emulator/daemon/control/message_codec.h"
#include "emulator/daemon/engine/engine_context.h"
#include "emulator/daemon/nic.h"
#include "emulator/device/path.h"

namespace rocemu::daemon {

class Session final : public Connection {
 public:
  using Ended = std::function<void(Session&)>;

  // `nic` outlives the session; `ended` is called when nothing of it is left.
  Session(boost::asio::io_context& io, const Nic& nic, UniqueFd socket, const PeerCredentials& peer,
          Ended ended);

 private:
  enum class Kind { fresh, control, context, cm };

  void on_request(ReceivedMessage& message) override;
  void on_end() override;
  void on_replied() override;

  void dispatch(const Request& request, ReceivedMessage& message);
  void dispatch_cm(ReceivedMessage& message);
  void dispatch_control(const Request& request);
  void dispatch_context(const Request& request, ReceivedMessage& message);
  void finish();

  // session_hello.cc
  void hello(const rocemu_hello& message, ReceivedMessage& received);
  void open_device(const rocemu_hello& message, ReceivedMessage& received);
  void answer_hello(int status, std::span<const int> fds);

  // session_requests.cc
  void query_device();
  void query_port(const rocemu_query_port& message);
  void alloc_pd();
  void dealloc_pd(uint32_t pd);
  void reg_mr(const rocemu_reg_mr& message);
  void dereg_mr(uint32_t mr);
  void create_channel(ReceivedMessage& received);
  void destroy_channel(uint32_t channel);
  void create_cq(const rocemu_create_cq& message, ReceivedMessage& received);
  void destroy_cq(uint32_t cq);
  void create_qp(const rocemu_create_qp& message);
  void modify_qp(const rocemu_modify_qp& message);
  void query_qp(uint32_t qp);
  void destroy_qp(uint32_t qp);

  // session_memory.cc
  void query_device_ex();
  void register_region(const device::MrSpec& spec);
  void reg_file_mr(const rocemu_reg_file_mr& message, const ReceivedMessage& received);
  void rereg_mr(const rocemu_rereg_mr& message);
  void alloc_mw(const rocemu_alloc_mw& message);
  void dealloc_mw(uint32_t mw);
  void alloc_null_mr(uint32_t pd);
  void alloc_dm(const rocemu_alloc_dm& message);
  void free_dm(uint32_t dm);
  void reg_dm_mr(const rocemu_reg_dm_mr& message);
  void check_prefetch(const rocemu_check_prefetch& message);
  void resize_cq(const rocemu_resize_cq& message);
  void moderate_cq(const rocemu_moderate_cq& message);

  // session_import.cc
  void context_ticket();
  void join_context(const rocemu_join_context& message);
  void import_pd(uint32_t pd);
  void import_mr(const rocemu_import_mr& message);
  void import_dm(uint32_t dm);

  // session_services.cc
  bool dispatch_service(const Request& request, ReceivedMessage& message);
  void create_ah(const rocemu_create_ah& message);
  void destroy_ah(uint32_t ah);
  void create_srq(const rocemu_create_srq& message);
  void modify_srq(const rocemu_srq_limit& message);
  void resize_srq(const rocemu_resize_srq& message);
  void query_srq(uint32_t srq);
  void destroy_srq(uint32_t srq);
  void open_xrcd(const rocemu_open_xrcd& message, ReceivedMessage& received);
  void close_xrcd(uint32_t xrcd);
  void open_qp(const rocemu_open_qp& message);
  void change_mcast(const rocemu_mcast& message);
  void join_group(const rocemu_mcast& message);

  // session_requests.cc
  void status();
  void shutdown();
  void link_set(const rocemu_link_set& message);
  void link_show();

  const device::HcaConfig& config() const { return nic_.devices[device_index_]; }

  template <class Body>
  void answer(Body body, std::span<const int> fds = {}, int status = 0);
  void answer_empty(std::span<const int> fds = {});
  void refuse(int error);
  void answer_handle(uint32_t handle);
  void answer_outcome(int error, uint32_t handle);  // of a call that answers 0 or an errno
  void answer_keys(const device::Result<device::MrKeys>& keys);
  void answer_events(const device::Result<device::EventCounts>& counts);

  // Runs handle(), and turns what it throws (no memory, no descriptors) into the request's answer.
  template <class Handle>
  void guarded(Handle handle);

  // Runs next() here once the engine knows the way that `ah` describes, or refuses the request: for
  // every request with an address that a path is made from.
  template <class Next>
  void with_path(const device::AhAttr& ah, Next next);

  // Runs work() on the engine thread, then done(result) here; perhaps before it returns.
  template <class Work, class Done>
  void on_engine(Work work, Done done);
  // Runs work(EngineContext&) there, and done(result) here unless the connection ended meanwhile.
  template <class Work, class Done>
  void on_context(Work work, Done done);

  const Nic& nic_;
  Ended ended_callback_;
  Kind kind_ = Kind::fresh;
  uint32_t device_index_ = 0;
  std::unique_ptr<CmConversation> cm_;  // of a connection for connection management
  EngineContext* context_ = nullptr;    // the engine's; closed by finish()
  // Of regions that are mapped here, by handle: held so that they go here, not on the engine
  // thread, which unmapping would keep from its work.
  std::unordered_map<uint32_t, std::shared_ptr<const dma::MappedFile>> files_;
  rocemu_header request_{};  // the one being answered
  bool call_under_way_ = false;
  bool shut_down_after_reply_ = false;
};

template <class Body>
void Session::answer(Body body, std::span<const int> fds, int status) {
  body.header = request_;
  body.header.length = sizeof(body);
  body.header.status = status;
  body.header.reserved = 0;
  reply(std::as_bytes(std::span(&body, 1)), fds);
}

template <class Handle>
void Session::guarded(Handle handle) {
  try {
    handle();
  } catch (const std::system_error& error) {
    refuse(error.code().value());
  } catch (const std::bad_alloc&) {
    refuse(ENOMEM);
  }
}

template <class Next>
void Session::with_path(const device::AhAttr& ah, Next next) {
  PathFinder* const finder = nic_.path_finder(device_index_);
  if (finder == nullptr || device::is_multicast(ah.dgid) ||
      !device::names_a_path(config().port, ah))
    return next();
  call_under_way_ = true;
  auto self = std::static_pointer_cast<Session>(shared_from_this());
  finder->find(ah.dgid, [self = std::move(self), finder, gid = ah.dgid, next = std::move(next)](
                            int error, const wire::MacAddress& mac) mutable {
    self->call_under_way_ = false;
    if (self->ended()) return self->finish();
    if (error != 0) return self->refuse(error);
    self->guarded([&] {
      self->nic_.engine.post(Task([finder, gid, mac] { finder->learned().learn(gid, mac); }));
      next();
    });
  });
}

template <class Work, class Done>
void Session::on_engine(Work work, Done done) {
  call_under_way_ = true;
  auto self = std::static_pointer_cast<Session>(shared_from_this());
  nic_.engine.post(Task([self, work = std::move(work), done = std::move(done)]() mutable {
    auto result = work();
    boost::asio::io_context& home = self->io();
    boost::asio::dispatch(home, [self = std::move(self), done = std::move(done),
                                 result = std::move(result)]() mutable {
      self->guarded([&] { done(std::move(result)); });
      self->call_under_way_ = false;
      if (self->ended()) self->finish();
    });
  }));
}

template <class Work, class Done>
void Session::on_context(Work work, Done done) {
  on_engine([context = context_, work = std::move(work)]() mutable { return work(*context); },
            [this, done = std::move(done)](auto result) mutable {
              if (!ended()) done(std::move(result));
            });
}

}  // namespace rocemu::daemon
