// One connection of the control target: takes datagrams as a session does (decode, check, call the
// device), without a socket and without a second thread, and checks each outcome against a model.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "emulator/daemon/control/message_codec.h"
#include "emulator/daemon/engine/engine_clock.h"
#include "emulator/daemon/engine/engine_context.h"
#include "emulator/daemon/rings/completion_host.h"
#include "tests/fuzz/control/model.h"

namespace rocemu::fuzz {

class Client {
 public:
  // Throws std::bad_optional_access or tl::bad_expected_access when the device has no room. Others
  // join the context by `token`.
  Client(device::Hca& hca, daemon::WakeSet& wake_set, const daemon::EngineClock& clock,
         uint64_t token);

  // A message as it came. The connection ends (false) at one that is malformed.
  bool receive(std::span<const std::byte> datagram);

  const Model& model() const { return model_; }
  void scan_doorbells();
  // The program posts something to its `index`-th QP: any bytes of a request, and a doorbell.
  void scribble(uint32_t index, std::span<const std::byte> entry);

  static constexpr uint64_t kAddress = 0x100000;
  static constexpr uint32_t kMemoryBytes = 8192;

 private:
  void dispatch(const daemon::Request& request);
  void alloc_pd();
  void dealloc_pd(uint32_t handle);
  void reg_mr(const rocemu_reg_mr& message);
  void dereg_mr(uint32_t handle);
  void create_channel();
  void destroy_channel(uint32_t handle);
  void create_cq(const rocemu_create_cq& message);
  void destroy_cq(uint32_t handle);
  void create_qp(const rocemu_create_qp& message);
  void modify_qp(const rocemu_modify_qp& message);
  void query_qp(uint32_t handle);
  void destroy_qp(uint32_t handle);

  // client_memory.cc
  bool dispatch_memory(const daemon::Request& request, uint32_t handle);
  void register_region(const device::MrSpec& spec);
  void rereg_mr(const rocemu_rereg_mr& message);
  void alloc_mw(const rocemu_alloc_mw& message);
  void dealloc_mw(uint32_t handle);
  void alloc_dm(const rocemu_alloc_dm& message);
  void free_dm(uint32_t handle);
  void resize_cq(const rocemu_resize_cq& message);
  void join_context(const rocemu_join_context& message);
  void import_pd(uint32_t there);
  void import_dm(uint32_t there);

  // client_services.cc
  bool dispatch_service(const daemon::Request& request, uint32_t handle);
  void create_ah(const rocemu_create_ah& message);
  void destroy_ah(uint32_t handle);
  void create_srq(const rocemu_create_srq& message);
  void resize_srq(const rocemu_resize_srq& message);
  void limit_srq(const rocemu_srq_limit& message);
  void destroy_srq(uint32_t handle);
  void open_xrcd(const rocemu_open_xrcd& message);
  void close_xrcd(uint32_t handle);
  void open_qp(const rocemu_open_qp& message);
  void change_mcast(const rocemu_mcast& message);

  // Counts a QP that is new, or gone, among the users of what it is made of.
  void count_users(const Model::Qp& qp, uint32_t change);

  device::Hca& hca_;
  const daemon::EngineClock& clock_;
  daemon::CompletionHost host_;
  std::vector<std::byte> memory_;
  std::byte* doorbell_page_ = nullptr;
  std::unique_ptr<daemon::EngineContext> context_;
  Model model_;
};

}  // namespace rocemu::fuzz
