// Model is what one connection has made, as its answers say: the device's answers are held against
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace rocemu::fuzz {

// Memory that a program shares with the NIC.
using Mapping = std::shared_ptr<std::byte>;

struct Model {
  struct Pd {
    uint32_t users = 0;
  };
  struct Mr {
    uint32_t pd = 0;
    uint32_t key = 0;
    uint32_t dm = 0;  // 0: not of device memory
  };
  struct Mw {
    uint32_t pd = 0;
  };
  struct Dm {
    uint64_t bytes = 0;
    uint64_t memory = 0;  // the same for what is imported and what it is imported from
    uint32_t users = 0;
  };
  struct Channel {
    uint32_t users = 0;
  };
  struct Cq {
    uint32_t channel = 0;
    uint32_t users = 0;
  };
  struct Ah {
    uint32_t pd = 0;
  };
  struct Xrcd {
    uint32_t users = 0;
  };
  struct Srq {
    uint32_t pd = 0;
    uint32_t cq = 0;    // of XRC and of tag matching
    uint32_t xrcd = 0;  // of XRC alone
    bool has_tags = false;
    uint32_t users = 0;
    uint32_t number = 0;
    Mapping memory;  // of its ring
  };
  // What a QP does without is 0.
  struct Qp {
    uint32_t pd = 0;
    uint32_t send_cq = 0;
    uint32_t receive_cq = 0;
    uint32_t srq = 0;
    uint32_t xrcd = 0;
    uint32_t qpn = 0;
    uint32_t doorbell = 0;
    Mapping memory;      // of its queues; nullptr: another's QP that was opened
    uint32_t state = 0;  // after the last change that was granted
    std::set<std::array<uint8_t, 16>> groups{};
    uint32_t flows = 0;  // that lead to it
    bool takes_flows = false;
  };
  struct Flow {
    std::vector<uint32_t> qps;
    uint32_t counters = 0;  // 0: none
  };
  struct Counters {
    uint32_t users = 0;
  };

  // By handle.
  std::map<uint32_t, Pd> pds;
  std::map<uint32_t, Mr> mrs;
  std::map<uint32_t, Mw> mws;
  std::map<uint32_t, Dm> dms;
  std::map<uint32_t, Channel> channels;
  std::map<uint32_t, Cq> cqs;
  std::map<uint32_t, Ah> ahs;
  std::map<uint32_t, Xrcd> xrcds;
  std::map<uint32_t, Srq> srqs;
  std::map<uint32_t, Qp> qps;
  std::map<uint32_t, Flow> flows;
  std::map<uint32_t, Counters> counters;
};

}  // namespace rocemu::fuzz
