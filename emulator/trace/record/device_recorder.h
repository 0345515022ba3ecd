// Records what happens to one device: it hears of it as the observer of the device's transport, and
// of polls from whoever sees those. A record costs no more than being written into the ring.
//
// Belongs to the thread that has the device's turn. Time is asked for once for each packet, request
// and burst, not for each record.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "emulator/trace/format/record.h"
#include "emulator/trace/record/arrived_data.h"
#include "emulator/trace/record/filter.h"
#include "emulator/trace/record/request_numbers.h"
#include "emulator/trace/record/resends.h"
#include "emulator/trace/record/ring.h"
#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/interface/observer.h"
#include "emulator/transport/interface/work.h"
#include "emulator/wire/packet.h"

namespace rocemu::trace {

// The number in Table::impairment of losses by a fault; below it are those of ports and links.
inline constexpr uint16_t kLostByFault = 0xff;

// Owner says whose a QP is.
struct Owner {
  uint16_t program = kNoProgram;  // as Table::program has it
  std::string name{};
  uint32_t pid = 0;
};

// The numbers of what a QP's requests go to and come from; 0: none, or unknown.
struct QpQueues {
  uint32_t send_cq = 0;
  uint32_t receive_cq = 0;
  uint32_t srq = 0;
};

// RecorderHost answers what a recorder asks, and hears what it tells.
class RecorderHost {
 public:
  virtual ~RecorderHost() = default;
  virtual TimeNs now() noexcept = 0;
  // Both are asked once for each QP, when its creation is over.
  virtual Owner owner_of(uint16_t device, wire::Qpn qpn) noexcept = 0;
  virtual QpQueues queues_of(uint16_t /*device*/, wire::Qpn) noexcept { return {}; }
  // kNoDevice: none of this NIC's has the address.
  virtual uint16_t device_of(const wire::Gid& gid) noexcept = 0;
  // Returns why a key was refused; none: it is not known.
  virtual Cause explain_key(uint16_t /*device*/, wire::Qpn, uint32_t /*key*/, uint64_t /*address*/,
                            uint32_t /*length_bytes*/) noexcept {
    return Cause::none;
  }
  // The ring is half full.
  virtual void on_half_full() noexcept = 0;
  // A QP has failed: not by its program's wish.
  virtual void on_failure(uint16_t device, wire::Qpn qpn) noexcept = 0;
};

// A QP that is older than the trace.
struct KnownQp {
  wire::Qpn qpn{};
  transport::Service service = transport::Service::rc;
  transport::QpState state{};
  uint32_t requests_in_flight = 0;
  wire::Qpn peer_qpn{};
  wire::Gid peer_gid{};  // zero: it is not connected
  uint32_t path_mtu_bytes = 0;
  QpTimers timers{};
  uint8_t min_rnr_timer = 0;  // code
};

class DeviceRecorder final : public transport::Observer {
 public:
  // All but the filter outlive it. `next` is told of everything as well; it may be nullptr.
  DeviceRecorder(uint16_t device, Ring& ring, Filter filter, RecorderHost& host,
                 transport::Observer* next);

  transport::Observer* next() const { return next_; }
  void add_known(const KnownQp& qp);
  // Returns what is known of the QPs that are traced and older than `kept`, which are the last
  // records of this device, as records of the past.
  std::vector<Record> describe_qps(std::span<const Record> kept) const;

  // A program has taken a completion. `is_exact`: at that time, and not at some time before.
  void on_polled(const transport::Completion& completion, uint32_t request, TimeNs time_ns,
                 bool is_exact);
  // The number of the request that the last completion was of; 0: unknown.
  uint32_t last_request() const { return last_request_; }
  // The network has lost a frame on its way from this device or, where `arrives`, to it.
  // `impairment` is a number of Table::impairment.
  void on_lost(const wire::Packet& packet, uint16_t impairment, Cause cause, bool arrives);
  // The last context of a program on this device goes. Its QPs are still there where it has died,
  // or has ended without tidying up.
  void on_context_end(uint32_t pid);
  // A message of the connection manager; not when the filters are for others.
  void on_cm(const Record& record);
  // Records what is held back to be one record with what may follow.
  void flush();
  // A record that somebody else has made, of this device; `qpn` 0: of no QP.
  void record(Record record);

