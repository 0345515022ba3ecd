// What objects belong to: parent and thread domains, XRC domains known by a file, and services that
// a RoCE device may not have (ibv_alloc_parent_domain(3), ibv_open_xrcd(3), ibv_create_qp(3)).
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

int dealloc_td(ibv_td* td) { return ibv_dealloc_td(td); }
using TdPtr = std::unique_ptr<ibv_td, Destroyer<&dealloc_td>>;

void parent_domain(Lab& lab) {
  ibv_context* context = lab.b().context.get();
  ibv_td_init_attr td_init{};
  TdPtr td(ibv_alloc_td(context, &td_init));
  if (!td && errno == EOPNOTSUPP) throw Skipped("the device has no thread domains");
  must(td.get(), "ibv_alloc_td");
  PdPtr pd(must(ibv_alloc_pd(context), "ibv_alloc_pd"));
  ibv_parent_domain_init_attr init{};
  expect_refused(PdPtr(ibv_alloc_parent_domain(context, &init)), {EINVAL},
                 "a parent domain of no PD");
  init.pd = pd.get();
  init.comp_mask = 1u << 20;
  expect_refused(PdPtr(ibv_alloc_parent_domain(context, &init)), {EINVAL, EOPNOTSUPP},
                 "a parent domain with an unknown comp_mask");
  init.comp_mask = 1u << 2;  // ALLOW_CC_UNPROTECTED_ALLOC of rdma-core 64
  expect_refused(PdPtr(ibv_alloc_parent_domain(context, &init)), {EOPNOTSUPP},
                 "a parent domain of confidential memory");
  init.comp_mask = 0;
  init.td = td.get();
  {
    const PdPtr parent(must(ibv_alloc_parent_domain(context, &init), "ibv_alloc_parent_domain"));
    expect_errno(ibv_dealloc_pd(pd.get()), {EBUSY}, "ibv_dealloc_pd under a parent domain");
    expect_errno(ibv_dealloc_td(td.get()), {EBUSY}, "ibv_dealloc_td under a parent domain");
    EndOptions options;
    options.pd = parent.get();
    Ends ends{make_end(lab.a(), {}), make_end(lab.b(), options)};
    connect(ends.a, ends.b);
    post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 8));
    post(ends.a, IBV_WR_SEND, 2, ends.a.sge(0, 8), ends.b);
    expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
    expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
  }
}

// A CQ whose parent domain has no memory for a larger one has been resized elsewhere.
void no_place_for_a_larger_queue(Lab& lab) {
  ibv_context* const context = lab.b().context.get();
  static bool has_memory;
  has_memory = true;
  ibv_parent_domain_init_attr init{};
  init.pd = lab.b().pd.get();
  init.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  init.alloc = [](ibv_pd*, void*, size_t, size_t, uint64_t) -> void* {
    return has_memory ? IBV_ALLOCATOR_USE_DEFAULT : nullptr;
  };
  init.free = [](ibv_pd*, void*, void*, uint64_t) {};
  const PdPtr parent(ibv_alloc_parent_domain(context, &init));
  if (!parent && errno == EOPNOTSUPP) throw Skipped("the device has no parent domains");
  must(parent.get(), "ibv_alloc_parent_domain");
  ibv_cq_init_attr_ex cq_init{};
  cq_init.cqe = 16;
  cq_init.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  cq_init.parent_domain = parent.get();
  const CqPtr cq(ibv_cq_ex_to_cq(must(ibv_create_cq_ex(context, &cq_init), "ibv_create_cq_ex")));
  EndOptions options;
  options.recv_cq = cq.get();
  Ends ends{make_end(lab.a(), {}), make_end(lab.b(), options)};
  connect(ends.a, ends.b);
  has_memory = false;
  expect_refused(CqPtr(ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &cq_init))), {ENOMEM},
                 "a CQ for which the allocator has no memory");
  const int error = ibv_resize_cq(cq.get(), 64);
  if (error != 0 && error != ENOMEM) fail_errno(error, "ibv_resize_cq");
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 8));
  post(ends.a, IBV_WR_SEND, 2, ends.a.sge(0, 8), ends.b);
  expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
  expect_completion(cq.get(), 1, {IBV_WC_SUCCESS});
}

