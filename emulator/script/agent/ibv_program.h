// The program of a script that is played live: its calls of verbs are those of libibverbs, on
// whatever device that finds.
#pragma once

#include <infiniband/verbs.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/net/ip_address.h"
#include "emulator/script/language/script.h"
#include "emulator/script/play/objects.h"
#include "emulator/script/play/qp_settings.h"

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

struct Free {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

class IbvProgram {
 public:
  // On the device `name`, or the first that has a GID for `own`; the script is at `peer`. Throws
  // std::runtime_error.
  IbvProgram(const std::string& name, const IpAddress& own, const IpAddress& peer);

  // Never waits. Throws Impossible for what names no object.
  Fields call(const Call& call);

 private:
  struct Cq {
    Ibv<ibv_comp_channel> channel;
    Ibv<ibv_cq> cq;
  };
  struct Qp {
    Ibv<ibv_qp> qp;
    std::string type;
  };
  using Srq = Ibv<ibv_srq>;
  using Mr = Ibv<ibv_mr>;
  using Mw = Ibv<ibv_mw>;
  using Handler = Fields (IbvProgram::*)(const Fields&);

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

  bool open(ibv_device* device, const IpAddress& own);
  Qp& qp(const Fields& arguments);
  Cq& cq(const Fields& arguments, const char* key = "CQ");
  ibv_srq* srq(const std::string& name);
  int make_cq(const std::string& name, int depth);
  int apply(Qp& qp, const QpSettings& settings);
  std::string state(const Qp& qp);
  ibv_xrcd* xrcd();
  ibv_ah_attr path() const;
  ibv_sge sge(const Fields& arguments) const;
  int fill(const Fields& arguments, ibv_send_wr& work, const Qp& qp);
  int fill_bind(const Fields& arguments, const ibv_sge& sge, ibv_send_wr& work);
  ibv_mw* window(const std::string& name);
  std::byte* at(uint64_t address, size_t bytes);
  std::string name_of(const ibv_qp* qp) const;
  std::string name_of(const ibv_srq* srq) const;

  Objects objects_;
  IpAddress peer_;
  uint8_t gid_index_ = 0;
  size_t used_bytes_ = 0;
  // In the order in which they need each other: the last are destroyed first.
  std::unique_ptr<std::byte, Free> memory_;
  Ibv<ibv_context> context_;
  Ibv<ibv_pd> pd_;
  Ibv<ibv_xrcd> xrcd_;
  std::map<std::string, Cq> cqs_;
  std::map<std::string, Mr> mrs_;
  std::map<std::string, Srq> srqs_;
  Ibv<ibv_ah> ah_;
  std::map<std::string, Qp> qps_;
  std::map<std::string, Mw> mws_;
};

}  // namespace rocemu::script