  // transport::Observer
  void on_event(wire::Qpn qpn, transport::TraceEvent event, uint32_t value) noexcept override;
  void on_refusal(wire::Qpn qpn, transport::Refusal refusal, uint32_t psn) noexcept override;
  void on_packet(wire::Qpn qpn, const wire::Packet& packet) noexcept override;
  void on_frame_sent(wire::Qpn qpn, const transport::SentFrame& frame) noexcept override;
  void on_send_taken(wire::Qpn qpn, const transport::SendWork& work) noexcept override;
  void on_receive_taken(wire::Qpn qpn, const transport::ReceiveWork& work) noexcept override;
  void on_completion(const transport::Completion& completion, bool announced) noexcept override;
  void on_placed(wire::Qpn qpn, wire::Psn psn) noexcept override;
  bool wants_waits() const noexcept override { return true; }
  void on_turn_over(wire::Qpn qpn, transport::WaitReason reason) noexcept override;
  void on_fault_loss(std::span<const std::byte> frame, bool arrives) noexcept override;
  void on_created(wire::Qpn qpn, transport::Service service) noexcept override;
  void on_destroyed(wire::Qpn qpn) noexcept override;
  void on_state(wire::Qpn qpn, verbs::QpState state,
                const transport::QpAttributes& attributes) noexcept override;

 private:
  // The other end of a connection, and what both ends agreed on.
  struct Peer {
    uint16_t device = kNoDevice;
    uint32_t qpn = 0;
    wire::Gid gid;  // zero: it is not connected
    uint32_t path_mtu_bytes = 0;
    QpTimers timers;
    uint8_t rnr_timer = 0;  // code sent in RNR NAKs
  };
  struct Qp {
    bool is_resolved = false;  // whose it is has been asked
    bool is_traced = false;
    bool existed = false;  // before the trace
    uint8_t type = 0;
    verbs::QpState state{};
    verbs::QpState state_before{};  // its last change
    uint16_t program = kNoProgram;
    uint32_t pid = 0;
    QpQueues queues;
    Peer peer;
    TimeNs created_ns = 0;
    RequestNumbers sends;
    uint32_t receives_taken = 0;
    uint32_t receives_over = 0;
    Cause waits = Cause::none;  // what it waited for when that was recorded last
    bool sent_since = false;    // … and since then it has sent something
    Resends resends;
    uint32_t timeouts = 0;  // in a row
    uint8_t last_syndrome = 0;
    AskedMemory asked;  // by the last packet that has come
    ArrivedData arrived;
  };

  Qp* find(wire::Qpn qpn);
  void resolve(wire::Qpn qpn, Qp& qp);
  void set_attributes(Qp& qp, const transport::QpAttributes& attributes);
  void note_program(Kind kind, uint16_t program, Cause cause);
  Qp* find_sender(const wire::Packet& packet, uint32_t& qpn);
  bool sends_to(const Qp& qp, const wire::Packet& packet);
  Record creation(uint32_t qpn, const Qp& qp) const;
  Record state_of(uint32_t qpn, const Qp& qp) const;
  Record* begin(Kind kind, wire::Qpn qpn);
  void end() {
    if (ring_.commit()) host_.on_half_full();
  }
  template <typename Fill>
  void note_taken(wire::Qpn qpn, const Qp& qp, uint32_t post_stamp, const Fill& fill);
  void simple(Kind kind, wire::Qpn qpn, uint32_t psn, Cause cause = Cause::none, uint8_t code = 0);
  void fill(Record& record, const wire::Packet& packet) const;
  void on_timeout(wire::Qpn qpn, Qp& qp, uint32_t psn);
  void on_cnp(wire::Qpn qpn, uint32_t rate_kbps);
  void go_back(wire::Qpn qpn, Qp& qp, uint32_t psn, Cause cause);
  void hold_acknowledged(const transport::Completion& completion);
  void on_qp_event(wire::Qpn qpn, Qp& qp, transport::TraceEvent event, uint32_t value);
  void on_port_event(transport::TraceEvent event);

  const uint16_t device_;
  Ring& ring_;
  const Filter filter_;
  RecorderHost& host_;
  transport::Observer* const next_;
  TimeNs now_ = 0;
  uint32_t last_request_ = 0;
  Record acknowledged_;  // of Kind::none: nothing is held back
  std::unordered_map<uint32_t, Qp> qps_;
  std::set<uint16_t> programs_;  // that have been told of
  uint32_t last_qpn_ = 0;        // whose entry is last_qp_
  Qp* last_qp_ = nullptr;
};

}  // namespace rocemu::trace
