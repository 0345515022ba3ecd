// The rows of the conformance program are about Ends: two QPs of any service, each with its queues
// and memory, and what connects them.
#pragma once

#include <cstring>

#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {

using SrqPtr = std::unique_ptr<ibv_srq, Destroyer<&ibv_destroy_srq>>;
// Some of these calls are functions of the header's own in every file, and so no parameters of a
// type.
struct XrcdCloser {
  void operator()(ibv_xrcd* xrcd) const noexcept {
    if (const int rc = ibv_close_xrcd(xrcd); rc != 0) report_destroy_failure(rc);
  }
};
using XrcdPtr = std::unique_ptr<ibv_xrcd, XrcdCloser>;
inline int destroy_counters(ibv_counters* counters) { return ibv_destroy_counters(counters); }
using CountersPtr = std::unique_ptr<ibv_counters, Destroyer<&destroy_counters>>;

// An address that is IPv4, mapped into IPv6 (RFC 4291, 2.5.5.2).
inline bool is_ipv4(const ibv_gid& gid) {
  constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0;
}

inline constexpr unsigned kEveryRight = kAllRights | IBV_ACCESS_REMOTE_ATOMIC;
inline constexpr uint32_t kQkey = 0x11223344;
inline constexpr uint32_t kGrhBytes = 40;

inline RcOptions every_right() {
  RcOptions options;
  options.access = kEveryRight;
  options.max_rd_atomic = options.max_dest_rd_atomic = 4;
  return options;
}

struct EndOptions {
  ibv_qp_type type = IBV_QPT_RC;
  RcOptions rc = every_right();
  uint32_t qkey = kQkey;
  ibv_srq* srq = nullptr;
  ibv_xrcd* xrcd = nullptr;
  ibv_pd* pd = nullptr;  // null: the device's
  // The row's own CQs, which outlive the end; null: the end has its own.
  ibv_cq *send_cq = nullptr, *recv_cq = nullptr;
  bool with_channel = false;
  uint32_t max_send_wr = 16;
  uint32_t max_inline_bytes = 0;
  uint64_t send_ops = 0;  // ibv_qp_create_send_ops_flags; 0: no ibv_qp_ex
  uint16_t max_tso_header = 0;
};

struct End {
  const Device* device;
  EndOptions options;
  Memory memory;
  MrPtr mr;
  ChannelPtr channel;      // of both CQs
  CqPtr send_cq, recv_cq;  // null where the row has its own
  QpPtr qp;

  ibv_sge sge(size_t offset, uint32_t bytes) const {
    return {memory.address() + offset, bytes, mr->lkey};
  }
  uint64_t word(size_t offset) const;
  void set_word(size_t offset, uint64_t value) const;
  void fill(std::byte value) const;
};

// In RESET. Throws Skipped when the device has no such QP.
End make_end(const Device& device, const EndOptions& options);

// With every attribute that the QP's service asks for, and no other.
QpChange change_to_init(const End& end);
QpChange change_to_rtr(const End& end, const End& peer);
QpChange change_to_rts(const End& end);

void to_init(End& end);
void to_rtr(End& end, const End& peer);
void to_rts(End& end);
void connect(End& a, End& b);  // both to RTS

struct Ends {
  End a, b;
};
// A connected pair, or for UD two that are ready.
Ends make_ends(Lab& lab, const EndOptions& options);
inline Ends make_ends(Lab& lab, ibv_qp_type type) {
  EndOptions options;
  options.type = type;
  return make_ends(lab, options);
}

AhPtr make_ah(const Device& own, const ibv_gid& to);
// Both throw Skipped when the device has none.
SrqPtr make_srq(const Device& device, uint32_t max_wr);
XrcdPtr make_xrcd(const Device& device);
void set_limit(ibv_srq* srq, uint32_t limit);
void post_srq_recv_ok(ibv_srq* srq, uint64_t wr_id, ibv_sge sge);

// A datagram to `to`.
void address(SendRequest& request, ibv_ah* ah, const End& to, uint32_t qkey = kQkey);

// A WRITE, READ or SEND between the two memories, at these offsets.
void post(End& from, ibv_wr_opcode opcode, uint64_t wr_id, ibv_sge local, const End& to,
          size_t remote_offset = 0, unsigned more_flags = 0);
void post_atomic(End& from, ibv_wr_opcode opcode, uint64_t wr_id, ibv_sge local, uint64_t address,
                 uint32_t rkey, uint64_t compare_add, uint64_t swap = 0);

// Returns when the peer's WRITE is there.
void wait_for_word(const End& end, size_t offset, uint64_t value);

// Expects that `attr` and `init` are what ibv_query_qp gives back of an end with its own CQs.
void expect_as_created(const End& end, const ibv_qp_attr& attr, const ibv_qp_init_attr& init);

// Posts the request, which is wrong, and one more behind it. Gives back whether they were taken, so
// that the first is due to fail and the second to be flushed; else both were refused, as they must
// be.
bool post_wrong(End& from, SendRequest& wrong);
// The same of a UC or UD QP, which is in RTS again afterwards (IBTA vol 1, 10.3.1).
void expect_send_queue_error(End& from, SendRequest& wrong, ibv_wc_status status);

// A SEND from one end to the other, which succeeds.
inline void expect_one_send(Ends& ends) {
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 100));
  post(ends.a, IBV_WR_SEND, 10, ends.a.sge(0, 100), ends.b);
  expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
  expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
}

// A completion event comes on the channel, or none within a moment. It is acknowledged.
void expect_completion_event(ibv_comp_channel* channel, ibv_cq* cq);
inline void expect_completion_event(End& end, ibv_cq* cq) {
  expect_completion_event(end.channel.get(), cq);
}
void expect_no_completion_event(End& end);
bool has_completion_event(const End& end);
// The device is gone, and a program that waits for an event hears so.
void expect_end_of_events(const End& end);

void expect_equal(uint64_t is, uint64_t due, const char* what);

std::span<const Row> unreliable_rows();
std::span<const Row> datagram_rows();
std::span<const Row> shared_receive_rows();
std::span<const Row> xrc_rows();
std::span<const Row> atomic_rows();
std::span<const Row> reliable_rows();
std::span<const Row> migration_rows();
std::span<const Row> tag_matching_rows();
std::span<const Row> completion_rows();
std::span<const Row> query_rows();
std::span<const Row> extended_cq_rows();
std::span<const Row> work_request_rows();
std::span<const Row> memory_rows();
std::span<const Row> bound_window_rows();
std::span<const Row> domain_rows();
std::span<const Row> raw_packet_rows();
std::span<const Row> transition_rows();
std::span<const Row> port_rows();
std::span<const Row> limit_edge_rows();
std::span<const Row> shared_region_rows();

}  // namespace rocemu::e2e
