// Memory of every kind as source and as target over the wire: relaxed ordering, zero-based, other
// addresses, on-demand, device memory, null regions, changed and imported registrations
// (ibv_reg_mr(3), ibv_rereg_mr(3), ibv_alloc_dm(3), ibv_advise_mr(3), ibv_import_mr(3)). What is
// refused is bad_input's for the greater part.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr uint32_t kRegionBytes = 5000;

// Throws Skipped when the device has no such registration.
MrPtr offered(ibv_mr* mr, const char* what) {
  if (mr == nullptr && errno == EOPNOTSUPP) throw Skipped(std::string("the device has no ") + what);
  return MrPtr(must(mr, what));
}

// `from` writes to what the key names, and reads it back.
void write_and_read(Ends& ends, uint64_t address, uint32_t rkey, uint32_t bytes = kRegionBytes) {
  std::memset(ends.a.memory.data(), 0x6b, bytes);
  SendRequest write(IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, bytes));
  post_ok(ends.a.qp.get(), write.remote(address, rkey));
  SendRequest read(IBV_WR_RDMA_READ, 2, ends.a.sge(32768, bytes));
  post_ok(ends.a.qp.get(), read.remote(address, rkey));
  for (const uint64_t id : {1, 2}) expect_completion(ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
  expect_bytes({ends.a.memory.data() + 32768, bytes}, std::byte{0x6b}, "what was read back");
}

void expect_no_access(Lab& lab, Ends& ends, uint64_t address, uint32_t rkey) {
  SendRequest write(IBV_WR_RDMA_WRITE, 3, ends.a.sge(0, 8));
  post_ok(ends.a.qp.get(), write.remote(address, rkey));
  expect_completion(ends.a.send_cq.get(), 3, {IBV_WC_REM_ACCESS_ERR});
  expect_qp_event(lab.b(), ends.b.qp.get(), IBV_EVENT_QP_ACCESS_ERR);
}

void relaxed_ordering(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const MrPtr mr = register_memory(lab.b().pd.get(), ends.b.memory.data(), ends.b.memory.bytes(),
                                   kEveryRight | IBV_ACCESS_RELAXED_ORDERING);
  must(mr.get(), "ibv_reg_mr with relaxed ordering");
  write_and_read(ends, ends.b.memory.address(), mr->rkey);
  expect_bytes({ends.b.memory.data(), kRegionBytes}, std::byte{0x6b}, "the target");
}

void zero_based(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const MrPtr mr = offered(ibv_reg_mr(lab.b().pd.get(), ends.b.memory.data() + 100,
                                      2 * kRegionBytes, kEveryRight | IBV_ACCESS_ZERO_BASED),
                           "zero-based regions");
  write_and_read(ends, 50, mr->rkey);
  expect_bytes({ends.b.memory.data() + 150, kRegionBytes}, std::byte{0x6b}, "the target");
  post_recv_ok(ends.b.qp.get(), 7, {8000, 100, mr->lkey});
  post(ends.a, IBV_WR_SEND, 4, ends.a.sge(0, 100), ends.b);
  expect_completion(ends.a.send_cq.get(), 4, {IBV_WC_SUCCESS});
  expect_completion(ends.b.recv_cq.get(), 7, {IBV_WC_SUCCESS});
  expect_bytes({ends.b.memory.data() + 8100, 100}, std::byte{0x6b}, "the receive");
  expect_no_access(lab, ends, ends.b.memory.address(), mr->rkey);
}

// A region may go when its memory has, before what came is polled: nothing is written there then.
void unmapped_before_the_region_goes(Lab& lab) {
  for (const uint32_t bytes : {8u, 100u}) {
    EndOptions options;
    options.with_channel = true;
    Ends ends = make_ends(lab, options);
    must(ibv_req_notify_cq(ends.b.recv_cq.get(), 0), "ibv_req_notify_cq");
    Memory memory(4096);
    MrPtr mr = register_memory(lab.b().pd.get(), memory.data(), memory.bytes(), kEveryRight);
    must(mr.get(), "ibv_reg_mr");
    post_recv_ok(ends.b.qp.get(), 7, {memory.address(), bytes, mr->lkey});
    post(ends.a, IBV_WR_SEND, 4, ends.a.sge(0, bytes), ends.b);
    expect_completion(ends.a.send_cq.get(), 4, {IBV_WC_SUCCESS});
    expect_completion_event(ends.b, ends.b.recv_cq.get());
    memory.unmap();
    mr.reset();
    expect_completion(ends.b.recv_cq.get(), 7, {IBV_WC_SUCCESS});
  }
}

