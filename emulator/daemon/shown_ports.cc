#include "emulator/daemon/shown_ports.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>

#include "emulator/daemon/attachment/address_text.h"
#include "emulator/daemon/cm_service/cm_service.h"
#include "emulator/daemon/faults/fault_injector.h"

namespace rocemu::daemon {
namespace {

using boost::system::error_code;

constexpr std::chrono::milliseconds kCounterPeriod{kCounterLifespanMs};

}  // namespace

std::string describe_port_state(const device::PortConfig& port) {
  std::string text = std::string(port.active ? "up" : "down") + ", path MTU " +
                     std::to_string(port.mtu_bytes) + ", MAC " + to_text(port.mac) + ", GIDs";
  for (const device::GidEntry& entry : port.gids) text += " " + to_text(entry.gid);
  return text;
}

ShownPorts::ShownPorts(boost::asio::io_context& io, Nic& nic, Attachments& attachments,
                       GidDirectory& gids, const std::filesystem::path& sysfs)
    : io_(io),
      nic_(nic),
      attachments_(attachments),
      gids_(gids),
      sysfs_(sysfs, nic.devices),
      counter_timer_(io) {
  for (const device::HcaConfig& device : nic.devices) ports_.push_back(device.port);
  nic.link_downs.resize(nic.devices.size());
}

void ShownPorts::follow_network() {
  for (const device::HcaConfig& device : nic_.devices) {
    Attachment* const attachment = attachments_.of(device.index);
    if (attachment == nullptr) continue;
    try {
      device::PortConfig& port = ports_[device.index];
      port = attachment->describe(port);
    } catch (const std::exception& error) {
      spdlog::error("{}: {}", device.name, error.what());
    }
    show(device.index);
  }
}

// Shows a port to programs and peers: as it is, but for what the faults at it change.
void ShownPorts::show(uint32_t index) {
  device::HcaConfig& device = nic_.devices[index];
  const device::PortConfig port = nic_.faults->seen(index, ports_[index]);
  if (port == device.port) return;
  Attachment* const attachment = attachments_.of(index);
  if (attachment == nullptr) gids_.replace(device.port, port);
  if (device.port.active && !port.active) ++nic_.link_downs[index];
  device.port = port;
  spdlog::info("{}: {}", device.name, describe_port_state(port));
  try {
    // The files come first, so that a program that gets the event finds the news there.
    sysfs_.write_port(device);
  } catch (const std::exception& error) {
    spdlog::error("{}: {}", device.name, error.what());
  }
  nic_.cm->follow(device);
  nic_.engine.post(Task([this, index, attachment, port] {
    if (attachment != nullptr) attachment->follow(port);
    nic_.engine.hca(index).set_port(port);
  }));
}

// The counters are what changes in sysfs without an event. A NIC where nothing happens writes
// nothing.
void ShownPorts::refresh_counters() {
  counter_timer_.expires_after(kCounterPeriod);
  counter_timer_.async_wait([this](const error_code& error) {
    if (error) return;
    nic_.engine.post(Task([this] {
      boost::asio::post(io_, [this, snapshot = nic_.engine.snapshot()] {
        write_counters(snapshot);
        leave_groups(snapshot);
        refresh_counters();
      });
    }));
  });
}

// The group of a QP is joined before the program hears that the QP is attached. QPs go in many
// ways, so groups are left when they are found to have no QP any more.
void ShownPorts::leave_groups(const EngineSnapshot& snapshot) {
  for (size_t i = 0; i < snapshot.devices.size(); ++i) {
    dpdk_io::MulticastGroups* const joined = nic_.groups_of(static_cast<uint32_t>(i));
    if (joined == nullptr || joined->count() == 0) continue;
    std::vector<IpAddress> groups;
    for (const wire::Gid& group : snapshot.devices[i].groups) groups.push_back(group);
    joined->keep(groups);
  }
}

void ShownPorts::write_counters(const EngineSnapshot& snapshot) {
  for (size_t i = 0; i < snapshot.devices.size(); ++i) {
    const DeviceSnapshot& device = snapshot.devices[i];
    try {
      sysfs_.write_counters(nic_.devices[i], {device.counters, device.port, nic_.link_downs[i]});
    } catch (const std::exception& error) {
      spdlog::error("{}", error.what());
    }
  }
}

}  // namespace rocemu::daemon
