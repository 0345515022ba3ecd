// A context's address handles and the port's addresses, as the transport asks for them.
#pragma once

#include <algorithm>
#include <vector>

#include "emulator/device/attributes/device_config.h"
#include "emulator/device/objects/handle_table.h"
#include "emulator/transport/interface/attributes.h"

namespace rocemu::device {

struct Pd;

// Resolved when it is made: a WQE names it by its handle.
struct Ah {
  Pd* pd = nullptr;
  transport::PdHandle pd_id = 0;
  transport::Path path;
};

class ContextAddresses final : public transport::Addresses {
 public:
  ContextAddresses(const PortConfig& port, HandleNumbers& numbers)
      : handles(numbers), port_(port) {}

  const transport::Path* find(transport::PdHandle pd, uint32_t handle) const noexcept override {
    const Ah* ah = handles.find(handle);
    return ah != nullptr && ah->pd_id == pd ? &ah->path : nullptr;
  }
  bool is_local(const wire::Gid& gid) const noexcept override {
    return std::ranges::any_of(port_.gids, [&](const GidEntry& own) { return own.gid == gid; });
  }

  HandleTable<Ah> handles;

 private:
  const PortConfig& port_;
};

}  // namespace rocemu::device
