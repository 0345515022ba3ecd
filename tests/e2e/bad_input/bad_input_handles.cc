// Handles that are not, or no more, an object of the context and of the kind that the verb is
// about: overwritten, of something that was destroyed, of another kind, of another context. The
// answer is ENOENT, as Linux's uverbs gives (where an object is used rather than destroyed,
// since 6.15; EINVAL before), in errno as well, and no other object is touched.
#include <functional>
#include <vector>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

// One object of each kind, whose handles a row breaks and mends.
struct Objects {
  const Device* device;
  PdPtr pd;
  Memory memory{4096};
  MrPtr mr;
  MwPtr mw;
  CqPtr cq, extended_cq;
  SrqPtr srq;
  AhPtr ah;
  DmPtr dm;
  QpPtr qp;

  explicit Objects(const Device& of) : device(&of) {
    ibv_context* context = of.context.get();
    pd.reset(must(ibv_alloc_pd(context), "ibv_alloc_pd"));
    mr = register_memory(pd.get(), memory.data(), memory.bytes(), kAllRights);
    mw.reset(must(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2), "ibv_alloc_mw"));
    cq.reset(must(ibv_create_cq(context, 16, nullptr, nullptr, 0), "ibv_create_cq"));
    ibv_cq_init_attr_ex extended{};
    extended.cqe = 16;
    extended.wc_flags = IBV_WC_STANDARD_FLAGS;
    extended_cq.reset(
        ibv_cq_ex_to_cq(must(ibv_create_cq_ex(context, &extended), "ibv_create_cq_ex")));
    srq = make_srq(pd.get());
    ibv_ah_attr path = path_to_itself();
    ah.reset(must(ibv_create_ah(pd.get(), &path), "ibv_create_ah"));
    ibv_alloc_dm_attr dm_attr{};
    dm_attr.length = 64;
    dm.reset(must(ibv_alloc_dm(context, &dm_attr), "ibv_alloc_dm"));
    qp = make_qp(srq.get());
    must(qp.get(), "ibv_create_qp");
  }

  static SrqPtr make_srq(ibv_pd* of) {
    ibv_srq_init_attr init{};
    init.attr = {16, 1, 0};
    return SrqPtr(ibv_create_srq(of, &init));
  }
  QpPtr make_qp(ibv_srq* receives) const {
    ibv_qp_init_attr init{};
    init.send_cq = cq.get();
    init.recv_cq = extended_cq.get();
    init.srq = receives;
    init.cap = {4, 4, 1, 1, 0};
    init.qp_type = IBV_QPT_UD;
    return QpPtr(ibv_create_qp(pd.get(), &init));
  }
  ibv_ah_attr path_to_itself() const {
    ibv_ah_attr path{};
    path.is_global = 1;
    path.port_num = kPort;
    path.grh.dgid = device->gid;
    path.grh.sgid_index = device->gid_index;
    path.grh.hop_limit = 1;
    return path;
  }
};

template <typename Owner>
int outcome(const Owner& made) {
  return made ? 0 : errno;
}

// A verb that names the object, which answers 0 or an errno.
struct Use {
  const char* verb;
  std::function<int(Objects&)> call;
};

struct Kind {
  const char* name;
  std::function<uint32_t&(Objects&)> handle;
  std::vector<Use> uses;
};

