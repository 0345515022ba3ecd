#include "tests/e2e/tools/verbs_objects.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {

namespace {

std::atomic<int> destroy_failure_count{0};

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

size_t round_to_pages(size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

}  // namespace

void report_destroy_failure(int errno_value) noexcept {
  std::fprintf(stderr, "destroying a verbs object failed: %s\n", std::strerror(errno_value));
  destroy_failure_count.fetch_add(1);
}

int destroy_failures() noexcept { return destroy_failure_count.load(); }

Device open_device(const std::string& name, int gid_index) {
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> list(
      must(ibv_get_device_list(&count), "ibv_get_device_list"), &ibv_free_device_list);
  ibv_device* found = nullptr;
  for (int i = 0; i < count && found == nullptr; ++i) {
    if (name.empty() || name == ibv_get_device_name(list.get()[i])) found = list.get()[i];
  }
  if (found == nullptr) {
    fail("no RDMA device%s%s among %d", name.empty() ? "" : " named ", name.c_str(), count);
  }

  Device device;
  device.context.reset(must(ibv_open_device(found), "ibv_open_device"));
  must(ibv_query_device(device.context.get(), &device.attr), "ibv_query_device");
  must(ibv_query_port(device.context.get(), kPort, &device.port), "ibv_query_port");
  if (device.port.state != IBV_PORT_ACTIVE) fail("%s: port %d is not active", device.name(), kPort);
  if (gid_index < 0 || gid_index >= device.port.gid_tbl_len) {
    fail("%s: no GID index %d", device.name(), gid_index);
  }
  device.gid_index = static_cast<uint8_t>(gid_index);
  if (ibv_query_gid(device.context.get(), kPort, gid_index, &device.gid) != 0) {
    fail_errno(errno, "ibv_query_gid");
  }
  device.pd.reset(must(ibv_alloc_pd(device.context.get()), "ibv_alloc_pd"));
  return device;
}

std::pair<Device, Device> open_devices(const std::string& a, const std::string& b, int gid_index) {
  Device first = open_device(a, gid_index);
  return {std::move(first), open_device(b.empty() ? a : b, gid_index)};
}

Memory::Memory(size_t bytes) : bytes_(bytes) {
  const size_t whole = round_to_pages(bytes) + 2 * page_bytes();
  void* base = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) fail_errno(errno, "mmap");
  data_ = static_cast<std::byte*>(base) + page_bytes();
  if (mprotect(data_, round_to_pages(bytes), PROT_READ | PROT_WRITE) != 0) {
    fail_errno(errno, "mprotect");
  }
}

Memory::~Memory() {
  if (data_ == nullptr) return;
  if (!unmapped_) munmap(data_, round_to_pages(bytes_));
  munmap(data_ - page_bytes(), page_bytes());
  munmap(data_ + round_to_pages(bytes_), page_bytes());
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      unmapped_(other.unmapped_) {}

void Memory::unmap() {
  if (munmap(data_, round_to_pages(bytes_)) != 0) fail_errno(errno, "munmap");
  unmapped_ = true;
}

MrPtr register_memory(ibv_pd* pd, const void* address, size_t bytes, unsigned access) {
  return MrPtr(ibv_reg_mr(pd, const_cast<void*>(address), bytes, static_cast<int>(access)));
}

MrPtr register_memory_at(ibv_pd* pd, const void* address, size_t bytes, uint64_t iova,
                         unsigned access) {
  return MrPtr(
      ibv_reg_mr_iova(pd, const_cast<void*>(address), bytes, iova, static_cast<int>(access)));
}

QpChange change_to(ibv_qp_state state) {
  QpChange change;
  change.attr.qp_state = state;
  change.mask = IBV_QP_STATE;
  return change;
}

QpChange change_to_init(const RcOptions& options) {
  QpChange change = change_to(IBV_QPS_INIT);
  change.attr.pkey_index = 0;
  change.attr.port_num = kPort;
  change.attr.qp_access_flags = options.access;
  change.mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  return change;
}

QpChange change_to_rtr(const RcOptions& options, const Device& own, const ibv_gid& peer_gid,
                       uint16_t peer_lid, uint32_t peer_qpn) {
  QpChange change = change_to(IBV_QPS_RTR);
  ibv_ah_attr& ah = change.attr.ah_attr;
  ah.is_global = own.port.link_layer == IBV_LINK_LAYER_ETHERNET;
  ah.grh.dgid = peer_gid;
  ah.grh.sgid_index = own.gid_index;
  ah.grh.hop_limit = 64;
  ah.dlid = peer_lid;
  ah.port_num = kPort;
  change.attr.path_mtu = options.path_mtu;
  change.attr.dest_qp_num = peer_qpn;
  change.attr.rq_psn = options.rq_psn;
  change.attr.max_dest_rd_atomic = options.max_dest_rd_atomic;
  change.attr.min_rnr_timer = options.min_rnr_timer;
  change.mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  return change;
}

QpChange change_to_rts(const RcOptions& options) {
  QpChange change = change_to(IBV_QPS_RTS);
  change.attr.timeout = options.timeout;
  change.attr.retry_cnt = options.retry_cnt;
  change.attr.rnr_retry = options.rnr_retry;
  change.attr.sq_psn = options.sq_psn;
  change.attr.max_rd_atomic = options.max_rd_atomic;
  change.mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                 IBV_QP_MAX_QP_RD_ATOMIC;
  return change;
}

ibv_qp_state query_state(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  must(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
  return attr.qp_state;
}

void connect_one(ibv_qp* qp, const Device& own, const RcOptions& options, const ibv_gid& peer_gid,
                 uint16_t peer_lid, uint32_t peer_qpn) {
  must(change_to_init(options).apply(qp), "ibv_modify_qp to INIT");
  must(change_to_rtr(options, own, peer_gid, peer_lid, peer_qpn).apply(qp), "ibv_modify_qp to RTR");
  must(change_to_rts(options).apply(qp), "ibv_modify_qp to RTS");
}

void connect_pair(ibv_qp* a, const Device& device_a, ibv_qp* b, const Device& device_b,
                  const RcOptions& options) {
  connect_one(a, device_a, options, device_b.gid, device_b.port.lid, b->qp_num);
  RcOptions reversed = options;
  std::swap(reversed.sq_psn, reversed.rq_psn);
  connect_one(b, device_b, reversed, device_a.gid, device_a.port.lid, a->qp_num);
}

std::optional<ibv_wc> poll_one(ibv_cq* cq, std::chrono::milliseconds patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  do {
    ibv_wc wc{};
    const int count = ibv_poll_cq(cq, 1, &wc);
    if (count < 0) fail("ibv_poll_cq returned %d", count);
    if (count == 1) return wc;
    sched_yield();
  } while (Clock::now() < deadline);
  return std::nullopt;
}

std::string wc_text(const ibv_wc& wc) {
  char text[256];
  std::snprintf(text, sizeof text, "%s, wr_id %#llx, opcode %d, byte_len %u, qp_num %#x",
                ibv_wc_status_str(wc.status), static_cast<unsigned long long>(wc.wr_id), wc.opcode,
                wc.byte_len, wc.qp_num);
  return text;
}

}  // namespace rocemu::e2e
