// The interfaces by which sessions reach the NIC they serve. They are narrow, so that a session
// runs the same way in rocemud, in a test and in a fuzzer. Unless a comment says otherwise, the
// control thread makes the calls, and whatever implements them outlives all sessions.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/daemon/control/program_share.h"
#include "emulator/daemon/engine/engine_clock.h"
#include "emulator/daemon/engine/engine_context.h"
#include "emulator/daemon/engine/task.h"
#include "emulator/daemon/engine/wake_set.h"
#include "emulator/daemon/rings/completion_host.h"
#include "emulator/daemon/rings/event_writer.h"
#include "emulator/device/hca.h"
#include "emulator/dma/address_space.h"
#include "emulator/inspection/inspection.h"
#include "verbs_shim/abi/cm.h"
#include "verbs_shim/abi/resources.h"

namespace rocemu::daemon {

// The engine, which owns the devices, and the way back from it.
class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;

  // Runs `work` on the engine thread, perhaps before it returns.
  virtual void post(Task work) = 0;
  // The engine thread: runs `done` on the control thread; at once when that has the engine's turn.
  virtual void come_back(Task done) = 0;

  // The engine thread.
  virtual device::Hca& hca(uint32_t device) = 0;
  virtual EngineContext& add_context(std::unique_ptr<EngineContext> context) = 0;
  virtual void close_context(EngineContext& context) = 0;

  // Queue memory is made with these.
  virtual WakeSet& wake_set() = 0;
  virtual int engine_page_fd() const = 0;
  virtual const EngineClock& clock() const = 0;
  virtual CompletionHost& completion_host() = 0;
};

// The network that a device is on, where its addresses have to be asked for.
class DeviceNetwork {
 public:
  // 0 and the MAC that frames for the address go to, or an errno.
  using Found = std::function<void(int error, const MacAddress& mac)>;

  virtual ~DeviceNetwork() = default;
  // Calls `found` once, at once or later.
  virtual void find_path(const wire::Gid& destination, Found found) = 0;
  // The engine thread: the device may send there from now on.
  virtual void learn(const wire::Gid& destination, const MacAddress& mac) = 0;
  // The network is to send the group here, too. 0 or an errno.
  virtual int join(const wire::Gid& group) = 0;
};

// QueueDecorator may put something between the device and the queues that it shares with programs.
// The control thread wraps them, the engine thread uses them.
class QueueDecorator {
 public:
  virtual ~QueueDecorator() = default;
  // A CQ's ring, of which the program may use `entries`. Those that take over from each other are
  // wrapped alike.
  virtual std::unique_ptr<device::CompletionRing> wrap_ring(
      uint32_t device, std::unique_ptr<device::CompletionRing> ring, uint32_t entries) = 0;
  virtual std::unique_ptr<device::WorkQueues> wrap_queues(
      uint32_t device, std::unique_ptr<device::WorkQueues> queues, const device::QpSpec& spec) = 0;
  // A context's async events.
  virtual std::unique_ptr<device::EventChannel> wrap_events(
      uint32_t device, std::unique_ptr<device::EventChannel> events) = 0;
};

// The NIC as a whole, which control connections look at and change.
class NicAdministration {
 public:
  // Makes a text of what was taken down on the engine thread.
  using Report = std::function<std::string()>;
  // Makes a change, on the engine thread.
  using Change = std::function<void()>;

  virtual ~NicAdministration() = default;
  // The engine thread: what STATUS, METRICS and LINK_SHOW answer.
  virtual Report take_status() = 0;
  virtual Report take_metrics() = 0;
  virtual Report take_links() = 0;
  // Without links, LINK_SET and LINK_SHOW are EOPNOTSUPP.
  virtual bool has_links() const = 0;
  // Returns the change that LINK_SET asks for, or its errno.
  virtual device::Result<Change> set_links(pid_t asked_by, const char* assignment) = 0;
  virtual void shut_down() = 0;

  // These answer FAULT_ADD, FAULT_CLEAR and FAULT_LIST, on the control thread.
  struct AddedFaults {
    uint32_t first_id = 0;
    uint32_t count = 0;
  };
  virtual device::Result<AddedFaults> add_faults(pid_t /*asked_by*/, const char* /*text*/) {
    return tl::unexpected(EOPNOTSUPP);
  }
  virtual int clear_fault(uint32_t /*id; 0: all*/) { return EOPNOTSUPP; }
  virtual device::Result<std::string> faults() { return tl::unexpected(EOPNOTSUPP); }

