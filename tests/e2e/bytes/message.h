// One message of verify_bytes: which operation, how long, and where its pieces lie in the memory of
// both ends. All of it is drawn from the seed before anything is posted.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/e2e/bytes/arena.h"
#include "tests/e2e/bytes/random.h"

namespace rocemu::e2e {

// Payload says where the payload goes.
enum class Payload { kIntoReceive, kIntoRemoteMemory, kFromRemoteMemory };

struct Operation {
  const char* name;
  ibv_wr_opcode wr_opcode;
  ibv_wc_opcode wc_opcode;          // of the requester's completion
  ibv_wc_opcode receive_wc_opcode;  // of the responder's, when it takes a receive
  bool takes_receive;
  bool carries_immediate;
  Payload payload;
};

std::span<const Operation> all_operations();

// Draws message sizes: log-distributed up to the largest, often at the edges of the path MTU,
// sometimes 0, and never so that the run as a whole goes over its budget of bytes by more than one
// largest message.
class SizePlan {
 public:
  SizePlan(uint64_t messages, uint32_t max_bytes, uint64_t budget_bytes);
  uint32_t draw(Random& random, uint32_t mtu_bytes);

 private:
  uint64_t messages_;
  uint32_t max_bytes_;
  uint64_t earned_per_message_;
  uint64_t tokens_;
  uint64_t drawn_ = 0;
};

// A run of bytes in an arena.
struct Piece {
  size_t offset = 0;
  uint32_t bytes = 0;
};

// Pieces with guards before, between and after them, at random alignment; offsets from 0.
struct Layout {
  std::vector<Piece> pieces;
  size_t bytes = 0;

  static Layout place(Random& random, const std::vector<uint32_t>& sizes);
  // Most that place() needs for that many pieces of so many bytes together.
  static size_t most_bytes(size_t pieces, size_t payload_bytes);
};

// `total` cut at random into so many pieces; a piece may be empty.
std::vector<uint32_t> cut(Random& random, uint32_t total, uint32_t pieces);

struct Message {
  const Operation* operation = nullptr;
  uint64_t number = 0;
  uint64_t seed = 0;
  uint32_t bytes = 0;
  uint32_t immediate = 0;  // network order, as it stands in the work request
  bool signalled = false;
  bool inlined = false;
  bool fenced = false;
  bool solicited = false;

  Chunk local;
  Chunk remote;
  std::vector<Piece> local_pieces;
  std::vector<Piece> receive_pieces;
  Piece remote_piece;

  bool sent = false;      // known to be complete at the requester
  bool received = false;  // its receive completion has come, or it takes no receive

  std::string describe() const;
};

}  // namespace rocemu::e2e
