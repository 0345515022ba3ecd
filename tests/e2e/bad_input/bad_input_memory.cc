// Rows of bad input about memory: registrations that must be refused, and work requests that name
// memory they may not use. The statuses are IBTA vol. 1, 11.6.2; a refused remote access also takes
// the responder to the error state with an affiliated asynchronous error (11.6.3.2).
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

constexpr uint32_t kBytes = 6000;  // more than one packet at every MTU
constexpr size_t kPage = 4096;

// ---- registration ----

void register_unmapped(Lab& lab) {
  Memory memory(4 * kPage);
  memory.unmap();
  expect_refused(register_memory(lab.a().pd.get(), memory.data(), 4 * kPage, kAllRights), {EFAULT},
                 "registering an unmapped address");
}

void register_partly_unmapped(Lab& lab) {
  const Memory memory(4 * kPage);  // an inaccessible page follows
  expect_refused(register_memory(lab.a().pd.get(), memory.data(), 5 * kPage, kAllRights), {EFAULT},
                 "registering a range that ends in an unmapped page");
}

void register_read_only_for_writing(Lab& lab) {
  const Memory memory(4 * kPage);
  if (mprotect(memory.data(), 4 * kPage, PROT_READ) != 0) fail_errno(errno, "mprotect");
  expect_refused(
      register_memory(lab.a().pd.get(), memory.data(), 4 * kPage, IBV_ACCESS_LOCAL_WRITE), {EFAULT},
      "registering read-only pages with LOCAL_WRITE");
  must(register_memory(lab.a().pd.get(), memory.data(), 4 * kPage, IBV_ACCESS_REMOTE_READ).get(),
       "registering read-only pages for reading");
}

void register_past_the_end_of_addresses(Lab& lab) {
  const auto* last = reinterpret_cast<void*>(~uintptr_t{0} - kPage);
  expect_refused(register_memory(lab.a().pd.get(), last, 2 * kPage, kAllRights), {EFAULT, EINVAL},
                 "registering a range that wraps");
}

void register_remote_write_without_local_write(Lab& lab) {
  const Memory memory(kPage);
  for (const unsigned access : {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC}) {
    expect_refused(register_memory(lab.a().pd.get(), memory.data(), kPage, access), {EINVAL},
                   "registering for remote writing without LOCAL_WRITE");
  }
}

void register_with_unknown_access(Lab& lab) {
  const Memory memory(kPage);
  expect_refused(register_memory(lab.a().pd.get(), memory.data(), kPage, 1u << 30),
                 {EINVAL, EOPNOTSUPP}, "registering with an unknown access flag");
}

void register_at_another_place_within_a_page(Lab& lab) {
  const Memory memory(kPage);
  for (const uint64_t iova : {uint64_t{1}, uint64_t{0x123450008}, memory.address() + 64})
    expect_refused(register_memory_at(lab.a().pd.get(), memory.data(), kPage, iova, kAllRights),
                   {EINVAL}, "registering at an IOVA with another offset in its page");
}

constexpr Row kRegistrationRows[] = {
    {"register unmapped memory", register_unmapped},
    {"register partly unmapped memory", register_partly_unmapped},
    {"register read-only pages for writing", register_read_only_for_writing},
    {"register past the end of the address space", register_past_the_end_of_addresses},
    {"register REMOTE_WRITE without LOCAL_WRITE", register_remote_write_without_local_write},
    {"register with an unknown access flag", register_with_unknown_access},
    {"register at an IOVA with another offset in its page",
     register_at_another_place_within_a_page},
};

// ---- memory of the requester ----

// Posts one request that must fail at its own end, and one behind it that must be flushed.
void expect_local_error(Link& link, SendRequest& request, ibv_wc_status status) {
  request.remote(link.b.memory.address(), link.b.mr->rkey);
  post_ok(link.a.qp.get(), request);
  SendRequest behind(IBV_WR_RDMA_WRITE, 2, link.a.sge(0, 8));
  behind.remote(link.b.memory.address(), link.b.mr->rkey);
  post_ok(link.a.qp.get(), behind);
  expect_completion(link.a.send_cq.get(), request.wr.wr_id, {status});
  expect_flushed(link.a.send_cq.get(), {2});
  expect_state(link.a.qp.get(), IBV_QPS_ERR);
}