  // These are of LIST_RESOURCES and DESCRIBE_DEVICE, on the control thread: ids of librdmacm that
  // are on the device or on all. The reply is empty before.
  virtual void list_cm_ids(uint32_t /*device*/, uint32_t /*from*/, rocemu_resources& /*reply*/) {}
  virtual uint32_t count_cm_ids(uint32_t /*device*/) { return 0; }
  // This one is of NAMED_COUNTERS.
  using NamedCounters = std::vector<std::pair<std::string_view, uint64_t>>;
  virtual NamedCounters name_counters(const transport::Counters&) { return {}; }

  // These answer TRACE_START and TRACE_STOP, on the control thread: 0 or an errno.
  struct TraceEnd {
    uint64_t written_bytes = 0;
    uint64_t lost_records = 0;
    int write_error = 0;
  };
  virtual int start_trace(pid_t /*asked_by*/, UniqueFd /*file*/, const char* /*filter*/,
                          uint64_t /*max_bytes*/) {
    return EOPNOTSUPP;
  }
  // Calls `ended` later, unless this was an error.
  virtual int stop_trace(std::function<void(const TraceEnd&)> /*ended*/) { return EOPNOTSUPP; }
};

// Stands before what programs ask of their devices: may refuse it, or let it wait.
class OperationGate {
 public:
  struct Asked {
    uint32_t operation = 0;
    uint32_t device = 0;
    pid_t program = 0;
    std::optional<device::ContextId> context{};  // empty: it is asked to open one
  };
  struct Verdict {
    int error = 0;  // an errno: the request is refused with it
    TimeNs delay_ns = 0;
  };
  struct PostVerdict {
    int error = 0;
    bool ask_again = false;  // before the next post as well
  };

  virtual ~OperationGate() = default;
  // True: all passes, and none of the calls below has to be made.
  virtual bool open() const = 0;
  virtual Verdict on_operation(const Asked& asked) = 0;
  // Runs go_on() after that time.
  virtual void wait(TimeNs delay_ns, std::function<void()> go_on) = 0;
  // It has been handed to its handler.
  virtual void passed(const Asked& asked) = 0;
  // A program is about to post to a QP.
  virtual PostVerdict on_post(const Asked& asked, wire::Qpn qpn, bool receive) = 0;
};

// The connection manager's work for one program. Destroying it gives up all its channels and ids.
class CmProgram {
 public:
  virtual ~CmProgram() = default;
  virtual device::Result<uint32_t> open_channel(std::unique_ptr<EventWriter> pipe) = 0;
  virtual int close_channel(uint32_t channel) = 0;
  // Fills in all of the reply but its header. 0 or an errno.
  virtual int command(const rocemu_cm_command& command, rocemu_cm_reply& reply) = 0;
  virtual int next_event(uint32_t channel, rocemu_cm_event& event) = 0;
  // Does what a call left to be done, once its answer is on its way.
  virtual void flush() = 0;
};

struct SessionHost {
  const std::vector<device::HcaConfig>& devices;  // by device_index; ports may change
  DeviceEngine& engine;
  NicAdministration& administration;
  std::vector<DeviceNetwork*> networks{};  // by device; nullptr: addresses are known by themselves
  std::function<std::unique_ptr<CmProgram>(pid_t program)>
      new_cm_program{};                          // empty: connections are not managed
  std::optional<dma::Method> dma{};              // empty: whichever works
  ProgramShares* shares = nullptr;               // nullptr: programs have what there is
  inspection::Inspection* inspection = nullptr;  // the engine thread's; nullptr: nobody inspects
  QueueDecorator* decorator = nullptr;           // nullptr: nothing stands there
  OperationGate* gate = nullptr;                 // nullptr: all passes
  // Called before the objects of a context go; may be empty.
  std::function<void(uint32_t device, pid_t program)> on_context_end{};
};

// The program at the other end of a session.
class SessionPeer {
 public:
  virtual ~SessionPeer() = default;
  // The program's process as the kernel says; 0 when it is not visible from here.
  virtual pid_t pid() const = 0;
  // nullptr when no way to the program's memory works.
  virtual std::unique_ptr<dma::AddressSpace> reach_memory(UniqueFd mem, uint64_t probe_address,
                                                          uint64_t probe_value) = 0;
  // The descriptor of a page by which requests may come, too. Throws std::system_error.
  virtual UniqueFd add_mailbox() = 0;
  // Never ends the connection before it returns.
  virtual void reply(std::span<const std::byte> bytes, std::span<const int> fds) = 0;
  // Ends the connection, and with it the session, over a message that is malformed.
  virtual void close(const char* why) = 0;
  // Keeps peer and session in existence for as long as it is held.
  virtual std::shared_ptr<void> hold() = 0;
  // Nothing of the session is left, and no call is under way.
  virtual void finished() = 0;
};

}  // namespace rocemu::daemon