// What has completed is there when the region goes, though the completion, of which an event tells,
// is polled later, which touches the memory no more.
void gone_before_the_poll(Lab& lab) {
  for (const uint32_t bytes : {8u, 16u, 100u}) {
    EndOptions options;
    options.with_channel = true;
    Ends ends = make_ends(lab, options);
    must(ibv_req_notify_cq(ends.b.recv_cq.get(), 0), "ibv_req_notify_cq");
    Memory memory(4096);
    MrPtr mr = register_memory(lab.b().pd.get(), memory.data(), memory.bytes(), kEveryRight);
    must(mr.get(), "ibv_reg_mr");
    ends.a.fill(std::byte{0x6b});
    post_recv_ok(ends.b.qp.get(), 7, {memory.address(), bytes, mr->lkey});
    post(ends.a, IBV_WR_SEND, 4, ends.a.sge(0, bytes), ends.b);
    expect_completion(ends.a.send_cq.get(), 4, {IBV_WC_SUCCESS});
    expect_completion_event(ends.b, ends.b.recv_cq.get());
    mr.reset();
    expect_bytes({memory.data(), bytes}, std::byte{0x6b}, "the receive");
    memory.unmap();
    expect_completion(ends.b.recv_cq.get(), 7, {IBV_WC_SUCCESS});
  }
}

void other_addresses(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  constexpr uint64_t kIova = 0x123450000;
  const MrPtr mr = register_memory_at(lab.b().pd.get(), ends.b.memory.data(), ends.b.memory.bytes(),
                                      kIova, kEveryRight);
  must(mr.get(), "ibv_reg_mr_iova");
  write_and_read(ends, kIova + 9, mr->rkey);
  expect_bytes({ends.b.memory.data() + 9, kRegionBytes}, std::byte{0x6b}, "the target");
  expect_no_access(lab, ends, ends.b.memory.address(), mr->rkey);
}

// A few bytes, whose address in the region is one of the program's own where others are.
void few_bytes_by_other_addresses(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  Memory elsewhere(4096);
  std::memset(elsewhere.data(), 0x11, 8);
  const MrPtr mr = register_memory_at(lab.a().pd.get(), ends.a.memory.data(), 4096,
                                      elsewhere.address(), IBV_ACCESS_LOCAL_WRITE);
  must(mr.get(), "ibv_reg_mr_iova");
  std::memset(ends.a.memory.data(), 0x6b, 8);
  post_recv_ok(ends.b.qp.get(), 7, ends.b.sge(0, 64));
  post(ends.a, IBV_WR_SEND, 4, {elsewhere.address(), 8, mr->lkey}, ends.b);
  expect_completion(ends.a.send_cq.get(), 4, {IBV_WC_SUCCESS});
  expect_completion(ends.b.recv_cq.get(), 7, {IBV_WC_SUCCESS});
  expect_bytes({ends.b.memory.data(), 8}, std::byte{0x6b}, "the receive");
}

void on_demand(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const Memory untouched(65536);
  const MrPtr mr = offered(ibv_reg_mr(lab.b().pd.get(), untouched.data(), untouched.bytes(),
                                      kEveryRight | IBV_ACCESS_ON_DEMAND),
                           "on-demand regions");
  write_and_read(ends, untouched.address(), mr->rkey);
  // Pages that the program gave up come back empty, and are written to as ever.
  if (madvise(untouched.data(), untouched.bytes(), MADV_DONTNEED) != 0)
    fail_errno(errno, "madvise");
  write_and_read(ends, untouched.address() + 4000, mr->rkey);
  expect_bytes({untouched.data() + 4000, kRegionBytes}, std::byte{0x6b}, "the target");
  ibv_sge sge{untouched.address(), 65536, mr->lkey};
  must(ibv_advise_mr(lab.b().pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                     IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
       "ibv_advise_mr");
}

void implicit(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const MrPtr mr = offered(ibv_reg_mr(lab.b().pd.get(), nullptr, SIZE_MAX,
                                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
                           "implicit on-demand regions");
  const Memory later(65536);
  std::memset(ends.a.memory.data(), 3, kRegionBytes);
  post_recv_ok(ends.b.qp.get(), 1, {later.address() + 1, kRegionBytes, mr->lkey});
  post(ends.a, IBV_WR_SEND, 2, ends.a.sge(0, kRegionBytes), ends.b);
  expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
  expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_bytes({later.data() + 1, kRegionBytes}, std::byte{3}, "the receive");
}

// An on-demand region whose memory has gone fails as any other does.
void on_demand_unmapped(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  Memory gone(65536);
  const MrPtr mr = offered(
      ibv_reg_mr(lab.b().pd.get(), gone.data(), gone.bytes(), kEveryRight | IBV_ACCESS_ON_DEMAND),
      "on-demand regions");
  gone.unmap();
  SendRequest write(IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, 8));
  post_ok(ends.a.qp.get(), write.remote(gone.address(), mr->rkey));
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_REM_OP_ERR, IBV_WC_REM_ACCESS_ERR});
  expect_state(ends.b.qp.get(), IBV_QPS_ERR);
  ends.b.qp.reset();  // with its event, of which devices have different ones
}

