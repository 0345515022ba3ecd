// A program of the control target. It has a session of rocemud to itself, and sends it requests by
// its mailbox, or as a socket would where descriptors come with them; there is neither a socket nor
// a second thread. Each answer is held against a model of what the program has made (answers.h).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "emulator/daemon/control/connection/mailbox_server.h"
#include "emulator/daemon/control/session_core.h"
#include "tests/fuzz/control/answers.h"
#include "tests/fuzz/control/model.h"
#include "tests/fuzz/nic/inline_engine.h"

namespace rocemu::fuzz {

class Client final : private daemon::SessionPeer {
 public:
  // Opens the device. `xrc_file` is the file that programs share XRC domains by. Others join the
  // context by `token`.
  Client(const daemon::SessionHost& host, InlineEngine& engine, int xrc_file, uint64_t token);
  ~Client() override;  // the program is killed
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // False: the message is malformed, and the connection has ended.
  bool send(std::span<const std::byte> datagram);

  const Model& model() const { return model_; }
  void scan_doorbells();
  // The program reads its events, of which its pipe holds few.
  void read_events();
  // The program posts something to its `index`-th QP: any bytes of a request, and a doorbell.
  void scribble(uint32_t index, std::span<const std::byte> entry);

  static constexpr uint64_t kAddress = 0x100000;
  static constexpr uint32_t kMemoryBytes = 8192;

 private:
  pid_t pid() const override { return 0; }
  std::unique_ptr<dma::AddressSpace> reach_memory(UniqueFd, uint64_t, uint64_t) override {
    return dma::AddressSpace::local(memory_, kAddress);
  }
  UniqueFd add_mailbox() override;
  void reply(std::span<const std::byte> bytes, std::span<const int> fds) override;
  void close(const char* why) override;
  std::shared_ptr<void> hold() override { return nullptr; }
  void finished() override { finished_ = true; }

  void open_device();
  int descriptor_for(const rocemu_header& header, std::span<const std::byte> datagram) const;
  void ask(std::span<const std::byte> datagram, int fd);
  bool ask_by_mailbox(std::span<const std::byte> datagram);

  InlineEngine& engine_;
  int xrc_file_;
  std::vector<std::byte> memory_;
  UniqueFd event_read_;
  UniqueFd event_write_;
  std::unique_ptr<daemon::MailboxServer> mailbox_;
  Mapping mailbox_page_;
  Mapping doorbell_page_;
  daemon::SessionCore core_;
  daemon::EngineContext* context_ = nullptr;
  Model model_;
  std::optional<Answer> answer_;  // to the request under way
  bool asked_by_mailbox_ = false;
  bool finished_ = false;
};

}  // namespace rocemu::fuzz
