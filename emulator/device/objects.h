// What a context owns. A program's objects refer to each other; an object that is referred to
// cannot be destroyed (EBUSY), except by the end of the whole context.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/device/cq.h"
#include "emulator/device/handle_table.h"
#include "emulator/device/hca.h"
#include "emulator/device/queues.h"

namespace rocemu::device {

struct Pd {
  transport::PdHandle id = 0;  // unlike handles, unique in the device
  uint32_t users = 0;
};

struct Dm {
  std::shared_ptr<DeviceMemory> memory;      // with those that imported it
  std::shared_ptr<dma::AddressSpace> space;  // of `memory`, from address 0 on
  bool imported = false;
  uint32_t users = 0;
};

inline constexpr uint32_t kMaxImportedDms = 65536;  // and own ones, of a context that imports one

struct Mr {
  uint32_t key = 0;
  Pd* pd = nullptr;
  Dm* dm = nullptr;  // of regions of device memory
  MrKind kind = MrKind::program_memory;
};

struct Mw {
  uint32_t key = 0;  // the first one
  Pd* pd = nullptr;
};

struct Context;

struct Qp {
  Context* context = nullptr;
  QpSpec spec;
  wire::Qpn qpn{};
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* receive_cq = nullptr;
  std::unique_ptr<WorkQueues> queues;
  QpAttr attr;
  uint32_t async_events_written = 0;
};

struct Context {
  std::unique_ptr<dma::AddressSpace> memory;
  std::unique_ptr<EventChannel> async_events;
  HandleTable<Pd> pds;
  HandleTable<Mr> mrs;
  HandleTable<Mw> mws;
  HandleTable<Dm> dms;
  std::optional<ContextToken> token;
  ContextId joined = 0;  // 0: none
  HandleTable<Channel> channels;
  HandleTable<Cq> cqs;
  HandleTable<Qp> qps;
};

}  // namespace rocemu::device