void write_with_bad_lkey(Lab& lab) {
  Link link = lab.make_link();
  ibv_sge sge = link.a.sge(0, kBytes);
  sge.lkey ^= 0xff;
  SendRequest request(IBV_WR_RDMA_WRITE, 1, sge);
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
}

void send_with_lkey_never_given(Lab& lab) {
  Link link = lab.make_link();
  post_recv_ok(link.b.qp.get(), 9, link.b.sge(0, kBytes));
  ibv_sge sge = link.a.sge(0, kBytes);
  sge.lkey = 0xffffffff;
  SendRequest request(IBV_WR_SEND, 1, sge);
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
}

void write_one_byte_past_the_region(Lab& lab) {
  Link link = lab.make_link();
  SendRequest request(IBV_WR_RDMA_WRITE, 1, link.a.sge(link.a.memory.bytes() - kBytes + 1, kBytes));
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
}

void write_from_before_the_region(Lab& lab) {
  Link link = lab.make_link();
  ibv_sge sge = link.a.sge(0, kBytes);
  sge.addr -= 1;
  SendRequest request(IBV_WR_RDMA_WRITE, 1, sge);
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
}

void write_from_range_that_wraps(Lab& lab) {
  Link link = lab.make_link();
  ibv_sge sge = link.a.sge(0, kBytes);
  sge.addr = ~uint64_t{0} - 10;
  SendRequest request(IBV_WR_RDMA_WRITE, 1, sge);
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
}

void second_sge_bad(Lab& lab) {
  Link link = lab.make_link();
  std::memset(link.b.memory.data(), 0, link.b.memory.bytes());
  std::memset(link.a.memory.data(), 1, link.a.memory.bytes());
  ibv_sge sges[2] = {link.a.sge(0, kBytes), link.a.sge(0, kBytes)};
  sges[1].lkey ^= 0xff00;
  SendRequest request(IBV_WR_RDMA_WRITE, 1, sges[0]);
  request.wr.sg_list = sges;
  request.wr.num_sge = 2;
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
  expect_bytes({link.b.memory.data() + 2 * kBytes, link.b.memory.bytes() - 2 * kBytes},
               std::byte{0}, "memory behind the target");
}

void write_after_dereg(Lab& lab) {
  Link link = lab.make_link();
  MrPtr mr = register_memory(lab.a().pd.get(), link.a.memory.data(), kBytes, 0);
  must(mr.get(), "ibv_reg_mr");
  const ibv_sge sge{link.a.memory.address(), kBytes, mr->lkey};
  mr.reset();
  SendRequest request(IBV_WR_RDMA_WRITE, 1, sge);
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
}

void write_from_region_of_other_pd(Lab& lab) {
  Link link = lab.make_link();
  const PdPtr pd(must(ibv_alloc_pd(lab.a().context.get()), "ibv_alloc_pd"));
  const MrPtr mr = register_memory(pd.get(), link.a.memory.data(), kBytes, kAllRights);
  must(mr.get(), "ibv_reg_mr");
  SendRequest request(IBV_WR_RDMA_WRITE, 1, {link.a.memory.address(), kBytes, mr->lkey});
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
}

void read_into_region_without_local_write(Lab& lab) {
  Link link = lab.make_link();
  std::memset(link.a.memory.data(), 7, link.a.memory.bytes());
  const MrPtr mr = register_memory(lab.a().pd.get(), link.a.memory.data(), kBytes, 0);
  must(mr.get(), "ibv_reg_mr");
  SendRequest request(IBV_WR_RDMA_READ, 1, {link.a.memory.address(), kBytes, mr->lkey});
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
  expect_bytes({link.a.memory.data(), kBytes}, std::byte{7}, "the READ's target");
}

void write_from_unmapped_region(Lab& lab, uint32_t bytes) {
  Link link = lab.make_link();
  Memory memory(4 * kPage);
  const MrPtr mr = register_memory(lab.a().pd.get(), memory.data(), memory.bytes(), kAllRights);
  must(mr.get(), "ibv_reg_mr");
  memory.unmap();
  SendRequest request(IBV_WR_RDMA_WRITE, 1, {memory.address(), bytes, mr->lkey});
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
}

