// The program of a script in virtual time: its calls of verbs are those of a device (hca.h).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/script/language/script.h"
#include "emulator/script/play/objects.h"
#include "emulator/script/play/qp_settings.h"
#include "emulator/script/virtual_time/queues.h"
#include "emulator/sim/hca_node.h"

namespace rocemu::script {

// The memory of the program, of which regions are parts.
class ProgramMemory {
 public:
  static constexpr uint64_t kBase = 0x100000;
  static constexpr size_t kBytes = 4 << 20;

  std::span<std::byte> all() { return bytes_; }
  // Pages of their own for a region. Throw Impossible where there is no more, or none.
  uint64_t allocate(uint64_t bytes);
  std::byte* at(uint64_t address, size_t bytes);

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBytes);
  size_t used_bytes_ = 0;
};

class HcaProgram {
 public:
  // `peer` is the address of the script's end.
  HcaProgram(sim::HcaNode& node, const wire::Gid& peer);

  // Never waits. Throws Impossible for what names no object.
  Fields call(const Call& call);

 private:
  struct QpParts {
    device::Handle handle = 0;
    std::string type;
    wire::Qpn qpn{};
    Queues* queues = nullptr;
    bool signals_all = false;
  };
  struct SrqParts {
    device::Handle handle = 0;
    SharedReceives* receives = nullptr;
  };
  struct Cq {
    device::Handle handle = 0;
    Shown shown;
  };
  using Handler = Fields (HcaProgram::*)(const Fields&);

  static const std::map<std::string, Handler>& handlers();
  Fields create_cq(const Fields& arguments);
  Fields create_qp(const Fields& arguments);
  Fields modify_qp(const Fields& arguments);
  Fields connect(const Fields& arguments);
  Fields query_qp(const Fields& arguments);
  Fields destroy_qp(const Fields& arguments);
  Fields reg_mr(const Fields& arguments);
  Fields dereg_mr(const Fields& arguments);
  Fields alloc_mw(const Fields& arguments);
  Fields dealloc_mw(const Fields& arguments);
  Fields create_srq(const Fields& arguments);
  Fields modify_srq(const Fields& arguments);
  Fields post_srq_recv(const Fields& arguments);
  Fields post_recv(const Fields& arguments);
  Fields post_send(const Fields& arguments);
  Fields poll_cq(const Fields& arguments);
  Fields req_notify_cq(const Fields& arguments);
  Fields get_cq_event(const Fields& arguments);
  Fields get_async_event(const Fields& arguments);
  Fields memory(const Fields& arguments);
  Fields set_memory(const Fields& arguments);

  QpParts& qp(const Fields& arguments);
  Cq& cq(const Fields& arguments, const char* key = "CQ");
  int apply(QpParts& qp, const QpSettings& settings);
  std::string state(const QpParts& qp);
  int make_cq(const std::string& name, uint32_t depth);
  void make_xrcd();
  uint32_t address_handle();
  std::vector<transport::Sge> sges(const Fields& arguments) const;
  sim::SendRequest send_request(const Fields& arguments);
  uint64_t user_pointer(const std::string& kind, const std::string& name);

  sim::HcaNode& node_;
  device::Hca& hca_;
  wire::Gid peer_;
  Objects objects_;
  ProgramMemory memory_;
  device::ContextId context_ = 0;
  device::Handle pd_ = 0;
  device::Handle xrcd_ = 0;
  device::Handle ah_ = 0;
  std::map<std::string, Cq> cqs_;
  std::map<std::string, QpParts> qps_;
  std::map<std::string, SrqParts> srqs_;
  std::map<std::string, device::Handle> regions_;                  // and windows
  std::vector<std::pair<std::string, std::string>> events_about_;  // kind and name
  std::deque<AsyncEvent> async_events_;
};

}  // namespace rocemu::script
