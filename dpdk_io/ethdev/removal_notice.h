// Hears when the kernel wants a NIC on the PCI bus back: its driver is to be unbound, or the NIC to
// be unplugged. The kernel waits until DPDK has let go of it.
#pragma once

#include <atomic>
#include <string>

namespace rocemu::dpdk_io {

class RemovalNotice {
 public:
  // `device` is its name on the bus. Needs an Eal, for as long as it lives.
  explicit RemovalNotice(std::string device);
  ~RemovalNotice();
  RemovalNotice(const RemovalNotice&) = delete;
  RemovalNotice& operator=(const RemovalNotice&) = delete;

  // Any thread's.
  bool given() const noexcept { return given_.load(std::memory_order_acquire); }

 private:
  std::string device_;
  std::atomic<bool> given_{false};
};

}  // namespace rocemu::dpdk_io
