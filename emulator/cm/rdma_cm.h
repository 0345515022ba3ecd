// The ids of librdmacm (rdma_cm(7)): addresses and ports, listeners, connections, multicast groups,
// and event channels. All programs of a NIC share one, as they share ports.
//
// Sans-IO as Connections is, which it stands on. Events are queued for each channel and taken by
// next_event(); the channel's notifier is called once for each. Errors are positive errno values,
// those that the kernel's rdma_ucm answers with.
//
// Everything belongs to an owner, which can name nothing of another's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "emulator/cm/connections.h"
#include "emulator/cm/id_table.h"
#include "emulator/cm/interfaces.h"
#include "emulator/cm/listeners.h"
#include "emulator/cm/port_space.h"
#include "emulator/cm/program_holdings.h"
#include "emulator/cm/rdma_id.h"
#include "emulator/cm/types.h"

namespace rocemu::cm {

// Is told of each event as it is queued.
class EventNotifier {
 public:
  virtual ~EventNotifier() = default;
  virtual void notify() noexcept = 0;
  // So many events are gone untaken. Returns of how many it is as if it had never been told: a
  // program that asks whether there are events is not told of these any more.
  virtual uint32_t take_back(uint32_t /*count*/) noexcept { return 0; }
};

struct RdmaLimits {
  size_t max_ids = 65536;  // librdmacm's own index ends there
  size_t max_channels = 65536;
  size_t max_events = 60000;  // those that wait in one channel; a pipe holds 65536 tokens
  size_t max_events_in_all = 131072;
  size_t max_groups = 4096;
  uint32_t max_backlog = 1024;
  ConnectionLimits connections;
  // One program has at most the whole of a table divided by this, so that others find room.
  size_t shares = 4;
};

// Counts the events of an object that is destroyed, left or migrated.
struct EventTally {
  uint32_t reported = 0;   // events that the program has ever taken
  uint32_t withdrawn = 0;  // events that are still announced to the channel and are gone untaken
};

class RdmaCm {
 public:
  RdmaCm(Interfaces interfaces, RandomSource random, const RdmaLimits& limits = {});
  ~RdmaCm();

  Result<ChannelId> open_channel(OwnerId owner, std::unique_ptr<EventNotifier> notifier);
  // Destroys all ids of the channel as well.
  int close_channel(TimeNs now, OwnerId owner, ChannelId channel);
  // The owner belongs to that program, with which it shares what one program may have. Without this
  // it is a program of its own.
  void set_program(OwnerId owner, ProgramId program) { programs_.set_program(owner, program); }
  // All channels of the owner, which is then forgotten.
  void close_owner(TimeNs now, OwnerId owner);

  Result<IdHandle> create_id(OwnerId owner, ChannelId channel, uint64_t uid, uint16_t port_space,
                             uint8_t qp_type);
  Result<EventTally> destroy_id(TimeNs now, OwnerId owner, IdHandle id);
  Result<EventTally> migrate_id(OwnerId owner, IdHandle id, ChannelId from, ChannelId to);

  int bind(OwnerId owner, IdHandle id, const SocketAddress& address);
  int resolve_address(OwnerId owner, IdHandle id, const std::optional<SocketAddress>& source,
                      const SocketAddress& destination);
  int resolve_route(OwnerId owner, IdHandle id);
  // The number of requests that were refused since this program last listened there (ListenGaps).
  Result<uint32_t> listen(OwnerId owner, IdHandle id, uint32_t backlog);
  int connect(TimeNs now, OwnerId owner, IdHandle id, const ConnectionParameters& parameters);
  // With parameters this answers a connect_request, and `uid` is the id's from now on; without, it
  // confirms a connect_response.
  int accept(TimeNs now, OwnerId owner, IdHandle id, uint64_t uid,
             const ConnectionParameters* parameters);
  int reject(TimeNs now, OwnerId owner, IdHandle id, uint8_t reason, const PrivateData& data);
  int disconnect(TimeNs now, OwnerId owner, IdHandle id);
  int notify(TimeNs now, OwnerId owner, IdHandle id, uint32_t async_event);
  // Queues an event that means something to the program alone, for it to take like any other:
  // `type` is user or internal. ENOMEM: its channel has no room.
  int write_event(OwnerId owner, IdHandle id, EventType type, int32_t status, uint64_t argument);
  int set_option(OwnerId owner, IdHandle id, uint32_t level, uint32_t name,
                 std::span<const std::byte> value);
  Result<QpSetup> qp_setup(OwnerId owner, IdHandle id, uint32_t qp_state) const;
  Result<const RdmaId*> query(OwnerId owner, IdHandle id) const;

  Result<GroupHandle> join(OwnerId owner, IdHandle id, uint64_t uid, const SocketAddress& group);
  Result<EventTally> leave(OwnerId owner, GroupHandle group);

  // EAGAIN when there is none.
  Result<RdmaEvent> next_event(OwnerId owner, ChannelId channel);

  void on_mad(TimeNs now, const Route& route, std::span<const std::byte> mad);
  void on_timeout(TimeNs now);
  TimeNs next_deadline() const { return connections_.next_deadline(); }
  bool next_mad(OutgoingMad& mad) { return connections_.next_mad(mad); }

