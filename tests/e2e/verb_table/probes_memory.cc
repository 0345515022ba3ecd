// verb_table's calls about devices, domains and memory.
#include <unistd.h>

#include "tests/e2e/verb_table/bench.h"

namespace rocemu::e2e {
namespace {

int with_window(const Bench& b, ibv_mw_type type, const std::function<int(ibv_mw*)>& probe) {
  ibv_mw* mw = ibv_alloc_mw(b.pd(), type);
  if (mw == nullptr) return errno;
  const int rc = probe(mw);
  const int destroyed = ibv_dealloc_mw(mw);
  return rc != 0 ? rc : destroyed;
}

int with_device_memory(const Bench& b, const std::function<int(ibv_dm*)>& probe) {
  ibv_alloc_dm_attr attr{};
  attr.length = 64;
  ibv_dm* dm = ibv_alloc_dm(b.context(), &attr);
  if (dm == nullptr) return errno;
  const int rc = probe(dm);
  const int destroyed = ibv_free_dm(dm);
  return rc != 0 ? rc : destroyed;
}

int with_thread_domain(const Bench& b, const std::function<int(ibv_td*)>& probe) {
  ibv_td_init_attr init{};
  ibv_td* td = ibv_alloc_td(b.context(), &init);
  if (td == nullptr) return errno;
  const int rc = probe(td);
  const int destroyed = ibv_dealloc_td(td);
  return rc != 0 ? rc : destroyed;
}

// With the device opened once more through a copy of its descriptor.
int with_import(const Bench& b, const std::function<int(ibv_context*)>& probe) {
  const int errno_before = errno;
  ibv_context* imported = ibv_import_device(dup(b.context()->cmd_fd));
  if (imported == nullptr) return errno;
  errno = errno_before;  // libibverbs looks for the devices anew, by what it does not find as well
  const int rc = probe(imported);
  const int closed = ibv_close_device(imported);
  return rc != 0 ? rc : closed;
}

int with_imported_pd(const Bench& b, const std::function<int(ibv_pd*)>& probe) {
  return with_import(b, [&](ibv_context* context) {
    ibv_pd* pd = ibv_import_pd(context, b.pd()->handle);
    if (pd == nullptr) return errno;
    const int rc = probe(pd);
    ibv_unimport_pd(pd);
    return rc;
  });
}

int bind_type_1(const Bench& b) {
  return with_window(b, IBV_MW_TYPE_1, [&](ibv_mw* mw) {
    ibv_mw_bind bind{};
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_info = {b.mr.get(), b.memory.address(), 64, 0};
    if (const int rc = ibv_bind_mw(b.qp.get(), mw, &bind); rc != 0) return rc;
    const auto wc = poll_one(b.cq.get(), std::chrono::seconds(10));
    return wc && wc->status == IBV_WC_SUCCESS ? 0 : EIO;
  });
}

}  // namespace

std::span<const Probe> memory_probes() {
  static const Probe kProbes[] = {
      {"ibv_query_device",
       [](const Bench& b) {
         ibv_device_attr attr;
         return ibv_query_device(b.context(), &attr);
       }},
      {"ibv_query_device_ex",
       [](const Bench& b) {
         ibv_device_attr_ex attr;
         return ibv_query_device_ex(b.context(), nullptr, &attr);
       }},
      {"ibv_query_port",
       [](const Bench& b) {
         ibv_port_attr attr;
         return ibv_query_port(b.context(), kPort, &attr);
       }},
      {"ibv_query_gid",
       [](const Bench& b) {
         ibv_gid gid;
         return ibv_query_gid(b.context(), kPort, 0, &gid);
       }},
      {"ibv_query_gid_ex",
       [](const Bench& b) {
         ibv_gid_entry entry;
         return ibv_query_gid_ex(b.context(), kPort, 0, &entry, 0);
       }},
      {"ibv_query_gid_table",
       [](const Bench& b) {
         ibv_gid_entry entries[256];
         return ibv_query_gid_table(b.context(), entries, 256, 0) > 0 ? 0 : EIO;
       }},
      {"ibv_query_pkey",
       [](const Bench& b) {
         __be16 pkey;
         return ibv_query_pkey(b.context(), kPort, 0, &pkey);
       }},
      {"ibv_get_pkey_index",
       [](const Bench& b) {
         return ibv_get_pkey_index(b.context(), kPort, 0xffff) == 0 ? 0 : EIO;
       }},
      {"ibv_query_rt_values_ex",
       [](const Bench& b) {
         ibv_values_ex values{};
         values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
         return ibv_query_rt_values_ex(b.context(), &values);
       }},
      {"ibv_import_device",
       [](const Bench& b) { return with_import(b, [](ibv_context*) { return 0; }); }},
      {"ibv_import_pd",
       [](const Bench& b) { return with_imported_pd(b, [](ibv_pd*) { return 0; }); }},
      {"ibv_import_mr",
       [](const Bench& b) {
         return with_imported_pd(b, [&b](ibv_pd* pd) {
           ibv_mr* mr = ibv_import_mr(pd, b.mr->handle);
           if (mr == nullptr) return errno;
           const bool same = mr->lkey == b.mr->lkey;
           ibv_unimport_mr(mr);
           return same ? 0 : EIO;
         });
       }},
      {"ibv_import_dm",
       [](const Bench& b) {
         return with_device_memory(b, [&b](ibv_dm* dm) {
           return with_import(b, [dm](ibv_context* context) {
             ibv_dm* imported = ibv_import_dm(context, dm->handle);
             if (imported == nullptr) return errno;
             ibv_unimport_dm(imported);
             return 0;
           });
         });
       }},
      {"ibv_alloc_pd",
       [](const Bench& b) { return outcome(ibv_alloc_pd(b.context()), ibv_dealloc_pd); }},
      {"ibv_alloc_td",
       [](const Bench& b) { return with_thread_domain(b, [](ibv_td*) { return 0; }); }},
      {"ibv_alloc_parent_domain",
       [](const Bench& b) {
         return with_thread_domain(b, [&b](ibv_td* td) {
           ibv_parent_domain_init_attr init{};
           init.pd = b.pd();
           init.td = td;
           return outcome(ibv_alloc_parent_domain(b.context(), &init), ibv_dealloc_pd);
         });
       }},
      {"ibv_reg_mr",
       [](const Bench& b) {
         return outcome(ibv_reg_mr(b.pd(), b.memory.data(), 64, kAccess), ibv_dereg_mr);
       }},
      {"ibv_reg_mr with IBV_ACCESS_ON_DEMAND",
       [](const Bench& b) {
         return outcome(ibv_reg_mr(b.pd(), b.memory.data(), 64, kAccess | IBV_ACCESS_ON_DEMAND),
                        ibv_dereg_mr);
       }},
      {"ibv_reg_mr with IBV_ACCESS_ON_DEMAND, implicit",
       [](const Bench& b) {
         return outcome(
             ibv_reg_mr(b.pd(), nullptr, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
             ibv_dereg_mr);
       }},
      {"ibv_reg_mr with IBV_ACCESS_ZERO_BASED",
       [](const Bench& b) {
         return outcome(ibv_reg_mr(b.pd(), b.memory.data(), 64, IBV_ACCESS_ZERO_BASED),
                        ibv_dereg_mr);
       }},
      {"ibv_reg_mr with IBV_ACCESS_RELAXED_ORDERING",
       [](const Bench& b) {
         return outcome(ibv_reg_mr(b.pd(), b.memory.data(), 64, IBV_ACCESS_RELAXED_ORDERING),
                        ibv_dereg_mr);
       }},
      {"ibv_reg_mr_iova",
       [](const Bench& b) {
         return outcome(ibv_reg_mr_iova(b.pd(), b.memory.data(), 64, 0x1000, 0), ibv_dereg_mr);
       }},
      {"ibv_reg_dmabuf_mr",
       [](const Bench& b) {
         return outcome(ibv_reg_dmabuf_mr(b.pd(), 0, 4096, 0, STDIN_FILENO, 0), ibv_dereg_mr);
       }},
      {"ibv_rereg_mr",
       [](const Bench& b) {
         return ibv_rereg_mr(b.mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                             kAccess) == 0
                    ? 0
                    : errno;
       }},
      {"ibv_alloc_null_mr",
       [](const Bench& b) { return outcome(ibv_alloc_null_mr(b.pd()), ibv_dereg_mr); }},
      {"ibv_advise_mr",
       [](const Bench& b) {
         const MrPtr odp = register_memory(b.pd(), b.memory.data(), 64, IBV_ACCESS_ON_DEMAND);
         ibv_sge sge{b.memory.address(), 64, odp->lkey};
         return ibv_advise_mr(b.pd(), IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge,
                              1);
       }},
      {"ibv_alloc_dm",
       [](const Bench& b) { return with_device_memory(b, [](ibv_dm*) { return 0; }); }},
      {"ibv_memcpy_to_dm",
       [](const Bench& b) {
         return with_device_memory(
             b, [&b](ibv_dm* dm) { return ibv_memcpy_to_dm(dm, 0, b.memory.data(), 64); });
       }},
      {"ibv_memcpy_from_dm",
       [](const Bench& b) {
         return with_device_memory(
             b, [&b](ibv_dm* dm) { return ibv_memcpy_from_dm(b.memory.data(), dm, 0, 64); });
       }},
      {"ibv_reg_dm_mr",
       [](const Bench& b) {
         return with_device_memory(b, [&b](ibv_dm* dm) {
           return outcome(ibv_reg_dm_mr(b.pd(), dm, 0, 64, IBV_ACCESS_ZERO_BASED), ibv_dereg_mr);
         });
       }},
      {"ibv_alloc_mw of type 1",
       [](const Bench& b) { return with_window(b, IBV_MW_TYPE_1, [](ibv_mw*) { return 0; }); }},
      {"ibv_alloc_mw of type 2",
       [](const Bench& b) { return with_window(b, IBV_MW_TYPE_2, [](ibv_mw*) { return 0; }); }},
      {"ibv_bind_mw", bind_type_1},
  };
  return kProbes;
}

}  // namespace rocemu::e2e