// A program that has no descriptor left is refused what needs one here, and keeps all that it has.
void no_descriptor_left(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  ibv_context* const context = lab.b().context.get();
  rlimit limit{};
  must(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  const int lowest = dup(context->async_fd);
  close(lowest);
  const rlimit full{static_cast<rlim_t>(lowest), limit.rlim_max};
  must(setrlimit(RLIMIT_NOFILE, &full), "setrlimit");
  const CqPtr cq(ibv_create_cq(context, 16, nullptr, nullptr, 0));
  const int error = errno;
  const int resized = ibv_resize_cq(ends.b.recv_cq.get(), 128);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (!cq && error != EMFILE) fail_errno(error, "ibv_create_cq without a descriptor");
  if (resized != 0 && resized != EMFILE) fail_errno(resized, "ibv_resize_cq without a descriptor");
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 8));
  post(ends.a, IBV_WR_SEND, 2, ends.a.sge(0, 8), ends.b);
  expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
  expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
}

// A file that is gone when the row ends.
class File {
 public:
  File() : fd_(mkstemp(path_)) {
    if (fd_ < 0) fail_errno(errno, "mkstemp");
  }
  ~File() {
    close(fd_);
    unlink(path_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  char path_[32] = "/tmp/verbs-xrcd-XXXXXX";
  int fd_;
};

ibv_xrcd* open_xrcd(const Device& device, int fd, int oflags) {
  ibv_xrcd_init_attr init{};
  init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  init.fd = fd;
  init.oflags = oflags;
  return ibv_open_xrcd(device.context.get(), &init);
}

void xrc_domain_of_a_file(Lab& lab) {
  const File file;
  expect_refused(XrcdPtr(open_xrcd(lab.b(), file.fd(), 0)), {EAGAIN, EINVAL, EOPNOTSUPP},
                 "opening a domain that is not there");
  const XrcdPtr first(open_xrcd(lab.b(), file.fd(), O_CREAT));
  if (!first && errno == EOPNOTSUPP) throw Skipped("the device has no XRC");
  must(first.get(), "ibv_open_xrcd with O_CREAT");
  expect_refused(XrcdPtr(open_xrcd(lab.b(), file.fd(), O_CREAT | O_EXCL)), {EINVAL},
                 "opening a domain that is there with O_EXCL");
  expect_refused(XrcdPtr(open_xrcd(lab.b(), 9999, O_CREAT)), {EBADF}, "opening by no file");
  expect_refused(XrcdPtr(open_xrcd(lab.b(), -1, 0)), {EINVAL}, "opening no file without O_CREAT");
  must(XrcdPtr(open_xrcd(lab.b(), file.fd(), 0)).get(), "opening a domain that is there");
}

// The domain of the file, opened by the device opened a second time, as another process would: a
// QP of the one is the other's by ibv_open_qp, and serves the other's SRQ.
void xrc_domain_shared(Lab& lab) {
  const File file;
  const Device second = open_device(lab.b().name(), lab.b().gid_index);
  const XrcdPtr first_xrcd(open_xrcd(lab.b(), file.fd(), O_CREAT));
  if (!first_xrcd && errno == EOPNOTSUPP) throw Skipped("the device has no XRC");
  must(first_xrcd.get(), "ibv_open_xrcd");
  const XrcdPtr second_xrcd(must(open_xrcd(second, file.fd(), O_CREAT), "ibv_open_xrcd"));

  EndOptions sending, receiving;
  sending.type = IBV_QPT_XRC_SEND;
  receiving.type = IBV_QPT_XRC_RECV;
  receiving.xrcd = first_xrcd.get();
  Ends ends{make_end(lab.a(), sending), make_end(lab.b(), receiving)};
  connect(ends.a, ends.b);

  const Memory memory(65536);
  const MrPtr mr = register_memory(second.pd.get(), memory.data(), memory.bytes(), kEveryRight);
  must(mr.get(), "ibv_reg_mr");
  const CqPtr cq(
      must(ibv_create_cq(second.context.get(), 4, nullptr, nullptr, 0), "ibv_create_cq"));
  ibv_srq_init_attr_ex init{};
  init.attr = {4, 1, 0};
  init.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD;
  init.srq_type = IBV_SRQT_XRC;
  init.xrcd = second_xrcd.get();
  init.cq = cq.get();
  init.pd = second.pd.get();
  const SrqPtr srq(must(ibv_create_srq_ex(second.context.get(), &init), "ibv_create_srq_ex"));
  uint32_t number = 0;
  must(ibv_get_srq_num(srq.get(), &number), "ibv_get_srq_num");
  ibv_qp_open_attr opening{};
  opening.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  opening.qp_num = ends.b.qp->qp_num;
  opening.xrcd = second_xrcd.get();
  opening.qp_type = IBV_QPT_XRC_RECV;
  const QpPtr opened(must(ibv_open_qp(second.context.get(), &opening), "ibv_open_qp"));
  expect_state(opened.get(), IBV_QPS_RTS);

  post_srq_recv_ok(srq.get(), 1, {memory.address(), 100, mr->lkey});
  SendRequest request(IBV_WR_SEND, 2, ends.a.sge(0, 100));
  request.wr.qp_type.xrc.remote_srqn = number;
  post_ok(ends.a.qp.get(), request);
  expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
  expect_completion(cq.get(), 1, {IBV_WC_SUCCESS});
  opening.qp_num ^= 0x800;
  expect_refused(QpPtr(ibv_open_qp(second.context.get(), &opening)), {EINVAL},
                 "ibv_open_qp of no QP");
}

QpPtr make_qp(const Device& device, ibv_qp_type type, ibv_cq* cq) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = {4, 4, 1, 1, 0};
  init.qp_type = type;
  return QpPtr(ibv_create_qp(device.pd.get(), &init));
}

// A program needs CAP_NET_RAW for it where there is such a thing.
void raw_packets(Lab& lab) {
  const CqPtr cq(
      must(ibv_create_cq(lab.a().context.get(), 4, nullptr, nullptr, 0), "ibv_create_cq"));
  const QpPtr raw = make_qp(lab.a(), IBV_QPT_RAW_PACKET, cq.get());
  expect_errno(raw ? 0 : errno, {0, EOPNOTSUPP, EPERM}, "ibv_create_qp of raw packets");
  expect_refused(make_qp(lab.a(), static_cast<ibv_qp_type>(77), cq.get()), {EINVAL, EOPNOTSUPP},
                 "ibv_create_qp of no service");
}

void queue_pair_without_queues(Lab& lab) {
  ibv_qp_init_attr init{};
  init.cap = {4, 4, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  expect_refused(QpPtr(ibv_create_qp(lab.a().pd.get(), &init)), {EINVAL},
                 "ibv_create_qp without CQs");
}

}  // namespace

std::span<const Row> domain_rows() {
  static constexpr Row kRows[] = {
      {"domains: parent and thread domains", parent_domain},
      {"domains: no place for a larger CQ", no_place_for_a_larger_queue},
      {"a program without a descriptor to spare", no_descriptor_left},
      {"domains: an XRC domain known by a file", xrc_domain_of_a_file},
      {"domains: an XRC domain, its QP and SRQ of two openings", xrc_domain_shared},
      {"QPs of raw packets and of no service", raw_packets},
      {"QPs without CQs", queue_pair_without_queues},
  };
  return kRows;
}

}  // namespace rocemu::e2e
