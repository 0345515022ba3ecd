// The interfaces by which the device model gets what it needs from outside: the other sides of its
// queues and channels (shared memory and pipes in the daemon, vectors in tests), device memory, and
// the neighbours' addresses. None of the calls may block, and none may call back into the device.
//
// Queues, rings, channels and device memory are made by whoever creates an object, and owned by the
// object afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"
#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/interface/host_interface.h"
#include "emulator/wire/types.h"

namespace rocemu::device {

// Both work queues of one QP.
class WorkQueues {
 public:
  virtual ~WorkQueues() = default;
  virtual transport::SendQueue& send() noexcept = 0;
  virtual transport::ReceiveQueue& receive() noexcept = 0;
  // Tells the program's side the state, so that a post to a QP in ERROR rings.
  virtual void show_state(transport::QpState state) noexcept = 0;
  // Empties both queues: the QP went to RESET.
  virtual void reset() noexcept = 0;
  // Tells whose queues these are, once and before anything else.
  virtual void belong_to(wire::Qpn) noexcept {}
  // Asks the program to say in each request when it posted it, or not any more.
  virtual void stamp_posts(bool /*wanted*/) noexcept {}
};

// The ring of one SRQ.
class ReceiveRing : public transport::ReceiveQueue {
 public:
  uint32_t waiting() const noexcept override = 0;
  // Takes over what waits in `old`, another ring of the same maker. False when there is not room
  // for it, and then nothing has changed.
  virtual bool take_over(ReceiveRing& old) noexcept = 0;
  // Does a part of that in advance, no more than a turn has time for, while QPs go on to take from
  // `old`. False when another part is to be done so.
  virtual bool prepare_to_take_over(ReceiveRing&) noexcept { return true; }
};

// Events are held back until `count` completions are there or `period_ns` has passed since the
// first of them (ibv_modify_cq(3)). As on ConnectX, either of them being 0 turns it off.
struct CqModeration {
  uint32_t count = 0;
  TimeNs period_ns = 0;
  bool on() const { return count > 1 && period_ns > 0; }
};

// The CQ that a ring belongs to, for a ring that does something of its own accord.
class RingOwner {
 public:
  // show() is to be called soon, although nothing was pushed.
  virtual void show_soon() noexcept = 0;
  // A completion was lost after push() had taken it.
  virtual void lose_completion() noexcept = 0;

 protected:
  ~RingOwner() = default;
};

// PollWatch hears of the completions that a program takes off a ring, in their order.
class PollWatch {
 public:
  // A number that comes back for the completion that is being pushed.
  virtual uint32_t number_pushed() noexcept = 0;
  // `at_ns` is when the program says that it took it, never after now; 0: it does not say.
  virtual void on_polled(const transport::Completion& completion, uint32_t number,
                         TimeNs at_ns) noexcept = 0;

 protected:
  ~PollWatch() = default;
};

// The ring of one CQ.
class CompletionRing {
 public:
  virtual ~CompletionRing() = default;
  // The owner outlives the ring.
  virtual void set_owner(RingOwner&) noexcept {}
  // Returns how many completions it holds; 0: the maker does not say.
  virtual uint32_t entries() const noexcept { return 0; }
  // False when the ring is full: the completion is lost and the CQ is in error.
  virtual bool push(const transport::Completion& completion) noexcept = 0;
  // Makes what was pushed visible to the program. True when the program waits for an event about
  // it.
  virtual bool show() noexcept = 0;
  // The event is sent: the program has to ask again. False when it does not wait for one.
  virtual bool take_arm() noexcept = 0;
  // For those who look at the NIC: how many completions the program has been shown and has not
  // taken.
  virtual uint32_t unread() const noexcept { return 0; }

  // From now on `watch`, which outlives this, hears what is taken of what is pushed from now on;
  // nullptr: nobody does. tell_polled() tells it what it has not heard yet.
  virtual void watch_polls(PollWatch*) noexcept {}
  virtual void tell_polled() noexcept {}
  // Does both at once: true when an event is to be sent now.
  bool publish() noexcept { return show() && take_arm(); }
  // Takes over what stands in `old`, another ring of the same maker, unread, and its arming. False
  // when there is not room for it, and then nothing has changed. Precondition: `old` is all shown.
  virtual bool take_over(CompletionRing& old) noexcept = 0;
  // Does a part of that in advance, no more than a turn has time for, while `old` goes on. False
  // when another part is to be done so. Same precondition.
  virtual bool prepare_to_take_over(CompletionRing&) noexcept { return true; }
};

// Takes events for the program: a completion channel or the async event pipe of a context.
// The write never blocks; false when there was no room (the caller tries again later).
class EventChannel {
 public:
  virtual ~EventChannel() = default;
  virtual bool completion_event(uint64_t cq_user_pointer) noexcept = 0;
  virtual bool async_event(uint64_t element, uint32_t event_type) noexcept = 0;
};

// Device memory: the bytes themselves, which the program sees as well.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual std::span<std::byte> bytes() noexcept = 0;
  // The descriptor that a program maps; valid as long as this is there.
  virtual int descriptor() const noexcept = 0;
};

// Tells who has an address: the answer decides the frames' destination.
class AddressResolver {
 public:
  virtual ~AddressResolver() = default;
  // False when nobody has `gid`.
  virtual bool resolve(const wire::Gid& gid, MacAddress& mac) noexcept = 0;
};

}  // namespace rocemu::device