void device_memory(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  ibv_alloc_dm_attr attr{};
  attr.length = 8192;
  ibv_dm* allocated = ibv_alloc_dm(lab.b().context.get(), &attr);
  if (allocated == nullptr && errno == EOPNOTSUPP) throw Skipped("the device has no memory");
  const DmPtr dm(must(allocated, "ibv_alloc_dm"));
  const MrPtr mr(
      must(ibv_reg_dm_mr(lab.b().pd.get(), dm.get(), 64, 8000, kEveryRight | IBV_ACCESS_ZERO_BASED),
           "ibv_reg_dm_mr"));
  write_and_read(ends, 8, mr->rkey);
  uint64_t cell[2] = {41, 0};
  must(ibv_memcpy_to_dm(dm.get(), 128, cell, 8), "ibv_memcpy_to_dm");
  if (lab.b().attr.atomic_cap != IBV_ATOMIC_NONE) {
    post_atomic(ends.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 5, ends.a.sge(0, 8), 64, mr->rkey, 1);
    expect_completion(ends.a.send_cq.get(), 5, {IBV_WC_SUCCESS});
    must(ibv_memcpy_from_dm(cell, dm.get(), 128, 16), "ibv_memcpy_from_dm");
    expect_equal(cell[0], 42, "the cell in device memory");
  }
  expect_errno(ibv_free_dm(dm.get()), {EBUSY}, "ibv_free_dm under a region");
  expect_no_access(lab, ends, 8000, mr->rkey);
}

// What lands in a null region is gone, and what is read of it are zeroes (ibv_alloc_null_mr(3)).
void null_region(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const MrPtr mr = offered(ibv_alloc_null_mr(lab.a().pd.get()), "null regions");
  ends.b.fill(std::byte{9});
  ends.a.fill(std::byte{1});
  ibv_sge list[] = {ends.a.sge(0, 100), {0, 50, mr->lkey}};
  SendRequest write(IBV_WR_RDMA_WRITE, 1, list[0]);
  write.remote(ends.b.memory.address(), ends.b.mr->rkey);
  write.wr.sg_list = list;
  write.wr.num_sge = 2;
  post_ok(ends.a.qp.get(), write);
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_bytes({ends.b.memory.data(), 100}, std::byte{1}, "what comes of the memory");
  expect_bytes({ends.b.memory.data() + 100, 50}, std::byte{0}, "what comes of the null region");
}

void changed(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const Memory second(65536);
  ibv_mr* mr = ends.b.mr.get();
  const int error =
      ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, second.data(), second.bytes(), 0);
  if (error == IBV_REREG_MR_ERR_CMD && errno == EOPNOTSUPP)
    throw Skipped("the device does not change registrations");
  must(error, "ibv_rereg_mr, translation");
  write_and_read(ends, second.address(), mr->rkey);
  expect_bytes({second.data(), kRegionBytes}, std::byte{0x6b}, "the second memory");
  must(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_READ),
       "ibv_rereg_mr, access");
  expect_no_access(lab, ends, second.address(), mr->rkey);
}

void changed_domain(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const PdPtr other(must(ibv_alloc_pd(lab.b().context.get()), "ibv_alloc_pd"));
  const Memory memory(65536);
  const MrPtr mr = register_memory(lab.b().pd.get(), memory.data(), memory.bytes(), kEveryRight);
  must(mr.get(), "ibv_reg_mr");
  const int error = ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_PD, other.get(), nullptr, 0, 0);
  if (error == IBV_REREG_MR_ERR_CMD && errno == EOPNOTSUPP)
    throw Skipped("the device does not change registrations");
  must(error, "ibv_rereg_mr, PD");
  expect_no_access(lab, ends, memory.address(), mr->rkey);
}

