// register_time DEVICE BYTES [COUNT]: the median time of ibv_reg_mr over BYTES of touched memory,
// in microseconds. Only the public libibverbs interface is used, so it runs on any RDMA device.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/e2e/tools/failure.h"
#include "tests/e2e/tools/verbs_objects.h"

using namespace rocemu::e2e;

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: register_time DEVICE BYTES [COUNT]\n");
    return 2;
  }
  const size_t bytes = std::strtoull(argv[2], nullptr, 0);
  const int count = argc > 3 ? std::atoi(argv[3]) : 101;
  const Device device = open_device(argv[1], 0);
  const Memory memory(bytes);
  std::memset(memory.data(), 1, bytes);

  std::vector<double> times_us;
  for (int i = 0; i < count; ++i) {
    const auto before = Clock::now();
    const MrPtr mr = register_memory(device.pd.get(), memory.data(), bytes, IBV_ACCESS_LOCAL_WRITE);
    times_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
    must(mr.get(), "ibv_reg_mr");
  }
  std::nth_element(times_us.begin(), times_us.begin() + count / 2, times_us.end());
  std::printf("%.2f\n", times_us[static_cast<size_t>(count / 2)]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "register_time: %s\n", error.what());
  return 1;
}
