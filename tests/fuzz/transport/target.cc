// The transport under programs of actions: see world.h.
#include "tests/fuzz/transport/world.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  rocemu::fuzz::ByteSource input(data, size_bytes);
  rocemu::fuzz::World(input, false).run();
  return 0;
}