std::vector<Kind> memory_kinds() {
  return {
      {"PD",
       [](Objects& o) -> uint32_t& { return o.pd->handle; },
       {{"ibv_dealloc_pd", [](Objects& o) { return ibv_dealloc_pd(o.pd.get()); }},
        {"ibv_reg_mr",
         [](Objects& o) {
           return outcome(register_memory(o.pd.get(), o.memory.data(), 64, kAllRights));
         }},
        {"ibv_alloc_mw",
         [](Objects& o) { return outcome(MwPtr(ibv_alloc_mw(o.pd.get(), IBV_MW_TYPE_1))); }},
        {"ibv_alloc_null_mr",
         [](Objects& o) { return outcome(MrPtr(ibv_alloc_null_mr(o.pd.get()))); }},
        {"ibv_create_ah",
         [](Objects& o) {
           ibv_ah_attr path = o.path_to_itself();
           return outcome(AhPtr(ibv_create_ah(o.pd.get(), &path)));
         }},
        {"ibv_create_srq", [](Objects& o) { return outcome(Objects::make_srq(o.pd.get())); }},
        {"ibv_create_qp", [](Objects& o) { return outcome(o.make_qp(nullptr)); }}}},
      {"MR",
       [](Objects& o) -> uint32_t& { return o.mr->handle; },
       {{"ibv_dereg_mr", [](Objects& o) { return ibv_dereg_mr(o.mr.get()); }},
        {"ibv_rereg_mr",
         [](Objects& o) {
           const int failed = ibv_rereg_mr(o.mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr,
                                           0, IBV_ACCESS_LOCAL_WRITE);
           return failed == 0 ? 0 : errno;
         }}}},
      {"MW",
       [](Objects& o) -> uint32_t& { return o.mw->handle; },
       {{"ibv_dealloc_mw", [](Objects& o) { return ibv_dealloc_mw(o.mw.get()); }}}},
      {"device memory",
       [](Objects& o) -> uint32_t& { return o.dm->handle; },
       {{"ibv_free_dm", [](Objects& o) { return ibv_free_dm(o.dm.get()); }},
        {"ibv_reg_dm_mr",
         [](Objects& o) {
           return outcome(
               MrPtr(ibv_reg_dm_mr(o.pd.get(), o.dm.get(), 0, 64, IBV_ACCESS_ZERO_BASED)));
         }}}},
  };
}

std::vector<Kind> queue_kinds() {
  static const ibv_gid kGroup = {.raw = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}};
  return {
      {"CQ",
       [](Objects& o) -> uint32_t& { return o.cq->handle; },
       {{"ibv_destroy_cq", [](Objects& o) { return ibv_destroy_cq(o.cq.get()); }},
        {"ibv_resize_cq", [](Objects& o) { return ibv_resize_cq(o.cq.get(), 32); }},
        {"ibv_modify_cq",
         [](Objects& o) {
           ibv_modify_cq_attr attr{};
           attr.attr_mask = IBV_CQ_ATTR_MODERATE;
           return ibv_modify_cq(o.cq.get(), &attr);
         }},
        {"ibv_create_qp", [](Objects& o) { return outcome(o.make_qp(nullptr)); }}}},
      {"extended CQ",
       [](Objects& o) -> uint32_t& { return o.extended_cq->handle; },
       {{"ibv_destroy_cq", [](Objects& o) { return ibv_destroy_cq(o.extended_cq.get()); }},
        {"ibv_create_qp", [](Objects& o) { return outcome(o.make_qp(nullptr)); }}}},
      {"SRQ",
       [](Objects& o) -> uint32_t& { return o.srq->handle; },
       {{"ibv_destroy_srq", [](Objects& o) { return ibv_destroy_srq(o.srq.get()); }},
        {"ibv_query_srq",
         [](Objects& o) {
           ibv_srq_attr attr;
           return ibv_query_srq(o.srq.get(), &attr);
         }},
        {"ibv_modify_srq",
         [](Objects& o) {
           ibv_srq_attr attr{16, 1, 4};
           return ibv_modify_srq(o.srq.get(), &attr, IBV_SRQ_LIMIT);
         }},
        {"ibv_modify_srq, IBV_SRQ_MAX_WR",
         [](Objects& o) {
           ibv_srq_attr attr{32, 1, 0};
           return ibv_modify_srq(o.srq.get(), &attr, IBV_SRQ_MAX_WR);
         }},
        {"ibv_create_qp", [](Objects& o) { return outcome(o.make_qp(o.srq.get())); }}}},
      {"AH",
       [](Objects& o) -> uint32_t& { return o.ah->handle; },
       {{"ibv_destroy_ah", [](Objects& o) { return ibv_destroy_ah(o.ah.get()); }}}},
      {"QP",
       [](Objects& o) -> uint32_t& { return o.qp->handle; },
       {{"ibv_destroy_qp", [](Objects& o) { return ibv_destroy_qp(o.qp.get()); }},
        {"ibv_query_qp",
         [](Objects& o) {
           ibv_qp_attr attr;
           ibv_qp_init_attr init;
           return ibv_query_qp(o.qp.get(), &attr, IBV_QP_STATE, &init);
         }},
        {"ibv_modify_qp", [](Objects& o) { return change_to(IBV_QPS_ERR).apply(o.qp.get()); }},
        {"ibv_attach_mcast", [](Objects& o) { return ibv_attach_mcast(o.qp.get(), &kGroup, 0); }},
        {"ibv_detach_mcast", [](Objects& o) { return ibv_detach_mcast(o.qp.get(), &kGroup, 0); }}}},
  };
}

