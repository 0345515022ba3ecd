#include "emulator/cm/rdma_cm.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "emulator/wire/cma_header.h"

namespace rocemu::cm {
namespace {

// rdma/rdma_user_cm.h
constexpr uint32_t kLevelId = 0;
constexpr uint32_t kTypeOfService = 0;
constexpr uint32_t kReuseAddress = 1;
constexpr uint32_t kOnlyOwnFamily = 2;
constexpr uint32_t kAckTimeout = 3;

bool known_qp_type(uint8_t type) {
  return type == qp_type::kRc || type == qp_type::kUc || type == qp_type::kUd ||
         type == qp_type::kXrcSend || type == qp_type::kXrcReceive;
}

}  // namespace

RdmaCm::RdmaCm(Interfaces interfaces, RandomSource random, const RdmaLimits& limits)
    : interfaces_(std::move(interfaces)),
      limits_(limits),
      random_(std::move(random)),
      connections_(random_, limits.connections),
      ids_(limits.max_ids) {
  for (const uint16_t space :
       {port_space::kIpoib, port_space::kTcp, port_space::kUdp, port_space::kIb})
    ports_.emplace(space, PortSpace(random_));
}

RdmaCm::~RdmaCm() = default;

RdmaId* RdmaCm::find(OwnerId owner, IdHandle id) {
  return const_cast<RdmaId*>(std::as_const(*this).find(owner, id));
}

const RdmaId* RdmaCm::find(OwnerId owner, IdHandle id) const {
  const RdmaId* found = ids_.find(id);
  return found != nullptr && found->seen && owner_of(*found) == owner ? found : nullptr;
}

Result<RdmaId*> RdmaCm::usable(OwnerId owner, IdHandle id) {
  RdmaId* const found = find(owner, id);
  if (found == nullptr) return tl::unexpected(ENOENT);
  if (found->state == IdState::removed) return tl::unexpected(ENXIO);
  return found;
}

Result<const RdmaId*> RdmaCm::usable(OwnerId owner, IdHandle id) const {
  return const_cast<RdmaCm*>(this)->usable(owner, id);
}

RdmaCm::Channel* RdmaCm::find_channel(OwnerId owner, ChannelId channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end() || found->second.owner != owner) return nullptr;
  return &found->second;
}

bool RdmaCm::may_connect(const RdmaId& id) const {
  return !at_share(connections_.held_by(program_of(id)), limits_.connections.max_connections);
}

// ---- channels ----

Result<ChannelId> RdmaCm::open_channel(OwnerId owner, std::unique_ptr<EventNotifier> notifier) {
  if (channels_.size() >= limits_.max_channels) return tl::unexpected(EMFILE);
  Holdings& program = programs_.of(owner);
  if (at_share(program.channels, limits_.max_channels)) return tl::unexpected(ENOMEM);
  ++program.channels;
  do ++last_channel_;
  while (channels_.contains(last_channel_));
  channels_.emplace(last_channel_, Channel{owner, std::move(notifier)});
  return last_channel_;
}

int RdmaCm::close_channel(TimeNs now, OwnerId owner, ChannelId channel) {
  Channel* closing = find_channel(owner, channel);
  if (closing == nullptr) return EBADF;
  // All events at once: to look for those of each id would take the square of their number. The ids
  // of requests that nobody has seen are among the channel's own.
  events_waiting_ -= closing->events.size();
  holdings(*closing).events -= closing->events.size();
  closing->events.clear();
  while (!closing->ids.empty()) remove(now, ids_.at(*closing->ids.begin()));
  --holdings(*closing).channels;
  channels_.erase(channel);
  deliver(now);
  return 0;
}

void RdmaCm::close_owner(TimeNs now, OwnerId owner) {
  std::vector<ChannelId> theirs;
  for (const auto& [channel, entry] : channels_)
    if (entry.owner == owner) theirs.push_back(channel);
  for (const ChannelId channel : theirs) close_channel(now, owner, channel);
  programs_.forget(owner);
}

Result<RdmaEvent> RdmaCm::next_event(OwnerId owner, ChannelId channel) {
  Channel* from = find_channel(owner, channel);
  if (from == nullptr) return tl::unexpected(EBADF);
  if (from->events.empty()) return tl::unexpected(EAGAIN);
  RdmaEvent event = std::move(from->events.front());
  from->events.pop_front();
  --events_waiting_;
  --holdings(*from).events;
  RdmaId& id = ids_.at(event.counted);
  ++id.events_reported;
  if (event.type == EventType::connect_request) {
    --id.requests.waiting;
    ids_.at(event.id).seen = true;
  }
  if (event.group)
    if (const auto group = groups_.find(*event.group); group != groups_.end())
      ++group->second.events_reported;
  return event;
}

