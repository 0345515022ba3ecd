// One end of a connection of the stress program: what it requests of its peer, and what it checks
// of the messages that come from there.
//
// What a WRITE leaves in the peer's window, and what atomics leave in its word, only this end
// changes, so it knows what a READ and each atomic must bring. Both ends know the messages
// (plan.h), so the receiver checks their bytes, and that each comes once and in order.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/e2e/stress/board.h"
#include "tests/e2e/stress/end_memory.h"
#include "tests/e2e/stress/plan.h"
#include "tests/e2e/tools/verbs_objects.h"

namespace rocemu::e2e {

// A work request of this end that is not complete.
struct Request {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint32_t bytes = 0;
  uint64_t pattern = 0;             // of what is sent
  std::vector<std::byte> expected;  // what a READ brings
  uint64_t word = 0;                // what an atomic brings; of the shared word: more than that
  bool on_shared_word = false;
  bool busy = false;
};

class StressEnd {
 public:
  struct Setting {
    const StressOptions* options;
    Board* board;
    EndPlace place;
    uint32_t peer_process;
    uint64_t wr_id_base;  // of its requests, to which the slot is added
    uint32_t lkey;
  };
  StressEnd(const Setting& setting, QpPtr qp, EndMemory memory);

  ibv_qp* qp() const { return qp_.get(); }
  uint32_t in_flight() const { return in_flight_; }
  uint64_t received() const { return received_; }
  const EndPlace& place() const { return setting_.place; }
  std::string oldest() const;

  // One request, whatever is drawn; nothing when there is no room.
  void post();
  // The whole window, when nothing else is in flight.
  void post_last_read();
  void on_request_completion(const ibv_wc& wc);
  // `buffer` is the receive's, which is poison but for what has arrived, and is left as poison.
  void on_receive_completion(const ibv_wc& wc, std::span<std::byte> buffer);
  // What nobody may have written to is as it was. Nothing may be in flight.
  void check_guards() const;

 private:
  Request& next_request();
  void post_message();
  void post_write();
  void post_read(uint32_t offset, uint32_t bytes);
  void post_atomic();
  void submit(ibv_send_wr& wr, uint32_t bytes);
  void check(Request& request, uint32_t slot);
  void check_atomic(const Request& request, uint32_t slot);
  void must_have_arrived(std::span<std::byte> buffer, uint32_t bytes, uint64_t pattern) const;
  const Address& peer() const { return setting_.board->addresses[setting_.place.peer()]; }

  Setting setting_;
  QpPtr qp_;
  EndMemory memory_;
  Random random_;
  std::array<Request, kSlots> requests_;
  uint64_t posted_ = 0;
  uint32_t in_flight_ = 0;
  uint64_t messages_ = 0;
  uint64_t received_ = 0;
  std::vector<std::byte> peer_window_;
  uint64_t peer_word_ = 0;
  uint64_t seen_shared_word_ = 0;
  uint32_t reads_in_flight_ = 0;
};

}  // namespace rocemu::e2e
