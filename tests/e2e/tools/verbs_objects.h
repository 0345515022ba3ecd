// Owners for libibverbs objects, and the few steps every checking program repeats: open a device,
// make a QP, bring two QPs to RTS with each other. Only the public libibverbs interface is used, so
// the programs run on any RDMA device.
//
// Every owner destroys its object; a refusal is printed and counted (destroy_failures), since a
// device that does not let go of an object has a fault that no exception should hide.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace rocemu::e2e {

void report_destroy_failure(int errno_value) noexcept;
int destroy_failures() noexcept;

template <auto destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const noexcept {
    if (const int rc = destroy(object); rc != 0) report_destroy_failure(rc);
  }
};

using ContextPtr = std::unique_ptr<ibv_context, Destroyer<&ibv_close_device>>;
using PdPtr = std::unique_ptr<ibv_pd, Destroyer<&ibv_dealloc_pd>>;
using MrPtr = std::unique_ptr<ibv_mr, Destroyer<&ibv_dereg_mr>>;
using ChannelPtr = std::unique_ptr<ibv_comp_channel, Destroyer<&ibv_destroy_comp_channel>>;
using CqPtr = std::unique_ptr<ibv_cq, Destroyer<&ibv_destroy_cq>>;
using QpPtr = std::unique_ptr<ibv_qp, Destroyer<&ibv_destroy_qp>>;
using AhPtr = std::unique_ptr<ibv_ah, Destroyer<&ibv_destroy_ah>>;
using FlowPtr = std::unique_ptr<ibv_flow, Destroyer<&ibv_destroy_flow>>;
// The calls of these are inline functions, each file's own.
inline int dealloc_mw(ibv_mw* mw) { return ibv_dealloc_mw(mw); }
using MwPtr = std::unique_ptr<ibv_mw, Destroyer<&dealloc_mw>>;
inline int free_dm(ibv_dm* dm) { return ibv_free_dm(dm); }
using DmPtr = std::unique_ptr<ibv_dm, Destroyer<&free_dm>>;

inline constexpr uint8_t kPort = 1;

// One opened device with a PD, and the address its QPs have.
struct Device {
  ContextPtr context;
  ibv_device_attr attr{};
  ibv_port_attr port{};
  ibv_gid gid{};
  uint8_t gid_index = 0;
  PdPtr pd;

  const char* name() const { return ibv_get_device_name(context->device); }
};

// Opens the device of that name, or the first there is when the name is empty. Throws Failure.
Device open_device(const std::string& name, int gid_index);

// The two of a program's -d and -D: without the second name it is the first one, opened once more.
std::pair<Device, Device> open_devices(const std::string& a, const std::string& b, int gid_index);

// Anonymous pages with inaccessible ones before and after, so that a program's own slip is a fault.
class Memory {
 public:
  explicit Memory(size_t bytes);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(data_); }
  // munmap of the pages, while whatever was registered over them stays registered.
  void unmap();

 private:
  std::byte* data_;
  size_t bytes_;
  bool unmapped_ = false;
};

// Null with errno set when the device refuses; must() makes that a Failure.
MrPtr register_memory(ibv_pd* pd, const void* address, size_t bytes, unsigned access);
MrPtr register_memory_at(ibv_pd* pd, const void* address, size_t bytes, uint64_t iova,
                         unsigned access);

// RcOptions are what both ends of an RC connection are given. Defaults survive a badly scheduled
// machine.
struct RcOptions {
  ibv_mtu path_mtu = IBV_MTU_1024;
  unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  uint32_t sq_psn = 0;
  uint32_t rq_psn = 0;
  uint8_t timeout = 16;  // 4.096 us * 2^16 = 268 ms
  uint8_t retry_cnt = 7;
  uint8_t rnr_retry = 7;      // for ever
  uint8_t min_rnr_timer = 1;  // 10 us
  uint8_t max_rd_atomic = 1;
  uint8_t max_dest_rd_atomic = 1;
};

// An ibv_qp_attr with its mask, for one transition.
struct QpChange {
  ibv_qp_attr attr{};
  int mask = 0;

  int apply(ibv_qp* qp) { return ibv_modify_qp(qp, &attr, mask); }
};

QpChange change_to(ibv_qp_state state);  // RESET, ERR: no other attribute
QpChange change_to_init(const RcOptions& options);
QpChange change_to_rtr(const RcOptions& options, const Device& own, const ibv_gid& peer_gid,
                       uint16_t peer_lid, uint32_t peer_qpn);
QpChange change_to_rts(const RcOptions& options);

ibv_qp_state query_state(ibv_qp* qp);

// INIT, RTR, RTS. `options.sq_psn` is the PSN this end starts with, `rq_psn` the peer's.
void connect_one(ibv_qp* qp, const Device& own, const RcOptions& options, const ibv_gid& peer_gid,
                 uint16_t peer_lid, uint32_t peer_qpn);
// Both ends with the same options; `b` starts with the PSN that `a` expects.
void connect_pair(ibv_qp* a, const Device& device_a, ibv_qp* b, const Device& device_b,
                  const RcOptions& options);

using Clock = std::chrono::steady_clock;

// One completion, or nothing when none came in that time. Polls, and yields between polls.
std::optional<ibv_wc> poll_one(ibv_cq* cq, std::chrono::milliseconds patience);

std::string wc_text(const ibv_wc& wc);

}  // namespace rocemu::e2e