void read_into_unmapped_region(Lab& lab) {
  Link link = lab.make_link();
  Memory memory(4 * kPage);
  const MrPtr mr = register_memory(lab.a().pd.get(), memory.data(), memory.bytes(), kAllRights);
  must(mr.get(), "ibv_reg_mr");
  memory.unmap();
  SendRequest request(IBV_WR_RDMA_READ, 1, {memory.address(), kBytes, mr->lkey});
  expect_local_error(link, request, IBV_WC_LOC_PROT_ERR);
}

// A range of 2 GiB less a block, made of one block of memory mapped again and again, so that a
// device that pins what it registers is not out of memory.
class HugeRange {
 public:
  static constexpr size_t kBlockBytes = size_t{16} << 20;
  static constexpr size_t kBytes = (size_t{1} << 31) - kBlockBytes;

  HugeRange() {
    base_ = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const int fd = memfd_create("block", MFD_CLOEXEC);
    bool mapped = base_ != MAP_FAILED && fd >= 0 && ftruncate(fd, kBlockBytes) == 0;
    for (size_t at = 0; mapped && at < kBytes; at += kBlockBytes) {
      mapped = mmap(static_cast<char*>(base_) + at, kBlockBytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    }
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!mapped) fail_errno(error, "mapping a range of 2 GiB");
  }
  ~HugeRange() { munmap(base_, kBytes); }
  HugeRange(const HugeRange&) = delete;
  HugeRange& operator=(const HugeRange&) = delete;

  void* data() const { return base_; }

 private:
  void* base_;
};

// Two SGEs of almost 2 GiB each: valid in themselves, too long together.
void message_longer_than_the_port_allows(Lab& lab) {
  if (lab.a().port.max_msg_sz > (1u << 31)) throw Skipped("max_msg_sz is over 2^31");
  Link link = lab.make_link();
  const HugeRange range;
  const MrPtr mr = register_memory(lab.a().pd.get(), range.data(), HugeRange::kBytes, 0);
  must(mr.get(), "ibv_reg_mr of almost 2 GiB");
  const ibv_sge sge{reinterpret_cast<uintptr_t>(range.data()), HugeRange::kBytes, mr->lkey};
  ibv_sge sges[2] = {sge, sge};
  SendRequest request(IBV_WR_RDMA_WRITE, 1, sge);
  request.remote(link.b.memory.address(), link.b.mr->rkey);
  request.wr.sg_list = sges;
  request.wr.num_sge = 2;
  const int rc = post_send(link.a.qp.get(), request.wr);
  expect_errno(rc, {0, EINVAL}, "posting a message of almost 4 GiB");
  if (rc == 0) expect_completion(link.a.send_cq.get(), 1, {IBV_WC_LOC_LEN_ERR});
}

constexpr Row kLocalMemoryRows[] = {
    {"WRITE with a bad lkey", write_with_bad_lkey},
    {"SEND with an lkey never given", send_with_lkey_never_given},
    {"WRITE from one byte past the region", write_one_byte_past_the_region},
    {"WRITE from one byte before the region", write_from_before_the_region},
    {"WRITE from a range that wraps", write_from_range_that_wraps},
    {"WRITE whose second SGE is bad", second_sge_bad},
    {"WRITE with the lkey of a deregistered region", write_after_dereg},
    {"WRITE with the lkey of another PD's region", write_from_region_of_other_pd},
    {"READ into a region without LOCAL_WRITE", read_into_region_without_local_write},
    {"WRITE from memory unmapped after registration",
     [](Lab& lab) { write_from_unmapped_region(lab, kBytes); }},
    {"WRITE of 8 bytes from memory unmapped after registration",
     [](Lab& lab) { write_from_unmapped_region(lab, 8); }},
    {"READ into memory unmapped after registration", read_into_unmapped_region},
    {"message longer than the port's max_msg_sz", message_longer_than_the_port_allows},
};

}  // namespace

std::span<const Row> registration_rows() { return kRegistrationRows; }
std::span<const Row> local_memory_rows() { return kLocalMemoryRows; }

}  // namespace rocemu::e2e