  const Interfaces& interfaces() const { return interfaces_; }
  // A device has other addresses or another MTU. Connections keep what they have.
  void set_interface(uint32_t device, Interface interface) {
    interfaces_.update(device, std::move(interface));
  }
  // A device is lost: each id that is tied to it hears DEVICE_REMOVAL and is good for nothing any
  // more, but its program still has to destroy it (rdma_get_cm_event(3)). Listeners at any address
  // go on at the others. Nobody can bind to the device until it is back.
  void remove_device(TimeNs now, uint32_t device);
  void return_device(uint32_t device) { interfaces_.set_lost(device, false); }
  const Connections& connections() const { return connections_; }
  const std::map<IdHandle, RdmaId>& ids() const { return ids_.all(); }
  size_t channel_count() const { return channels_.size(); }
  size_t group_count() const { return groups_.size(); }
  uint64_t events_lost() const { return events_lost_; }  // for want of room in their channel
  OwnerId owner_of(const RdmaId& id) const { return channels_.at(id.channel).owner; }
  // The process whose id it is, as set_program() said; 0: nobody said, or it is not known.
  uint32_t process_of(const RdmaId& id) const {
    const ProgramId program = program_of(id);
    return program >> 32 == 0 ? static_cast<uint32_t>(program) : 0;
  }

 private:
  struct Channel {
    OwnerId owner = 0;
    std::unique_ptr<EventNotifier> notifier;
    std::deque<RdmaEvent> events{};
    std::set<IdHandle> ids{};
  };
  struct Group {
    IdHandle id = 0;
    uint64_t uid = 0;
    uint32_t events_reported = 0;
  };

  ProgramId program_of(const RdmaId& id) const { return programs_.program_of(owner_of(id)); }
  Holdings& holdings(const Channel& channel) { return programs_.of(channel.owner); }
  Holdings& holdings(const RdmaId& id) { return holdings(channels_.at(id.channel)); }
  bool at_share(size_t held, size_t limit) const { return held >= limit / limits_.shares; }
  bool may_connect(const RdmaId& id) const;
  RdmaId* find(OwnerId owner, IdHandle id);
  const RdmaId* find(OwnerId owner, IdHandle id) const;
  // ENOENT: there is none. ENXIO: its device is gone, and all that can be done is to destroy it.
  Result<RdmaId*> usable(OwnerId owner, IdHandle id);
  Result<const RdmaId*> usable(OwnerId owner, IdHandle id) const;
  Channel* find_channel(OwnerId owner, ChannelId channel);
  PortSpace& ports_of(const RdmaId& id) { return ports_.at(id.port_space); }
  Result<RdmaId*> new_id(ChannelId channel, uint16_t port_space, uint8_t qp_type);
  EventTally remove(TimeNs now, RdmaId& id);
  void drop_connection(TimeNs now, RdmaId& id);
  void remove_device_of(TimeNs now, RdmaId& id);
  void stop_listening(const RdmaId& id);
  struct Withdrawn {
    std::vector<RdmaEvent> events;
    uint32_t announced = 0;  // of so many the program is told still
  };
  // Removes the events that `of` picks from the channel.
  Withdrawn withdraw(Channel& channel, const std::function<bool(const RdmaEvent&)>& of);
  bool queue(RdmaEvent event);
  bool queue_about(const RdmaId& id, EventType type, int status, EventParameters parameters = {});
  int take_port(RdmaId& id, const SocketAddress& address);
  SocketAddress with_scope(SocketAddress address, const std::optional<LocalGid>& of) const;
  int set_flag(RdmaId& id, uint32_t name, std::span<const std::byte> value);

  int connect_stream(TimeNs now, RdmaId& id, const ConnectionParameters& parameters);
  int connect_datagram(TimeNs now, RdmaId& id, const ConnectionParameters& parameters);
  int accept_stream(TimeNs now, RdmaId& id, const ConnectionParameters& parameters);
  int accept_datagram(TimeNs now, RdmaId& id, const ConnectionParameters& parameters);

  void deliver(TimeNs now);
  void deliver(TimeNs now, const ConnectionEvent& event);
  void on_request(TimeNs now, const ConnectionEvent& event, std::span<const std::byte> data);
  void refuse_request(TimeNs now, const ConnectionEvent& event);
  RdmaId* listener_for(const Connection& connection, const SocketAddress& local, uint8_t qp_type);
  void on_reply(RdmaId& id, const wire::CmRep& rep);
  void on_rejected(RdmaId& id, const wire::CmRej& rej);
  void on_sidr_reply(RdmaId& id, const wire::CmSidrRep& rep);
  AddressVector address_to(const RdmaId& id) const;

  Interfaces interfaces_;
  RdmaLimits limits_;
  RandomSource random_;
  Connections connections_;
  std::map<uint16_t, PortSpace> ports_;
  std::map<ChannelId, Channel> channels_;
  IdTable ids_;
  std::unordered_map<CommId, IdHandle> by_connection_;
  Listeners listeners_;
  std::map<GroupHandle, Group> groups_;
  ChannelId last_channel_ = 0;
  GroupHandle last_group_ = 0;
  size_t events_waiting_ = 0;
  ProgramHoldings programs_;
  uint64_t events_lost_ = 0;
};

}  // namespace rocemu::cm
