// The program of a script in virtual time: its calls of verbs are those of a device (hca.h).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/script/play/verbs_program.h"
#include "emulator/script/virtual_time/queues.h"
#include "emulator/sim/hca_node.h"

namespace rocemu::script {

class HcaProgram final : public VerbsProgram {
 public:
  // `peer` is the address of the script's end.
  HcaProgram(sim::HcaNode& node, const wire::Gid& peer);

 private:
  struct QpParts {
    device::Handle handle = 0;
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
  struct Region {
    device::Handle handle = 0;
    uint32_t lkey = 0;
  };

  int make_cq(const std::string& name, uint32_t depth) override;
  int make_qp(const QpRequest& request, uint32_t& qpn) override;
  int change_qp(const std::string& qp, const QpSettings& settings) override;
  QpLook look_at(const std::string& qp) override;
  int drop_qp(const std::string& qp) override;
  int make_srq(const SrqRequest& request, uint32_t& number) override;
  int limit_srq(const std::string& srq, uint32_t limit) override;
  int make_region(const RegionRequest& request, RegionKeys& keys) override;
  int drop_region(const std::string& region) override;
  int make_window(const std::string& name, bool of_type_1, uint32_t& rkey) override;
  int drop_window(const std::string& window) override;
  int receive(const std::string& qp, const ReceiveRequest& request) override;
  int receive_shared(const std::string& srq, const ReceiveRequest& request) override;
  int send(const std::string& qp, const SendRequest& request) override;
  std::optional<CompletionText> poll(const std::string& cq) override;
  int arm(const std::string& cq, bool solicited_only) override;
  bool take_cq_event(const std::string& cq) override;
  std::optional<ProgramEvent> take_event() override;

  transport::QpState state_of(const QpParts& qp) const;
  void make_xrcd();
  uint32_t address_handle();
  sim::SendRequest work_of(const SendRequest& request);
  uint64_t user_pointer(const std::string& kind, const std::string& name);

  sim::HcaNode& node_;
  device::Hca& hca_;
  wire::Gid peer_;
  device::ContextId context_ = 0;
  device::Handle pd_ = 0;
  device::Handle xrcd_ = 0;
  device::Handle ah_ = 0;
  std::map<std::string, Cq> cqs_;
  std::map<std::string, QpParts> qps_;
  std::map<std::string, SrqParts> srqs_;
  std::map<std::string, Region> regions_;
  std::map<std::string, device::Handle> windows_;
  std::vector<std::pair<std::string, std::string>> events_about_;  // kind and name
  std::deque<AsyncEvent> async_events_;
};

}  // namespace rocemu::script