uint32_t handle_of_a_destroyed_pd(const Device& device) {
  const PdPtr pd(must(ibv_alloc_pd(device.context.get()), "ibv_alloc_pd"));
  return pd->handle;
}

void expect_unknown(Lab& lab, const std::vector<Kind>& kinds) {
  Objects own(lab.a()), others(lab.b());
  for (const Kind& kind : kinds) {
    uint32_t& handle = kind.handle(own);
    const uint32_t right = handle;
    // The PD's is of another kind, but for a PD.
    const uint32_t wrong[] = {0,
                              0x7fffffff,
                              UINT32_MAX,
                              kind.handle(others),
                              right == own.pd->handle ? own.mr->handle : own.pd->handle,
                              handle_of_a_destroyed_pd(lab.a())};
    for (const uint32_t number : wrong) {
      for (const Use& use : kind.uses) {
        handle = number;
        errno = 0;
        const int rc = use.call(own);
        const int left = errno;
        handle = right;
        if (rc != ENOENT || left != ENOENT)
          fail("%s of a %s with the handle %u: %s, errno %s", use.verb, kind.name, number,
               errno_text(rc).c_str(), errno_text(left).c_str());
      }
    }
  }
}

// What a verb answers it leaves in errno as well, whether the NIC refuses it or the provider does.
void left_in_errno(Lab& lab) {
  Objects o(lab.a());
  ibv_context* const context = lab.a().context.get();
  ibv_port_attr port;
  ibv_srq_attr srq{};
  srq.srq_limit = 1u << 30;
  const ibv_gid unicast = lab.a().gid;
  std::byte word[4] = {};
  const struct {
    const char* verb;
    int expected;
    std::function<int()> call;
  } kFailures[] = {
      {"ibv_query_port", EINVAL, [&] { return ibv_query_port(context, 9, &port); }},
      {"ibv_dealloc_pd", EBUSY, [&] { return ibv_dealloc_pd(o.pd.get()); }},
      {"ibv_destroy_cq", EBUSY, [&] { return ibv_destroy_cq(o.cq.get()); }},
      {"ibv_destroy_srq", EBUSY, [&] { return ibv_destroy_srq(o.srq.get()); }},
      {"ibv_resize_cq", EINVAL, [&] { return ibv_resize_cq(o.cq.get(), 0); }},
      {"ibv_modify_srq", EINVAL, [&] { return ibv_modify_srq(o.srq.get(), &srq, IBV_SRQ_LIMIT); }},
      {"ibv_modify_srq", EINVAL, [&] { return ibv_modify_srq(o.srq.get(), &srq, 1 << 20); }},
      {"ibv_modify_qp", EINVAL, [&] { return change_to(IBV_QPS_RTS).apply(o.qp.get()); }},
      {"ibv_attach_mcast", EINVAL, [&] { return ibv_attach_mcast(o.qp.get(), &unicast, 0); }},
      {"ibv_memcpy_to_dm", EFAULT, [&] { return ibv_memcpy_to_dm(o.dm.get(), 64, word, 4); }},
      {"ibv_create_cq", EINVAL,
       [&] { return outcome(CqPtr(ibv_create_cq(context, 0, nullptr, nullptr, 0))); }},
      {"ibv_reg_mr", EINVAL,
       [&] {
         return outcome(register_memory(o.pd.get(), o.memory.data(), 64, IBV_ACCESS_REMOTE_WRITE));
       }},
  };
  for (const auto& failure : kFailures) {
    errno = 0;
    const int rc = failure.call();
    const int left = errno;
    if (rc != failure.expected || left != rc)
      fail("%s: %s, errno %s", failure.verb, errno_text(rc).c_str(), errno_text(left).c_str());
  }
}

void unknown_memory(Lab& lab) { expect_unknown(lab, memory_kinds()); }
void unknown_queues(Lab& lab) { expect_unknown(lab, queue_kinds()); }

}  // namespace

std::span<const Row> handle_rows() {
  static constexpr Row kRows[] = {
      {"what verbs leave in errno when they fail", left_in_errno},
      {"handles that are no PD, MR, MW or device memory of the context", unknown_memory},
      {"handles that are no CQ, SRQ, AH or QP of the context", unknown_queues},
  };
  return kRows;
}

}  // namespace rocemu::e2e
