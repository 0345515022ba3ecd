// A Board is what the processes of a stress run share: a page that their parent made before it
// forked them. They tell each other where their ends are, and how far each has come, past the
// network under test.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace rocemu::e2e {

inline constexpr uint32_t kMaxProcesses = 64;
inline constexpr uint32_t kMaxEnds = 4096;

// StressOptions say what runs, the same in all processes.
struct StressOptions {
  uint64_t seed = 0;
  uint32_t seconds = 10;
  uint32_t processes = 4;
  uint32_t qps = 2;  // connections that each process begins
  uint32_t max_bytes = 100'000;
  int gid_index = 1;
  bool shared_receives = false;  // one SRQ for each process
};

// One end of a connection, written by its process before `connected`.
struct Address {
  uint32_t qpn = 0;
  uint16_t lid = 0;
  ibv_gid gid{};
  uint64_t memory = 0;  // of the end's memory, laid out by EndMemory
  uint64_t shared_word = 0;
  uint32_t rkey = 0;
  uint32_t port_mtu = 0;
};

struct Counts {
  std::atomic<uint64_t> operations;
  std::atomic<uint64_t> bytes;
};

struct Board {
  pthread_barrier_t barrier;
  Address addresses[kMaxEnds];
  std::atomic<uint64_t> messages_sent[kMaxEnds];     // by that end, final once its process is quiet
  std::atomic<uint64_t> messages_checked[kMaxEnds];  // of that end's, by its peer
  std::atomic<uint64_t> added[kMaxProcesses];        // to the shared word of that process
  std::atomic<uint32_t> quiet_processes;             // which request nothing any more
  Counts counts;

  // In memory that children of this process share. Throws Failure.
  static Board* make(uint32_t processes);
  void meet() { pthread_barrier_wait(&barrier); }
};

// Connection c = process * qps + q has ends 2c, with the process that began it, and 2c + 1.
struct EndPlace {
  uint32_t index = 0;
  uint32_t process = 0;

  uint32_t peer() const { return index ^ 1; }
};
uint32_t end_count(const StressOptions& options);
EndPlace end_place(const StressOptions& options, uint32_t index);

}  // namespace rocemu::e2e
