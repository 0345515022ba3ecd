// Turns on a connection that forked children share with their parent. They are kept in memory that
// the processes share as well; a process that dies in its turn leaves it to the next one.
#pragma once

#include <cstdint>

namespace rocemu::provider {

class SharedTurn {
 public:
  // 0 or an errno. close() gives up this process's view of it.
  int open();
  void close();

  void begin();
  void end();
  // Unlike any before. To be called in one's turn.
  uint64_t next_cookie();

 private:
  struct Page;
  Page* page_ = nullptr;
};

}  // namespace rocemu::provider
