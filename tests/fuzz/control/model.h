// What one connection has made, as its answers say: the model that the device's answers are held
// against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace rocemu::fuzz {

struct Model {
  struct Pd {
    uint32_t users = 0;
  };
  struct Mr {
    uint32_t pd = 0;
    uint32_t key = 0;
  };
  struct Channel {
    uint32_t users = 0;
  };
  struct Cq {
    uint32_t channel = 0;
    uint32_t users = 0;
  };
  struct Qp {
    uint32_t pd = 0;
    uint32_t send_cq = 0;
    uint32_t receive_cq = 0;
    uint32_t qpn = 0;
    uint32_t doorbell = 0;
    std::byte* memory = nullptr;  // of its queues
    uint32_t state = 0;           // after the last change that was granted
  };

  // By handle.
  std::map<uint32_t, Pd> pds;
  std::map<uint32_t, Mr> mrs;
  std::map<uint32_t, Channel> channels;
  std::map<uint32_t, Cq> cqs;
  std::map<uint32_t, Qp> qps;
};

}  // namespace rocemu::fuzz
