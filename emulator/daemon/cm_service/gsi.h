// The general service interface: QP1 of every device. MADs of the communication manager travel as
// UD frames of the devices' own ports, with all headers and an ICRC.
//
// The engine thread hands arriving MADs to the control thread, and sends those that it has built.
// Both ways are bounded; a MAD that finds no room is lost, as it could be on any network.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "emulator/cm/types.h"
#include "emulator/daemon/attachment/path_finder.h"
#include "emulator/daemon/cm_service/pending_mads.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/device/attributes/device_config.h"
#include "emulator/transport/interface/management.h"

namespace rocemu::daemon {

class Gsi {
 public:
  // Called on the control thread.
  using Receive = std::function<void(const cm::Route& route, std::span<const std::byte> mad)>;

  // Called on the control thread, with each MAD that is sent or comes.
  using Watch = std::function<void(const cm::Route&, std::span<const std::byte> mad, bool sent)>;

  // Before the engine starts. `path_finders` are those of the devices, as in Nic. Everything given
  // outlives this; no engine runs any more when it goes.
  Gsi(boost::asio::io_context& io, Engine& engine, const std::vector<device::HcaConfig>& devices,
      device::AddressResolver& resolver, std::vector<PathFinder*> path_finders, Receive receive);
  ~Gsi();

  // The control thread: sends all that `mads` holds, and empties it.
  void send(std::vector<cm::OutgoingMad>& mads);
  void watch(Watch watch) { watch_ = std::move(watch); }

 private:
  class MadReceiver;
  struct Arrived {
    cm::Route route;
    wire::MadBytes mad;
  };
  struct Frame {
    uint32_t device;
    std::vector<std::byte> bytes;
  };

  void arrived(const Arrived& mad);
  void hand_over();
  std::vector<std::byte> build(const cm::OutgoingMad& mad, const MacAddress& destination);
  void find_and_send(PathFinder& finder, const cm::OutgoingMad& mad);
  void search(PathFinder& finder, const cm::Route& route);
  void send_if_known(PathFinder& finder, const cm::OutgoingMad& mad);
  void send_to(const MacAddress& destination, std::span<const cm::OutgoingMad> mads);
  void send_frames(std::vector<Frame> frames);

  boost::asio::io_context& io_;
  Engine& engine_;
  const std::vector<device::HcaConfig>& devices_;
  device::AddressResolver& resolver_;
  std::vector<PathFinder*> path_finders_;  // by device; nullptr: the resolver knows
  Receive receive_;
  Watch watch_;  // empty: nobody is told
  std::vector<std::unique_ptr<MadReceiver>> receivers_;
  std::vector<wire::Psn> psns_;  // the PSN of the next datagram, by device
  // Searches may outlast this; they see by it that there is nothing left to send.
  std::shared_ptr<PendingMads> pending_ = std::make_shared<PendingMads>();
  std::mutex mutex_;
  std::vector<Arrived> inbox_;
  std::vector<Arrived> being_read_;  // the control thread's
};

}  // namespace rocemu::daemon