// The device opened once more by its descriptor, and PD and MR of the first opening used there.
void imported(Lab& lab) {
  ContextPtr context(ibv_import_device(dup(lab.b().context->cmd_fd)));
  if (!context && errno == EOPNOTSUPP) throw Skipped("the device is not imported");
  must(context.get(), "ibv_import_device");
  Device twin;
  twin.attr = lab.b().attr;
  twin.port = lab.b().port;
  twin.gid = lab.b().gid;
  twin.gid_index = lab.b().gid_index;
  const PdPtr own(must(ibv_alloc_pd(context.get()), "ibv_alloc_pd"));
  const Memory memory(65536);
  const MrPtr mr = register_memory(lab.b().pd.get(), memory.data(), memory.bytes(), kEveryRight);
  must(mr.get(), "ibv_reg_mr");
  ibv_pd* const pd = must(ibv_import_pd(context.get(), lab.b().pd->handle), "ibv_import_pd");
  ibv_mr* const twin_mr = must(ibv_import_mr(pd, mr->handle), "ibv_import_mr");
  expect_equal(twin_mr->lkey, mr->lkey, "lkey");
  expect_equal(twin_mr->rkey, mr->rkey, "rkey");
  {
    twin.context = std::move(context);
    EndOptions options;
    options.pd = pd;
    Ends ends{make_end(lab.a(), {}), make_end(twin, options)};
    connect(ends.a, ends.b);
    write_and_read(ends, memory.address(), twin_mr->rkey);
  }
  ibv_unimport_mr(twin_mr);
  MrPtr other = register_memory(lab.b().pd.get(), memory.data(), memory.bytes(), kEveryRight);
  must(ibv_dereg_mr(must(ibv_import_mr(pd, other->handle), "ibv_import_mr")), "ibv_dereg_mr");
  expect_refused(MrPtr(ibv_import_mr(pd, other->handle)), {EINVAL, ENOENT},
                 "a region that is gone");
  ibv_unimport_mr(other.release());  // there is nothing left to deregister
  ibv_unimport_pd(pd);
  expect_refused(MrPtr(ibv_import_mr(own.get(), 0xfffffe)), {EINVAL, ENOENT, EBADF},
                 "ibv_import_mr of no region");
}

// IBV_ACCESS_FLUSH_GLOBAL and _PERSISTENT, which Debian 12's header does not have yet.
void flush_rights(Lab& lab) {
  const Memory memory(kRegionBytes);
  const auto with = [&](unsigned right) {
    return register_memory(lab.a().pd.get(), memory.data(), memory.bytes(), kEveryRight | right);
  };
  expect_refused(with(1u << 9), {EOPNOTSUPP, EINVAL}, "a right to flush to what persists");
  offered(with(1u << 8).release(), "right to flush");
}

void of_a_file(Lab& lab) {
  ibv_mr* mr = ibv_reg_dmabuf_mr(lab.a().pd.get(), 0, 4096, 0, STDIN_FILENO, kEveryRight);
  expect_refused(MrPtr(mr), {EOPNOTSUPP, EINVAL, EBADF}, "ibv_reg_dmabuf_mr of what is no dmabuf");
}

}  // namespace

std::span<const Row> memory_rows() {
  static constexpr Row kRows[] = {
      {"memory: relaxed ordering", relaxed_ordering},
      {"memory: zero-based, and not by its address", zero_based},
      {"memory: gone before what came is polled", gone_before_the_poll},
      {"memory: unmapped, and then its region gone, before what came is polled",
       unmapped_before_the_region_goes},
      {"memory: by other addresses, and not by its own", other_addresses},
      {"memory: a few bytes by other addresses", few_bytes_by_other_addresses},
      {"memory: on demand", on_demand},
      {"memory: on demand, all there is", implicit},
      {"memory: on demand, but unmapped", on_demand_unmapped},
      {"memory: the device's, with atomics, not beyond its end", device_memory},
      {"memory: a null region as a source", null_region},
      {"memory: registration changed, place and rights", changed},
      {"memory: registration changed to another PD", changed_domain},
      {"memory: imported with device and PD", imported},
      {"memory: rights to flush", flush_rights},
      {"memory: dmabuf of what is none", of_a_file},
  };
  return kRows;
}

}  // namespace rocemu::e2e
