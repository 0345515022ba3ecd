#include "dpdk_io/ethdev/ethernet_device.h"

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "dpdk_io/eal/driver_log.h"
#include "dpdk_io/ethdev/device_arguments.h"
#include "dpdk_io/ethdev/memif.h"
#include "dpdk_io/ethdev/realtime_signals.h"
#include "dpdk_io/ip_host/packet.h"

namespace rocemu::dpdk_io {
namespace {

constexpr uint16_t kQueue = 0;
constexpr uint16_t kDescriptors = 1024;
// NICs want a multiple of 1 KB, net_af_packet wants no less than its framesz.
constexpr unsigned kBufferBytes = 8192;
constexpr unsigned kPoolFrames = 4 * kDescriptors;
// RoCE has use for these: path MTUs of 4096 and 2048 with the longest headers.
constexpr std::array<uint16_t, 2> kWantedMtus = {4200, 2152};
// They carry whatever fits into their buffers and into their other end, whatever MTU they tell.
constexpr std::array<std::string_view, 3> kWithoutMtu = {"net_ring", "net_pcap", "net_eth_vhost"};
constexpr unsigned kLongestFrameBytes = UINT16_MAX;
// The descriptor of net_tap is the kernel's, and need not be armed.
constexpr std::string_view kTap = "net_tap";
constexpr std::chrono::seconds kLinkPatience{3};
constexpr std::chrono::milliseconds kLinkPeriod{20};

}  // namespace

// Collects what DPDK says, for the message about what went wrong.
class EthernetDevice::Setup {
 public:
  explicit Setup(std::string device) : device_(std::move(device)) {}

  [[noreturn]] void fail(const std::string& why) {
    const std::string said = log_.summary({"on primary process", "Driver cannot attach"});
    throw std::runtime_error(device_ + ": " + why + (said.empty() ? "" : "; DPDK says: " + said));
  }
  // `result` is a negative errno value when it failed.
  void check(int result, const char* what) {
    if (result < 0) fail(std::string(what) + ": " + rte_strerror(-result));
  }

