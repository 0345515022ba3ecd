// Events on their way to the program: a pipe that the NIC writes records to and that libibverbs
// reads with ibv_get_cq_event and ibv_get_async_event. A record starts with the 8-byte pointer of
// the object it is about.
//
// The program keeps no write end, so a thread that waits in read(2) comes back when the NIC dies.
// Where one is needed it is opened anew by way of /proc; without /proc one is kept.
#pragma once

#include <stddef.h>

#include <cstdint>

namespace rocemu::provider {

// Events that are purged go by way of a second pipe, since splice(2) is the only way to ask a pipe
// for data without waiting and without changing the flags that its other readers see. It is made
// early: a program that has no descriptor left destroys objects as well.
class Passage {
 public:
  bool open();  // false: no descriptors; it may be called again
  void close();
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  // Room for a descriptor more, kept for whoever finds none.
  void give_spare();
  void take_spare();

 private:
  int ends_[2] = {-1, -1};
  int spare_ = -1;
};

class EventPipe {
 public:
  // Makes the pipe. `write_end`, non-blocking, is for the NIC: the caller sends and closes it. 0 or
  // an errno.
  int open(int& write_end);
  // The read end is libibverbs' to close; this gives up what else there is.
  void close_write_end();

  int read_end() const { return read_end_; }

  // Takes out the records about `object` that nobody has read, and says how many they were. The NIC
  // writes no more of them. Never waits for another reader of the pipe; other records stay, though
  // perhaps in another order. Calls for one pipe or with one passage must not run at the same time.
  unsigned purge(Passage& passage, size_t record_bytes, uint64_t object);

  // Adds a record of the program's own making. False when the pipe is full or can't be written.
  bool append(const void* record, size_t record_bytes);

 private:
  int open_write_end() const;
  void write_back(Passage& passage, const uint8_t* records, size_t bytes);

  int read_end_ = -1;
  int kept_write_end_ = -1;
};

}  // namespace rocemu::provider