bool RdmaCm::queue(RdmaEvent event) {
  Channel& channel = channels_.at(ids_.at(event.counted).channel);
  if (channel.events.size() >= limits_.max_events || events_waiting_ >= limits_.max_events_in_all ||
      at_share(holdings(channel).events, limits_.max_events_in_all)) {
    ++events_lost_;
    return false;
  }
  channel.events.push_back(std::move(event));
  ++events_waiting_;
  ++holdings(channel).events;
  channel.notifier->notify();
  return true;
}

bool RdmaCm::queue_about(const RdmaId& id, EventType type, int status, EventParameters parameters) {
  RdmaEvent event;
  event.type = type;
  event.counted = event.id = id.handle;
  event.uid = id.uid;
  event.status = status;
  event.parameters = std::move(parameters);
  return queue(std::move(event));
}

RdmaCm::Withdrawn RdmaCm::withdraw(Channel& channel,
                                   const std::function<bool(const RdmaEvent&)>& of) {
  std::vector<RdmaEvent> out;
  const auto keep = std::stable_partition(channel.events.begin(), channel.events.end(),
                                          [&](const RdmaEvent& event) { return !of(event); });
  std::move(keep, channel.events.end(), std::back_inserter(out));
  channel.events.erase(keep, channel.events.end());
  events_waiting_ -= out.size();
  holdings(channel).events -= out.size();
  const auto count = static_cast<uint32_t>(out.size());
  const uint32_t taken_back = count == 0 ? 0 : channel.notifier->take_back(count);
  return {std::move(out), count - taken_back};
}

// ---- ids ----

Result<RdmaId*> RdmaCm::new_id(ChannelId channel, uint16_t port_space, uint8_t qp_type) {
  Channel& of = channels_.at(channel);
  Holdings& program = holdings(of);
  if (ids_.full() || at_share(program.ids, limits_.max_ids)) return tl::unexpected(ENOMEM);
  ++program.ids;
  RdmaId& id = ids_.add();
  id.channel = channel;
  of.ids.insert(id.handle);
  id.port_space = port_space;
  id.qp_type = qp_type;
  return &id;
}

Result<IdHandle> RdmaCm::create_id(OwnerId owner, ChannelId channel, uint64_t uid,
                                   uint16_t port_space, uint8_t qp_type) {
  if (find_channel(owner, channel) == nullptr) return tl::unexpected(EBADF);
  if (!ports_.contains(port_space) || !known_qp_type(qp_type)) return tl::unexpected(EINVAL);
  const auto id = new_id(channel, port_space, qp_type);
  if (!id) return tl::unexpected(id.error());
  (*id)->uid = uid;
  return (*id)->handle;
}

void RdmaCm::drop_connection(TimeNs now, RdmaId& id) {
  if (id.connection == 0) return;
  by_connection_.erase(id.connection);
  connections_.abandon(now, id.connection);
  id.connection = 0;
}

void RdmaCm::stop_listening(const RdmaId& id) {
  const uint64_t service = wire::ip_cm_service_id(id.port_space, id.source->port);
  listeners_.remove(program_of(id), service, id.handle, id.requests.clients);
}

// An id goes with its port, its connection, its groups and its events, and a listener with the
// requests that nobody has seen.
EventTally RdmaCm::remove(TimeNs now, RdmaId& id) {
  const IdHandle handle = id.handle;
  Channel& channel = channels_.at(id.channel);
  drop_connection(now, id);
  if (id.port_bound) ports_of(id).release(handle, id.source->port);
  if (id.state == IdState::listening) stop_listening(id);
  for (const GroupHandle group : id.groups) groups_.erase(group);
  holdings(channel).groups -= id.groups.size();
  --holdings(channel).ids;
  // Of an id that nobody has seen there are none: a listener with many such requests would have all
  // of its channel's events looked through for each.
  const auto [events, announced] =
      id.seen ? withdraw(channel, [&](const RdmaEvent& event) { return event.counted == handle; })
              : Withdrawn{};
  const EventTally tally{id.events_reported, announced};
  channel.ids.erase(handle);
  ids_.remove(handle);
  for (const RdmaEvent& event : events)
    if (event.type == EventType::connect_request) remove(now, ids_.at(event.id));
  return tally;
}

Result<EventTally> RdmaCm::destroy_id(TimeNs now, OwnerId owner, IdHandle handle) {
  RdmaId* id = find(owner, handle);
  if (id == nullptr) return tl::unexpected(ENOENT);
  const EventTally tally = remove(now, *id);
  deliver(now);
  return tally;
}

