// Hosts at the switches of a network, which all write to one of them without end: the transport
// with a congestion control, over network/switching, in virtual time.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "emulator/congestion/settings.h"
#include "emulator/transport/endpoint.h"
#include "network/mac.h"
#include "network/shared_frame.h"
#include "network/switching/network.h"
#include "network/topology/kinds.h"

namespace rocemu::incast {

// Every key is good, and nothing is moved.
class NoMemory final : public transport::Memory {
 public:
  using Range = transport::MemoryRange;
  bool check_local(transport::PdHandle, wire::LKey, uint64_t, uint32_t, uint32_t,
                   Range&) noexcept override {
    return true;
  }
  bool check_remote(transport::PdHandle, wire::Qpn, wire::RKey, uint64_t, uint32_t, uint32_t,
                    Range&) noexcept override {
    return true;
  }
  bool grants_remote(transport::PdHandle, wire::Qpn, const wire::Reth&,
                     uint32_t) noexcept override {
    return true;
  }
  bool bind_window(transport::PdHandle, wire::Qpn,
                   const transport::WindowBinding&) noexcept override {
    return false;
  }
  bool invalidate(transport::PdHandle, wire::Qpn, wire::RKey) noexcept override { return false; }
  void fetch(const Range&, std::byte*, uint32_t, uint32_t) noexcept override {}
  void scatter(const Range&, const std::byte*, uint32_t, uint32_t) noexcept override {}
  void flush_fetches(std::vector<uint32_t>&) noexcept override {}
  void flush_scatters(std::vector<uint32_t>&) noexcept override {}
  bool compare_swap(const Range&, uint64_t, uint64_t, uint64_t&) noexcept override { return false; }
  bool fetch_add(const Range&, uint64_t, uint64_t&) noexcept override { return false; }
};

// WRITEs of a megabyte, as many as are asked for once it has been opened.
class EndlessWrites final : public transport::SendQueue {
 public:
  bool open = false;

  bool pop(transport::SendWork& work) noexcept override {
    if (!open) return false;
    const transport::Sge all{0, kBytes, {}};
    work = {};
    work.opcode = transport::WorkOpcode::write;
    work.length_bytes = kBytes;
    work.sges.assign({&all, 1});
    return true;
  }
  void release(uint32_t) noexcept override {}

 private:
  static constexpr uint32_t kBytes = 1 << 20;
};

class NoReceives final : public transport::ReceiveQueue {
 public:
  bool pop(transport::ReceiveWork&) noexcept override { return false; }
};

class Failures final : public transport::CompletionQueue {
 public:
  void push(const transport::Completion& completion) noexcept override {
    failed += completion.status != transport::WcStatus::success;
  }
  bool reaches(const transport::MemoryRange&) const noexcept override { return false; }
  unsigned failed = 0;
};

class NoEvents final : public transport::EventSink {
 public:
  void on_qp_event(wire::Qpn, transport::QpEvent) noexcept override {}
  void on_qp_error(wire::Qpn) noexcept override {}
};

inline MacAddress mac_of(uint32_t host) { return {2, 0, 0, 0, 0, static_cast<uint8_t>(host)}; }
inline wire::Gid gid_of(uint32_t host) {
  const std::array<uint8_t, 4> address{10, 0, 0, static_cast<uint8_t>(host + 1)};
  return wire::Gid{IpAddress::of_ipv4(address.data())};
}

struct Options {
  std::string congestion;
  uint32_t senders = 8;
  network::LinkSettings link{.rate_bits_per_s = 25'000'000'000, .delay_ns = 1000};
  network::NetworkSettings network = {};
};

// Hosts 0 to senders - 1 write to the last one, all at one switch.
class Stage {
 public:
  explicit Stage(const Options& options);

  void run_until(TimeNs until);
  TimeNs now() const { return now_; }

  // Bytes of payload that have come from a sender.
  uint64_t received_bytes(uint32_t sender) const {
    return receiver().endpoint->counters(
        receiver().qpns[sender])[transport::TraceEvent::payload_received];
  }
  // That wait at the switch for the receiver.
  uint64_t queue_bytes() const {
    return network_.queue_bytes(network_.port_of_host(options_.senders) ^ 1, 0);
  }
  std::vector<transport::FlowReport> flow_of(uint32_t sender) const {
    return hosts_[sender].endpoint->report_flows(now_, 1);
  }
  uint64_t count(transport::TraceEvent event) const;
  uint64_t lost() const { return lost_; }
  unsigned failed() const { return failures_.failed; }

 private:
  friend class network::Network<network::SharedFrames, Stage>;

  struct Host final : transport::FrameSink {
    Stage* stage = nullptr;
    uint32_t number = 0;
    network::Line line;
    TimeNs free_at = 0;
    std::unique_ptr<transport::Endpoint> endpoint;
    std::vector<wire::Qpn> qpns;  // of the receiver: one for each sender
    EndlessWrites writes;
    std::array<std::byte, transport::kMaxFrameBytes> buffer;

    bool allocate(transport::FrameBuffer& to) noexcept override {
      to.data = buffer.data();
      return true;
    }
    void send(const transport::FrameBuffer&, uint32_t length_bytes) noexcept override {
      free_at = line.occupy(stage->now_, length_bytes);
      stage->network_.send(number, stage->now_,
                           network::SharedFrame(std::span(buffer).first(length_bytes)));
    }
    void discard(const transport::FrameBuffer&) noexcept override {}
    TimeNs next_event(TimeNs now) const {
      if (endpoint->wants_transmit()) return std::max(free_at, now + 1);
      return endpoint->next_deadline();
    }
  };

  // The network calls these.
  void deliver(uint32_t host, TimeNs at, const network::SharedFrame& frame);
  void lose(uint32_t, network::NetworkLoss, const network::SharedFrame&) { ++lost_; }

  Host& receiver() { return hosts_.back(); }
  const Host& receiver() const { return hosts_.back(); }
  void add_hosts();
  void connect(uint32_t sender);
  wire::Qpn make_qp(Host& host, Host& peer);
  void set_up(Host& host, wire::Qpn qpn, Host& peer, wire::Qpn peer_qpn);
  void pump(Host& host);

  Options options_;
  NoMemory memory_;
  NoReceives receives_;
  Failures failures_;
  NoEvents events_;
  network::Network<network::SharedFrames, Stage> network_;
  std::deque<Host> hosts_;
  TimeNs now_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace rocemu::incast
