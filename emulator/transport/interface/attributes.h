// A QP's attributes as the transport uses them. Ranges have been checked by the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/verbs/numbers.h"
#include "emulator/congestion/settings.h"
#include "emulator/transport/interface/host_interface.h"
#include "emulator/transport/interface/tag_matching.h"
#include "emulator/wire/build.h"
#include "emulator/wire/selective.h"
#include "emulator/wire/types.h"

namespace rocemu::transport {

using verbs::MigrationState;
using verbs::QpState;

// The service of a QP: how it sends and receives (IBTA vol 1, 9.2.1 and annex A14; raw packets are
// Ethernet frames).
enum class Service : uint8_t { rc, uc, ud, xrc_send, xrc_receive, raw_packet };

// Given when the QP is made; the objects outlive it.
struct QpResources {
  PdHandle pd = 0;
  SendQueue* send_queue = nullptr;
  ReceiveQueue* receive_queue = nullptr;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  bool receives_are_shared = false;               // the receive queue is an SRQ
  bool send_only = false;                         // XRC_SEND: no requests come in
  XrcDomain* xrc_domain = nullptr;                // XRC_RECV: where its requests find their SRQs
  const Addresses* addresses = nullptr;           // UD
  TagMatching* tags = nullptr;                    // RC on a tag-matching SRQ
  std::optional<PdHandle> srq_pd = std::nullopt;  // the PD for an SRQ's receives; empty: `pd`

  PdHandle receive_pd() const { return srq_pd.value_or(pd); }
};

// The way to the peer: headers before the BTH, and the addresses a packet of the peer must bear.
struct Path {
  wire::HeaderTemplate headers;
  wire::Gid local_gid{};
  wire::Gid remote_gid{};
};

// The way that a connection goes over to when it migrates (qp/path_migration.h).
struct AlternatePath {
  Path path;
  uint8_t timeout = 0;  // the ACK timeout there
};

// MigrationRequest says what a change of attributes asks of path migration.
enum class MigrationRequest : uint8_t { none, rearm, migrate };

struct QpAttributes {
  Path path;
  uint32_t path_mtu_bytes = 1024;
  wire::Qpn remote_qpn{};
  uint16_t pkey = wire::kDefaultPkey;
  wire::Psn receive_psn{};         // the first PSN expected
  wire::Psn send_psn{};            // the first PSN sent
  uint32_t qkey = 0;               // UD
  uint32_t access = 0;             // remote access the QP allows: Access bits
  uint8_t max_rd_atomic = 0;       // READs and atomics in flight as requester
  uint8_t max_dest_rd_atomic = 0;  // and as responder
  uint8_t min_rnr_timer = 0;       // code sent in RNR NAKs
  uint8_t timeout = 0;             // ACK timeout 4.096 us * 2^timeout; 0: none
  uint8_t retry_count = 0;
  uint8_t rnr_retry = 0;        // 7: for ever
  bool notify_drained = false;  // an event when the send queue has drained in state SQD
  std::shared_ptr<const AlternatePath> alternate = nullptr;  // null: none is loaded
  MigrationRequest migration = MigrationRequest::none;
};

// Recovery says how a reliable connection makes good for losses (docs/loss-recovery.md). Selective
// repeat needs a peer that has it as well; with others the connection uses go-back-N.
enum class Recovery : uint8_t { go_back_n, selective_repeat };

// TransportLimits bounds what a QP may have under way, and says by which rules. It is configurable,
// and status shows it.
struct TransportLimits {
  uint32_t window_packets = 256;       // unacknowledged PSNs before SEND, WRITE or READ wait
  uint32_t ack_interval_packets = 64;  // an ACK is asked for at least this often
  uint32_t quantum_frames = 16;        // frames of one QP before the next QP's turn
  congestion::Settings congestion = {};
  uint64_t line_rate_bps = 100'000'000'000;  // the port's, for congestion control
  // The port has room behind a datagram for the records of the path's telemetry that the algorithm
  // offers; where it has none, none is offered.
  bool port_carries_telemetry = true;
  Recovery recovery = Recovery::go_back_n;
  bool multipath = false;    // selective repeat: each packet has a UDP source port of its own
  uint32_t rto_low_us = 0;   // selective repeat's timeout with few packets out; 0: as measured
  uint32_t rto_high_us = 0;  // the same with more packets out

  // The reserved BTH bits by which every packet tells the peer of this (wire/selective.h).
  uint8_t offer() const {
    if (recovery == Recovery::go_back_n) return 0;
    return wire::selective::kUnderstood | (multipath ? wire::selective::kAnyOrder : 0);
  }
};

// QpLoad says how much a QP has under way.
struct QpLoad {
  uint32_t requests = 0;                    // taken off the send queue, not completed
  uint32_t unacknowledged_psns = 0;         // sent, not acknowledged
  uint32_t rd_atomics = 0;                  // READs and atomics that wait for their answer
  uint32_t queued_responses = 0;            // answers that have not left
  uint32_t kept_atomic_results = 0;         // for the case that an atomic is asked for again
  Recovery recovery = Recovery::go_back_n;  // as requester, with this peer
};

}  // namespace rocemu::transport
