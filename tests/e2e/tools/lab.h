// The laboratory of bad_input: two devices, QP pairs between them with a buffer at either end, and
// the expectations its rows are written in. Every expectation throws Failure when it does not hold.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "tests/e2e/tools/failure.h"
#include "tests/e2e/tools/verbs_objects.h"

namespace rocemu::e2e {

// Thrown by a row that cannot be carried out on this device; says why.
class Skipped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr unsigned kAllRights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
inline constexpr std::chrono::milliseconds kPatience{10000};

struct LinkOptions {
  RcOptions rc;
  uint32_t max_send_wr = 16, max_recv_wr = 16;
  uint32_t max_send_sge = 2, max_recv_sge = 2;
  uint32_t max_inline_bytes = 0;
  int cqe = 64;
  unsigned memory_access = kAllRights;
  size_t memory_bytes = 65536;
  bool connected = true;
};

struct LinkEnd {
  const Device* device = nullptr;
  Memory memory;
  MrPtr mr;
  CqPtr send_cq, recv_cq;
  QpPtr qp;
  ibv_qp_cap cap{};  // as granted

  ibv_sge sge(size_t offset, uint32_t bytes) const;
};

struct Link {
  LinkEnd a, b;
};

// Payload at `a`; its opcode, remote memory and flags are for the row to change.
struct SendRequest {
  ibv_sge sge{};
  ibv_send_wr wr{};

  SendRequest(ibv_wr_opcode opcode, uint64_t wr_id, const ibv_sge& payload);
  SendRequest(const SendRequest&) = delete;
  SendRequest& operator=(const SendRequest&) = delete;
  SendRequest& remote(uint64_t address, uint32_t rkey);
};

class Lab {
 public:
  Lab(Device a, Device b);

  const Device& a() const { return a_; }
  const Device& b() const { return b_; }

  LinkEnd make_end(const Device& device, const LinkOptions& options) const;
  Link make_link(const LinkOptions& options = {}) const;

  // The pair that lives through all rows still carries a SEND, a WRITE and a READ, byte for byte.
  void check_standing_link();
  // No async event comes to either device in that time. Events of a row's objects have to be looked
  // for while these live: they go with them.
  void check_no_events(std::chrono::milliseconds patience = {});

 private:
  Device a_, b_;
  std::optional<Link> standing_;
  uint64_t checks_ = 0;
};

// Both return what the verb returned.
int post_send(ibv_qp* qp, ibv_send_wr& wr, ibv_send_wr** bad = nullptr);
int post_recv(ibv_qp* qp, uint64_t wr_id, std::span<ibv_sge> sges, ibv_recv_wr** bad = nullptr);
// Must succeed.
void post_ok(ibv_qp* qp, SendRequest& request);
void post_recv_ok(ibv_qp* qp, uint64_t wr_id, ibv_sge sge);

ibv_wc expect_completion(ibv_cq* cq, uint64_t wr_id, std::initializer_list<ibv_wc_status> statuses);
// Flushed completions of these ids, in this order, and nothing after them.
void expect_flushed(ibv_cq* cq, std::initializer_list<uint64_t> wr_ids);
void expect_no_completion(ibv_cq* cq);
void expect_state(ibv_qp* qp, ibv_qp_state state);
void expect_errno(int errno_value, std::initializer_list<int> allowed, const char* what);
// `object` must be null and errno one of the allowed. It is taken so that it is destroyed if it is
// not.
template <typename Owner>
void expect_refused(Owner object, std::initializer_list<int> allowed, const char* what) {
  expect_errno(object ? 0 : errno, allowed, what);
}
void expect_bytes(std::span<const std::byte> bytes, std::byte value, const char* what);
// An event of this type about this QP, SRQ or CQ comes; it is acknowledged.
void expect_qp_event(const Device& device, ibv_qp* qp, ibv_event_type type);
void expect_srq_event(const Device& device, ibv_srq* srq, ibv_event_type type);
void expect_cq_event(const Device& device, ibv_cq* cq, ibv_event_type type);

// A row of bad input: what is done wrong, and the function that does it and states what must
// follow.
struct Row {
  const char* name;
  void (*run)(Lab& lab);
};

std::span<const Row> registration_rows();
std::span<const Row> local_memory_rows();
std::span<const Row> remote_memory_rows();
std::span<const Row> receive_rows();
std::span<const Row> queue_rows();
std::span<const Row> state_rows();
std::span<const Row> no_answer_rows();
std::span<const Row> limit_rows();
std::span<const Row> window_rows();
std::span<const Row> handle_rows();
std::span<const Row> work_queue_rows();

}  // namespace rocemu::e2e