 private:
  std::string device_;
  DriverLog log_;
  RealtimeSignalsTaken signals_;
};

EthernetDevice::EthernetDevice(const EthernetDeviceRequest& request)
    : arguments_(with_memif_defaults(request.arguments)),
      name_(device_name(arguments_)),
      connects_(is_memif_client(arguments_)) {
  Setup setup(name_);
  try {
    find(setup, request.bus);
    configure(setup, request.bus);
    choose_mtu(request.mtu_bytes);
    // Others carry more than their MTU, as telemetry of the path needs, or lose that frame alone.
    longest_sent_bytes_ =
        name_.starts_with(kTap) ? kEthernetBytes + kVlanTagBytes + mtu_bytes_ : kLongestFrameBytes;
    if (!connects_ || memif_server_answers(arguments_)) start(setup);
    if (request.bus == EthernetDeviceRequest::Bus::pci) wait_for_link();
  } catch (...) {
    remove();
    throw;
  }
  choose_mac(request.mac);
}

void EthernetDevice::choose_mac(const MacAddress& otherwise) {
  rte_ether_addr mac{};
  rte_eth_macaddr_get(port_, &mac);
  std::copy_n(mac.addr_bytes, mac_.size(), mac_.begin());
  if (!is_station(mac_)) mac_ = otherwise;
  // The driver's is what the kernel's end of the link has, unless it stands for another interface.
  constexpr uint8_t kOtherEnd = 0x40;
  if (name_.starts_with(kTap) && !device_argument(arguments_, "remote")) mac_[0] ^= kOtherEnd;
}

EthernetDevice::~EthernetDevice() { remove(); }

void EthernetDevice::remove() noexcept {
  if (!found_) return;
  found_ = false;
  if (!filters_groups_) rte_eth_promiscuous_disable(port_);
  rte_eth_dev_info info{};
  const bool known = rte_eth_dev_info_get(port_, &info) == 0;
  rte_eth_dev_stop(port_);
  rte_eth_dev_close(port_);
  if (known && info.device != nullptr) rte_dev_remove(info.device);
}

void EthernetDevice::find(Setup& setup, EthernetDeviceRequest::Bus bus) {
  const bool is_virtual = bus == EthernetDeviceRequest::Bus::vdev;
  const std::string bus_name = is_virtual ? "vdev" : "pci";
  if (rte_bus_find_by_name(bus_name.c_str()) == nullptr)
    setup.fail("DPDK's bus '" + bus_name + "' is not installed: Debian package librte-bus-" +
               bus_name + "23");
  if (!is_virtual) {
    // Probed when DPDK started (pci_device.h).
    if (rte_eth_dev_get_port_by_name(name_.c_str(), &port_) != 0)
      setup.fail(
          "no driver of DPDK has taken this NIC; is the package of its driver installed "
          "(librte-net-...23, or librte-meta-allpmds), and may you open its device in "
          "/dev/vfio?");
    found_ = true;
    notice_ = std::make_unique<RemovalNotice>(name_);
    return;
  }
  if (rte_eth_dev_get_port_by_name(name_.c_str(), &port_) == 0)
    setup.fail(
        "it is another port's already; give each device a number of its own, like "
        "net_memif0 and net_memif1");
  const std::string text = bus_name + ":" + arguments_;
  const int result = rte_dev_probe(text.c_str());
  if (result == -EFAULT)  // from rte_devargs_parse() when no driver knows the name
    setup.fail(
        "DPDK has no driver for this name here; it is the driver's and a number, like "
        "net_memif0 or net_tap0, and the driver's package has to be installed, like "
        "librte-net-memif23 or librte-net-tap23");
  setup.check(result, "its driver does not take it");
  if (rte_eth_dev_get_port_by_name(name_.c_str(), &port_) != 0)
    setup.fail("its driver has made no Ethernet device of this name");
  found_ = true;
}

// A NIC is asked for its link each time: the interrupts that tell of it do not come from each (the
// driver of the 82574 sets none up for MSI-X).
void EthernetDevice::configure(Setup& setup, EthernetDeviceRequest::Bus bus) {
  rte_eth_dev_info info{};
  setup.check(rte_eth_dev_info_get(port_, &info), "can't be asked for what it is");
  rte_eth_conf configuration{};
  configuration.intr_conf.lsc =
      bus == EthernetDeviceRequest::Bus::vdev && (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
  configuration.intr_conf.rxq = name_.starts_with(kTap);
  setup.check(rte_eth_dev_configure(port_, 1, 1, &configuration), "can't be configured");
  uint16_t receive_descriptors = kDescriptors;
  uint16_t transmit_descriptors = kDescriptors;
  setup.check(rte_eth_dev_adjust_nb_rx_tx_desc(port_, &receive_descriptors, &transmit_descriptors),
              "takes no number of descriptors");
  pool_ = std::make_unique<FramePool>(("rx" + std::to_string(port_)).c_str(), kPoolFrames,
                                      kBufferBytes);
  const int socket = SOCKET_ID_ANY;
  setup.check(rte_eth_rx_queue_setup(port_, kQueue, receive_descriptors,
                                     static_cast<unsigned>(socket), nullptr, pool_->mempool()),
              "can't set up its receive queue");
  setup.check(rte_eth_tx_queue_setup(port_, kQueue, transmit_descriptors,
                                     static_cast<unsigned>(socket), nullptr),
              "can't set up its transmit queue");
  receive_capacity_ = is_memif(arguments_) ? memif_slots(arguments_) : receive_descriptors / 2;
}

// An MTU that the driver does not take is left as it was.
void EthernetDevice::choose_mtu(unsigned wanted_bytes) {
  if (wanted_bytes != 0) {
    rte_eth_dev_set_mtu(port_, static_cast<uint16_t>(wanted_bytes));
    mtu_bytes_ = wanted_bytes;
    return;
  }
  if (is_memif(arguments_)) {
    mtu_bytes_ = std::min<unsigned>(kWantedMtus.front(), memif_mtu_bytes(arguments_));
    return;
  }
  if (std::ranges::any_of(kWithoutMtu,
                          [&](std::string_view driver) { return name_.starts_with(driver); })) {
    mtu_bytes_ = kWantedMtus.front();
    return;
  }
  uint16_t mtu = 0;
  rte_eth_dev_get_mtu(port_, &mtu);
  for (const uint16_t wanted : kWantedMtus) {
    if (mtu >= wanted || rte_eth_dev_set_mtu(port_, wanted) == 0) {
      mtu = std::max(mtu, wanted);
      break;
    }
  }
  mtu_bytes_ = mtu;
}

void EthernetDevice::start(Setup& setup) {
  setup.check(rte_eth_dev_start(port_), "can't be started");
  started_ = true;
  if (name_.starts_with(kTap)) receive_fd_ = rte_eth_dev_rx_intr_ctl_q_get_fd(port_, kQueue);
}

// Programs that begin with the NIC would find a port that is down while the two ends of a cable
// still agree on a speed.
void EthernetDevice::wait_for_link() const noexcept {
  const auto deadline = std::chrono::steady_clock::now() + kLinkPatience;
  while (!link_is_up() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(kLinkPeriod);
}

void EthernetDevice::restart() noexcept {
  if (!memif_server_answers(arguments_)) return;
  if (started_) rte_eth_dev_stop(port_);
  started_ = rte_eth_dev_start(port_) == 0;
}

void EthernetDevice::give_back() noexcept {
  const std::lock_guard lock(commands_);
  started_ = false;
  remove();
}

bool EthernetDevice::link_is_up() const noexcept {
  const std::lock_guard lock(commands_);
  rte_eth_link link{};
  return started_ && rte_eth_link_get_nowait(port_, &link) == 0 &&
         link.link_status == RTE_ETH_LINK_UP;
}

// Sets the filter for groups, else one that lets all groups or all frames in. A device that has
// none of them lets everything in anyhow.
void EthernetDevice::let_in(std::span<const MacAddress> groups) noexcept {
  const std::lock_guard lock(commands_);
  if (!found_ || !filters_groups_) return;
  std::vector<rte_ether_addr> addresses;
  for (const MacAddress& mac : groups) {
    rte_ether_addr& address = addresses.emplace_back();
    std::ranges::copy(mac, address.addr_bytes);
  }
  if (rte_eth_dev_set_mc_addr_list(port_, addresses.data(),
                                   static_cast<uint32_t>(addresses.size())) == 0)
    return;
  filters_groups_ = false;
  if (rte_eth_allmulticast_enable(port_) != 0) rte_eth_promiscuous_enable(port_);
}

unsigned EthernetDevice::receive(std::span<rte_mbuf*> burst) noexcept {
  return rte_eth_rx_burst(port_, kQueue, burst.data(), static_cast<uint16_t>(burst.size()));
}

unsigned EthernetDevice::transmit(std::span<rte_mbuf*> burst) noexcept {
  return rte_eth_tx_burst(port_, kQueue, burst.data(), static_cast<uint16_t>(burst.size()));
}

}  // namespace rocemu::dpdk_io
