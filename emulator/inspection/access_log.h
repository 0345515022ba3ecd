// Accesses to programs' memory by RDMA, and which of them nothing orders.
//
// A request can change what others see until its bytes are in place, and a READ or atomic takes
// what it finds at any time until its answer has come. So two requests are not ordered when one was
// taken off its queue before the other was over in that sense: whoever posted it could not know how
// the other one ended, by whatever way. Beside that, a QP's own WRITE may overtake its READ unless
// it is fenced (IBTA vol 1, 10.8.3.3, table 79).
//
// Not told, as they are sound: accesses of which none writes; atomics among each other (one device
// carries them out); a READ that has at most 8 aligned bytes in common with the other, which no NIC
// tears; equal bytes written to the same place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "emulator/inspection/meeting.h"
#include "emulator/inspection/step.h"

namespace rocemu::inspection {

enum class AccessKind : uint8_t { read, write, atomic };

struct Access {
  AccessKind kind{};
  bool fenced = false;
  void* space = nullptr;  // the program's memory
  uint64_t address = 0;   // in the program
  uint32_t length_bytes = 0;
  uint64_t content = 0;  // bytes of a write of at most 8
  QpPlace requester{};
  uint64_t request = 0;  // its number (requests.h)
  Step taken = 0;        // off its queue
  Step made = 0;
};

class AccessLog {
 public:
  // The last ones are kept. Writes are many, and a scan ends where they were made before the new
  // access was posted; READs stay open for long.
  static constexpr size_t kWrites = 2048;
  static constexpr size_t kReads = 128;

  // Answers when the READ was over; 0: it is not.
  using Over = std::function<Step(const Access& read)>;

  explicit AccessLog(Over over) : over_(std::move(over)) {}

  // An earlier access that nothing orders with this one, if there is one.
  std::optional<Access> add(const Access& access);

 private:
  struct Write {
    Access access;
    uint64_t other = 0;  // the number of the last one before it by another requester
  };
  const Access* find_write(const Access& access) const;
  const Access* find_read(const Access& access) const;

  Over over_;
  std::vector<Write> writes_;  // rings, none until they are used
  std::vector<Access> reads_;
  uint64_t write_count_ = 0;
  uint64_t read_count_ = 0;
};

}  // namespace rocemu::inspection
