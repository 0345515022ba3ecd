// The program of a script that is played live: its calls of verbs are those of libibverbs, on
// whatever device that finds.
#pragma once

#include <infiniband/verbs.h>

#include <map>
#include <memory>
#include <string>

#include "base/net/ip_address.h"
#include "emulator/script/play/verbs_program.h"

namespace rocemu::script {

// Destroys what libibverbs made.
struct IbvDestroyer {
  void operator()(ibv_context* made) const noexcept { ibv_close_device(made); }
  void operator()(ibv_pd* made) const noexcept { ibv_dealloc_pd(made); }
  void operator()(ibv_xrcd* made) const noexcept { ibv_close_xrcd(made); }
  void operator()(ibv_comp_channel* made) const noexcept { ibv_destroy_comp_channel(made); }
  void operator()(ibv_cq* made) const noexcept { ibv_destroy_cq(made); }
  void operator()(ibv_mr* made) const noexcept { ibv_dereg_mr(made); }
  void operator()(ibv_mw* made) const noexcept { ibv_dealloc_mw(made); }
  void operator()(ibv_srq* made) const noexcept { ibv_destroy_srq(made); }
  void operator()(ibv_ah* made) const noexcept { ibv_destroy_ah(made); }
  void operator()(ibv_qp* made) const noexcept { ibv_destroy_qp(made); }
};
template <class T>
using Ibv = std::unique_ptr<T, IbvDestroyer>;

class IbvProgram final : public VerbsProgram {
 public:
  // On the device `name`, or the first that has a GID for `own`; the script is at `peer`. Throws
  // std::runtime_error.
  IbvProgram(const std::string& name, const IpAddress& own, const IpAddress& peer);

 private:
  struct Cq {
    Ibv<ibv_comp_channel> channel;
    Ibv<ibv_cq> cq;
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

  bool open(ibv_device* device, const IpAddress& own);
  ibv_qp* qp(const std::string& name);
  ibv_srq* srq(const std::string& name);
  ibv_xrcd* xrcd();
  ibv_ah_attr path() const;
  int fill(const std::string& qp, const SendRequest& request, ibv_send_wr& work);
  void fill_bind(const SendRequest& request, ibv_send_wr& work);

  IpAddress peer_;
  uint8_t gid_index_ = 0;
  // In the order in which they need each other: the last are destroyed first.
  Ibv<ibv_context> context_;
  Ibv<ibv_pd> pd_;
  Ibv<ibv_xrcd> xrcd_;
  std::map<std::string, Cq> cqs_;
  std::map<std::string, Ibv<ibv_mr>> regions_;
  std::map<std::string, Ibv<ibv_srq>> srqs_;
  Ibv<ibv_ah> ah_;
  std::map<std::string, Ibv<ibv_qp>> qps_;
  std::map<std::string, Ibv<ibv_mw>> windows_;
};

}  // namespace rocemu::script