Result<EventTally> RdmaCm::migrate_id(OwnerId owner, IdHandle handle, ChannelId from,
                                      ChannelId to) {
  const auto named = usable(owner, handle);
  if (!named) return tl::unexpected(named.error());
  RdmaId* const id = *named;
  Channel* source = find_channel(owner, from);
  Channel* target = find_channel(owner, to);
  if (id->channel != from) return tl::unexpected(ENOENT);
  if (source == nullptr || target == nullptr) return tl::unexpected(EBADF);
  if (from == to) return EventTally{id->events_reported, 0};
  auto [events, announced] =
      withdraw(*source, [&](const RdmaEvent& event) { return event.counted == handle; });
  const auto move = [&](RdmaId& moved) {
    source->ids.erase(moved.handle);
    target->ids.insert(moved.handle);
    moved.channel = to;
  };
  move(*id);
  // Requests that nobody has seen follow their listener.
  for (RdmaEvent& event : events) {
    if (event.type == EventType::connect_request) move(ids_.at(event.id));
    target->events.push_back(std::move(event));
    ++events_waiting_;
    ++holdings(*target).events;
    target->notifier->notify();
  }
  return EventTally{id->events_reported, announced};
}

Result<const RdmaId*> RdmaCm::query(OwnerId owner, IdHandle handle) const {
  const auto named = usable(owner, handle);
  if (!named) return tl::unexpected(named.error());
  const RdmaId* const id = *named;
  return id;
}

// ---- addresses ----

int RdmaCm::take_port(RdmaId& id, const SocketAddress& address) {
  const auto port = ports_of(id).bind(
      {id.handle, address, id.options.reuse, id.options.only_ipv6, /*listening=*/false});
  if (!port) return port.error();
  id.source = address;
  id.source->port = *port;
  id.port_bound = true;
  return 0;
}

// A link-local address is its device's alone, by the scope.
SocketAddress RdmaCm::with_scope(SocketAddress address, const std::optional<LocalGid>& of) const {
  if (!of || !address.ip.is_link_local_ipv6()) return address;
  if (const uint32_t scope_id = interfaces_.device(of->device).scope_id; scope_id != 0)
    address.scope_id = scope_id;
  return address;
}

int RdmaCm::bind(OwnerId owner, IdHandle handle, const SocketAddress& address) {
  const auto named = usable(owner, handle);
  if (!named) return named.error();
  RdmaId* const id = *named;
  if (id->state != IdState::idle) return EINVAL;
  std::optional<LocalGid> local_gid;
  if (!address.is_any()) {
    local_gid = interfaces_.find(address);
    if (!local_gid) return EADDRNOTAVAIL;
    if (interfaces_.lost(local_gid->device)) return ENODEV;
  }
  if (const int error = take_port(*id, with_scope(address, local_gid))) return error;
  id->local_gid = local_gid;
  id->state = IdState::bound;
  return 0;
}

int RdmaCm::resolve_address(OwnerId owner, IdHandle handle,
                            const std::optional<SocketAddress>& source,
                            const SocketAddress& destination) {
  const auto named = usable(owner, handle);
  if (!named) return named.error();
  RdmaId* const id = *named;
  if (id->state != IdState::idle && id->state != IdState::bound) return EINVAL;
  if (id->state == IdState::idle && source && !source->is_any())
    if (const int error = bind(owner, handle, *source)) return error;
  if (id->source && id->source->ipv6 != destination.ipv6) {
    if (!id->source->is_any()) return EINVAL;
    id->source->ipv6 = destination.ipv6;
  }

  SocketAddress to = destination;
  if (to.is_any()) {
    const auto first = interfaces_.first(to.ipv6);
    if (first) to.ip = interfaces_.gid(*first);
  }
  std::optional<uint32_t> device;
  if (id->local_gid) device = id->local_gid->device;
  // A device of ours without a way to the destination's network is none to it.
  auto from = id->local_gid;
  // A group is on every network.
  auto by_network = to.is_multicast() ? from : interfaces_.source_for(to, device);
  if (!by_network && to.is_multicast()) by_network = interfaces_.first(to.ipv6);
  if (!from) from = by_network;

  int status = 0;
  if (!by_network) {
    status = -ENETUNREACH;
  } else if (interfaces_.lost(from->device)) {
    status = -ENODEV;
  } else if (!to.is_multicast() && !interfaces_.known(to.ip, by_network->device)) {
    status = -EHOSTUNREACH;
  }
  if (status != 0) {
    queue_about(*id, EventType::address_error, status);
    return 0;
  }
  SocketAddress address = id->source.value_or(SocketAddress{});
  address.ipv6 = to.ipv6;
  address.ip = interfaces_.gid(*from);
  if (!id->port_bound) {
    address.port = source ? source->port : 0;
    if (const int error = take_port(*id, with_scope(address, from))) return error;
  } else {
    id->source = with_scope(address, from);
  }
  id->local_gid = from;
  id->destination = to;
  id->state = IdState::address_resolved;
  queue_about(*id, EventType::address_resolved, 0);
  return 0;
}

