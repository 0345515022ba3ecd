// DpdkSwitch is the switch between the NIC's devices, with DPDK and the frames beneath it, and the
// record of what passes.
#pragma once

#include <memory>

#include "dpdk_io/eal/eal.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/frame_writer.h"
#include "dpdk_io/port/uplink_port.h"
#include "dpdk_io/switch/switch.h"
#include "emulator/daemon/options.h"
#include "emulator/daemon/tracing/pcapng_file.h"

namespace rocemu::daemon {

class DpdkSwitch {
 public:
  // Starts DPDK for the ports that are asked for. Throws std::exception with a message for the
  // user.
  explicit DpdkSwitch(const Options& options);

  dpdk_io::FramePool& pool() { return pool_; }
  dpdk_io::Switch& ports() { return switch_; }
  // nullptr: nothing is recorded.
  dpdk_io::FrameWriter* capture() { return capture_.get(); }
  // The same when its frames are to have comments; else nullptr.
  PcapngFile* commented_capture() { return commented_; }
  // Records what passes a port of another network as well, if anything is recorded.
  void record(dpdk_io::UplinkPort& port);

 private:
  dpdk_io::Eal eal_;
  dpdk_io::FramePool pool_;
  dpdk_io::FramePool run_pool_;
  std::unique_ptr<dpdk_io::FrameWriter> capture_;
  PcapngFile* commented_ = nullptr;
  dpdk_io::Switch switch_;
};

}  // namespace rocemu::daemon
