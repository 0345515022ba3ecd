// A NIC with its control plane and engine, whose ports lead nowhere, and a program that speaks the
// control protocol by hand.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/time.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/port.h"
#include "emulator/daemon/administration.h"
#include "emulator/daemon/attachment/gid_directory.h"
#include "emulator/daemon/control/connection/mailbox_poller.h"
#include "emulator/daemon/control/connection/message_socket.h"
#include "emulator/daemon/control/engine_executor.h"
#include "emulator/daemon/control/listener.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/daemon/nic.h"

namespace rocemu::daemon {

class DeadPort final : public dpdk_io::Port {
 public:
  unsigned receive(uint64_t, std::span<rte_mbuf*>) noexcept override { return 0; }
  unsigned transmit(uint64_t, std::span<rte_mbuf*> burst) noexcept override;
  int poll_fd() const noexcept override { return -1; }
  bool has_work() const noexcept override { return false; }
  uint64_t next_arrival_ns() const noexcept override { return kNever; }
  const dpdk_io::PortStats& stats() const noexcept override { return stats_; }

 private:
  dpdk_io::PortStats stats_;
};

class NicFixture {
 public:
  explicit NicFixture(const device::DeviceLimits& limits = {}, size_t max_sessions = 64);
  ~NicFixture();

  const std::string& socket_path() const { return path_; }
  dpdk_io::FramePool& pool() { return pool_; }
  bool shut_down_asked() const { return shut_down_asked_.load(); }
  device::ObjectCounts counts();
  // Waits until nothing of any program is left.
  bool empty_soon();

 private:
  std::string path_;
  dpdk_io::FramePool pool_;
  DeadPort port_;
  GidDirectory gids_;
  boost::asio::io_context io_;
  MailboxPoller mailbox_poller_;
  Engine engine_;
  std::atomic<bool> shut_down_asked_{false};
  Nic nic_;
  EngineExecutor executor_;
  Administration administration_;
  SessionHost sessions_;
  std::unique_ptr<Listener> listener_;
  std::thread control_;
};

class Client {
 public:
  explicit Client(const NicFixture& nic);

  // Sends as it is.
  bool send_raw(const void* bytes, size_t size_bytes, std::span<const int> fds = {});
  template <class Message>
  bool send(uint32_t op, Message message, std::span<const int> fds = {}) {
    message.header.op = op;
    message.header.length = sizeof(message);
    message.header.cookie = ++cookie_;
    return send_raw(&message, sizeof(message), fds);
  }

  struct Reply {
    bool ended = false;
    std::vector<std::byte> bytes;
    std::vector<UniqueFd> fds;
    rocemu_header header{};

    template <class Body>
    Body as() const {
      Body body{};
      std::memcpy(&body, bytes.data(), std::min(sizeof(body), bytes.size()));
      return body;
    }
  };
  // Waits for the next reply.
  Reply receive();

  template <class Message>
  Reply call(uint32_t op, const Message& message, std::span<const int> fds = {}) {
    send(op, message, fds);
    return receive();
  }
  Reply call_handle(uint32_t op, uint32_t handle);

  rocemu_hello hello_message(uint32_t device_index);
  Reply hello(uint32_t device_index = 0);
  Reply hello_control() { return call(ROCEMU_OP_HELLO, hello_message(ROCEMU_NO_DEVICE)); }
  void close() { socket_.reset(); }

  int async_write_end() const { return async_write_.get(); }

 private:
  UniqueFd socket_;
  UniqueFd async_read_;
  UniqueFd async_write_;
  uint64_t probe_ = 0x1234567812345678;
  uint64_t cookie_ = 0;
};

struct HeaderOnly {
  rocemu_header header{};
};

}  // namespace rocemu::daemon