int RdmaCm::resolve_route(OwnerId owner, IdHandle handle) {
  const auto named = usable(owner, handle);
  if (!named) return named.error();
  RdmaId* const id = *named;
  if (id->state != IdState::address_resolved) return EINVAL;
  id->state = IdState::route_resolved;
  queue_about(*id, EventType::route_resolved, 0);
  return 0;
}

Result<uint32_t> RdmaCm::listen(OwnerId owner, IdHandle handle, uint32_t backlog) {
  const auto named = usable(owner, handle);
  if (!named) return tl::unexpected(named.error());
  RdmaId* const id = *named;
  if (id->state == IdState::idle) {
    SocketAddress any;
    any.ip.bytes[10] = any.ip.bytes[11] = 0xff;
    if (const int error = bind(owner, handle, any)) return tl::unexpected(error);
  }
  if (id->state != IdState::bound) return tl::unexpected(EINVAL);
  if (const int error = ports_of(*id).listen(handle, id->source->port))
    return tl::unexpected(error);
  id->state = IdState::listening;
  id->requests.limit =
      backlog == 0 || backlog > limits_.max_backlog ? limits_.max_backlog : backlog;
  const uint64_t service = wire::ip_cm_service_id(id->port_space, id->source->port);
  return listeners_.add(program_of(*id), service, handle);
}

// The states in which they may be set are those of Linux's rdma_set_reuseaddr() and
// rdma_set_afonly(). Conflicts with other ids are not looked for again before one listens.
int RdmaCm::set_flag(RdmaId& id, uint32_t name, std::span<const std::byte> value) {
  int number = 0;
  if (value.size() != sizeof(number)) return EINVAL;
  std::memcpy(&number, value.data(), sizeof(number));
  const bool on = number != 0;
  const bool idle = id.state == IdState::idle;
  if (name == kReuseAddress) {
    if (!idle && (!on || id.state == IdState::listening)) return EINVAL;
    id.options.reuse = on;
  } else {
    if (!idle && id.state != IdState::bound) return EINVAL;
    id.options.only_ipv6 = on;
  }
  if (id.port_bound)
    ports_of(id).set_flags(id.handle, id.source->port, id.options.reuse, id.options.only_ipv6);
  return 0;
}

int RdmaCm::set_option(OwnerId owner, IdHandle handle, uint32_t level, uint32_t name,
                       std::span<const std::byte> value) {
  const auto named = usable(owner, handle);
  if (!named) return named.error();
  RdmaId* const id = *named;
  if (level != kLevelId) return ENOSYS;
  switch (name) {
    case kTypeOfService:
      if (value.size() != 1) return EINVAL;
      id->options.traffic_class = std::to_integer<uint8_t>(value[0]);
      return 0;
    case kReuseAddress:
    case kOnlyOwnFamily:
      return set_flag(*id, name, value);
    case kAckTimeout:
      if (value.size() != 1) return EINVAL;
      if (std::to_integer<uint8_t>(value[0]) > 31) return EINVAL;
      id->options.ack_timeout = std::to_integer<uint8_t>(value[0]);
      return 0;
    default:
      return ENOSYS;
  }
}

int RdmaCm::notify(TimeNs now, OwnerId owner, IdHandle handle, uint32_t async_event) {
  const auto named = usable(owner, handle);
  if (!named) return named.error();
  RdmaId* const id = *named;
  if (id->connection == 0 || async_event != verbs::async_event::kCommunicationEstablished)
    return EINVAL;
  const Connection* connection = connections_.find(id->connection);
  if (connection != nullptr && connection->state == ConnectionState::established) return EISCONN;
  if (!connections_.establish(id->connection)) return EINVAL;
  deliver(now);
  return 0;
}

int RdmaCm::write_event(OwnerId owner, IdHandle handle, EventType type, int32_t status,
                        uint64_t argument) {
  const RdmaId* const id = find(owner, handle);
  if (id == nullptr) return ENOENT;
  return queue_about(*id, type, status, UserArgument{argument}) ? 0 : ENOMEM;
}

}  // namespace rocemu::cm
