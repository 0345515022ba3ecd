#include "tests/unit/verbs_shim/fake_nic.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "verbs_shim/exchange/message_socket.h"

namespace fs = std::filesystem;

void FakeNic::Memory::make(size_t size) {
  fd = memfd_create("fake-nic", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) throw std::runtime_error("memfd");
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) throw std::runtime_error("mmap");
  address = static_cast<uint8_t*>(mapped);
  bytes = size;
}

FakeNic::Memory::~Memory() {
  if (address != nullptr) munmap(address, bytes);
  if (fd >= 0) close(fd);
}

void FakeNic::make_sysfs(const std::string& directory) {
  const auto put = [](const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  };
  const fs::path verbs = fs::path(directory) / ROCEMU_SYSFS_NAME / "class/infiniband_verbs";
  put(verbs / "abi_version", "6");
  put(verbs / "uverbs0/ibdev", "rocemu0");
  put(verbs / "uverbs0/dev", "231:192");
  put(verbs / "uverbs0/abi_version", "1");
  const fs::path device = fs::path(directory) / ROCEMU_SYSFS_NAME / "class/infiniband/rocemu0";
  put(device / "node_type", "1: CA");
  put(device / "node_guid", "0200:00ff:fe00:0001");
  put(device / ROCEMU_SYSFS_MARKER, "0");
}

FakeNic::FakeNic(std::string directory) : directory_(std::move(directory)) {
  doorbells_.make(sizeof(rocemu_doorbell_page));
  engine_.make(sizeof(rocemu_engine_page));
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = directory_ + "/" + ROCEMU_SOCKET_NAME;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  unlink(path.c_str());
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_, 4) != 0) {
    throw std::runtime_error("listen on " + path);
  }
  thread_ = std::thread([this] { serve(); });
}

FakeNic::~FakeNic() {
  die();
  close(listener_);
  close(stop_fd_);
  close(wake_fd_);
  unlink((directory_ + "/" + ROCEMU_SOCKET_NAME).c_str());
}

void FakeNic::die() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = write(stop_fd_, &one, sizeof(one));
  thread_.join();
  if (connection_ >= 0) close(connection_);
  if (async_fd_ >= 0) close(async_fd_);
  connection_ = async_fd_ = -1;
  for (auto& [handle, fd] : channels_) close(fd);
  channels_.clear();
}

void FakeNic::serve() {
  while (true) {
    pollfd waits[] = {{stop_fd_, POLLIN, 0}, {listener_, POLLIN, 0}, {connection_, POLLIN, 0}};
    if (poll(waits, 3, -1) < 0) continue;
    if (waits[0].revents != 0) return;
    if (waits[1].revents != 0 && connection_ < 0) {
      connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    }
    if (waits[2].revents == 0) continue;
    std::lock_guard lock(mutex_);
    if (answer(connection_)) continue;
    close(connection_);
    close(async_fd_);
    connection_ = async_fd_ = -1;
    cqs_.clear();
    qps_.clear();
  }
}

bool FakeNic::reply(int fd, const rocemu_header& request, rocemu_header* header, size_t bytes,
                    int status, std::vector<int> fds) {
  const size_t length = status == 0 ? bytes : sizeof(*header);
  header->op = request.op;
  header->cookie = request.cookie;
  header->status = status;
  header->reserved = 0;
  header->length = static_cast<uint32_t>(length);
  if (status != 0) fds.clear();
  return rocemu::exchange::send_message(fd, header, length, {fds.data(), fds.size()});
}

bool FakeNic::answer(int fd) {
  alignas(8) char buffer[ROCEMU_MESSAGE_MAX] = {};
  std::vector<int> fds;
  const ssize_t got =
      rocemu::exchange::receive_message(fd, buffer, sizeof(buffer), 0, [&](int received) {
        fds.push_back(received);
      }).length_bytes;
  const auto& request = *reinterpret_cast<rocemu_header*>(buffer);
  if (got < static_cast<ssize_t>(sizeof(request)) || request.length != got) return false;
  ++requests_[request.op];
  const auto body = [&]<typename T>(T*) -> const T& { return *reinterpret_cast<T*>(buffer); };
  const auto handle = body(static_cast<rocemu_handle_message*>(nullptr)).handle;
  rocemu_handle_message made = {};
  switch (request.op) {
    case ROCEMU_OP_HELLO: {
      rocemu_hello_reply answer = {};
      const auto& hello = body(static_cast<rocemu_hello*>(nullptr));
      if (hello.magic != ROCEMU_ABI_MAGIC || fds.empty()) return false;
      const auto* probe = reinterpret_cast<const uint64_t*>(hello.probe_address);
      if (*probe != hello.probe_value) return false;
      async_fd_ = fds[0];
      if (fds.size() > 1) close(fds[1]);
      answer.abi_version = ROCEMU_ABI_VERSION;
      answer.max_doorbells = 64;
      answer.num_comp_vectors = 2;
      return reply(fd, request, &answer.header, sizeof(answer), 0,
                   {doorbells_.fd, engine_.fd, wake_fd_});
    }
    case ROCEMU_OP_QUERY_DEVICE: {
      rocemu_device_attr answer = {};
      std::strcpy(answer.fw_ver, "7.8.9");
      answer.max_qp = 64;
      answer.max_cqe = 1024;
      answer.max_sge = 4;
      answer.phys_port_cnt = 1;
      answer.atomic_cap = IBV_ATOMIC_HCA;
      return reply(fd, request, &answer.header, sizeof(answer), 0);
    }
    case ROCEMU_OP_CONTEXT_TICKET: {
      const int ticket = memfd_create("ticket", MFD_CLOEXEC);
      const bool replied = reply(fd, request, &made.header, sizeof(made), 0, {ticket});
      close(ticket);
      return replied;
    }
    case ROCEMU_OP_QUERY_DEVICE_EX: {
      rocemu_device_attr_ex answer = {};
      answer.max_dm_size = 4096;
      answer.odp_general_caps = IBV_ODP_SUPPORT;
      return reply(fd, request, &answer.header, sizeof(answer), 0);
    }
    case ROCEMU_OP_QUERY_PORT: {
      rocemu_port_attr answer = {};
      answer.state = IBV_PORT_ACTIVE;
      answer.gid_tbl_len = 16;
      const auto port = body(static_cast<rocemu_query_port*>(nullptr)).port_num;
      return reply(fd, request, &answer.header, sizeof(answer), port == 1 ? 0 : EINVAL);
    }
    case ROCEMU_OP_REG_MR: {
      rocemu_reg_mr_reply answer = {};
      answer.mr = next_handle_++;
      answer.lkey = 0x100 + answer.mr;
      answer.rkey = 0x200 + answer.mr;
      return reply(fd, request, &answer.header, sizeof(answer), 0);
    }
    case ROCEMU_OP_CREATE_CHANNEL:
      made.handle = next_handle_++;
      channels_[made.handle] = fds.at(0);
      return reply(fd, request, &made.header, sizeof(made), 0);
    case ROCEMU_OP_DESTROY_CHANNEL:
      close(channels_.at(handle));
      channels_.erase(handle);
      return reply(fd, request, &made.header, sizeof(made), 0);
    case ROCEMU_OP_CREATE_CQ: {
      const auto& wish = body(static_cast<rocemu_create_cq*>(nullptr));
      rocemu_create_cq_reply answer = {};
      answer.cq = next_handle_++;
      Queue& cq = cqs_[answer.cq];
      cq.entries = answer.entries = std::bit_ceil(wish.cqe);
      cq.channel = wish.channel;
      if (!fds.empty()) {
        cq.channel = answer.channel = next_handle_++;
        channels_[answer.channel] = fds.at(0);
      }
      cq.user_pointer = wish.user_pointer;
      cq.memory.make(ROCEMU_CQ_RING_OFFSET + cq.entries * sizeof(rocemu_cqe));
      answer.memory_bytes = cq.memory.bytes;
      return reply(fd, request, &answer.header, sizeof(answer), 0, {cq.memory.fd});
    }
    case ROCEMU_OP_CREATE_QP: {
      const auto& wish = body(static_cast<rocemu_create_qp*>(nullptr));
      rocemu_create_qp_reply answer = {};
      answer.qp = next_handle_++;
      answer.qp_num = answer.qp + 0x1000;
      answer.doorbell = answer.qp;
      answer.sq_entries = std::bit_ceil(wish.max_send_wr);
      answer.rq_entries = std::bit_ceil(wish.max_recv_wr);
      answer.max_send_sge = answer.max_recv_sge = 4;
      answer.max_inline_data = 64;
      answer.sq_stride_bytes = answer.rq_stride_bytes = 128;
      answer.sq_offset_bytes = sizeof(rocemu_queue_header);
      answer.rq_offset_bytes = answer.sq_offset_bytes + answer.sq_entries * 128;
      answer.memory_bytes = answer.rq_offset_bytes + answer.rq_entries * 128;
      Queue& qp = qps_[answer.qp];
      qp.qp = wish;
      qp.entries = answer.sq_entries;
      qp.stride = answer.sq_stride_bytes;
      qp.user_pointer = wish.user_pointer;
      qp.memory.make(answer.memory_bytes);
      return reply(fd, request, &answer.header, sizeof(answer), 0, {qp.memory.fd});
    }
    case ROCEMU_OP_MODIFY_QP: {
      const auto& wish = body(static_cast<rocemu_modify_qp*>(nullptr));
      Queue& qp = qps_.at(wish.qp);
      qp.attr = wish.attr;
      if ((wish.attr_mask & IBV_QP_STATE) != 0) qp.state = wish.attr.qp_state;
      reinterpret_cast<rocemu_queue_header*>(qp.memory.address)->qp_state = qp.state;
      made.handle = qp.state;
      return reply(fd, request, &made.header, sizeof(made), 0);
    }
    case ROCEMU_OP_QUERY_QP: {
      rocemu_query_qp_reply answer = {};
      answer.attr = qps_.at(handle).attr;
      return reply(fd, request, &answer.header, sizeof(answer), 0);
    }
    case ROCEMU_OP_DESTROY_CQ:
    case ROCEMU_OP_DESTROY_QP: {
      auto& queues = request.op == ROCEMU_OP_DESTROY_CQ ? cqs_ : qps_;
      rocemu_destroy_events_reply answer = {};
      answer.comp_events = queues.at(handle).comp_events;
      answer.async_events = queues.at(handle).async_events;
      queues.erase(handle);
      return reply(fd, request, &answer.header, sizeof(answer), 0);
    }
    default:
      made.handle = next_handle_++;
      return reply(fd, request, &made.header, sizeof(made), 0);
  }
}

void FakeNic::complete(Queue& cq, const rocemu_cqe& entry) {
  auto& header = *reinterpret_cast<rocemu_cq_header*>(cq.memory.address);
  auto* slots = reinterpret_cast<rocemu_cqe*>(cq.memory.address + ROCEMU_CQ_RING_OFFSET);
  const uint32_t producer = header.producer;
  slots[producer & (cq.entries - 1)] = entry;
  __atomic_store_n(&header.producer, producer + 1, __ATOMIC_RELEASE);
  if (__atomic_exchange_n(&header.arm, 0u, __ATOMIC_SEQ_CST) == ROCEMU_CQ_UNARMED) return;
  const int fd = channels_.at(cq.channel);
  if (write(fd, &cq.user_pointer, sizeof(cq.user_pointer)) > 0) ++cq.comp_events;
}

unsigned FakeNic::complete_sends() {
  std::lock_guard lock(mutex_);
  unsigned count = 0;
  for (auto& [handle, qp] : qps_) {
    auto& header = *reinterpret_cast<rocemu_queue_header*>(qp.memory.address);
    const uint32_t producer = __atomic_load_n(&header.sq_producer, __ATOMIC_ACQUIRE);
    for (; qp.consumed != producer; ++qp.consumed, ++count) {
      const uint8_t* slot =
          qp.memory.address + sizeof(header) + (qp.consumed & (qp.entries - 1)) * size_t{qp.stride};
      rocemu_send_wqe wqe;
      std::memcpy(&wqe, slot, sizeof(wqe));
      sent.push_back(wqe);
      if ((wqe.flags & ROCEMU_SEND_INLINE) != 0) {
        inline_payload.emplace_back(reinterpret_cast<const char*>(slot + sizeof(wqe)),
                                    wqe.inline_bytes);
      }
      if ((wqe.flags & ROCEMU_SEND_SIGNALED) == 0) continue;
      rocemu_cqe entry = {};
      entry.wr_id = wqe.wr_id;
      entry.qp_num = handle + 0x1000;
      entry.byte_length = 77;
      entry.timestamp_ns = 123456789;
      complete(cqs_.at(qp.qp.send_cq), entry);
    }
    __atomic_store_n(&header.sq_consumer, qp.consumed, __ATOMIC_RELEASE);
  }
  return count;
}

void FakeNic::send_async(uint64_t object, uint32_t event_type) {
  std::lock_guard lock(mutex_);
  rocemu_async_event event = {};
  event.element = object;
  event.event_type = event_type;
  if (write(async_fd_, &event, sizeof(event)) != sizeof(event)) return;
  for (auto* queues : {&cqs_, &qps_}) {
    for (auto& [handle, queue] : *queues) queue.async_events += queue.user_pointer == object;
  }
}

unsigned FakeNic::doorbells_rung() {
  auto& page = *reinterpret_cast<rocemu_doorbell_page*>(doorbells_.address);
  if (__atomic_exchange_n(&page.groups[0].summary, uint64_t{0}, __ATOMIC_ACQ_REL) == 0) return 0;
  const uint64_t bits =
      __atomic_exchange_n(&page.groups[0].words[0], uint64_t{0}, __ATOMIC_ACQ_REL);
  return static_cast<unsigned>(std::popcount(bits));
}

unsigned FakeNic::requests(rocemu_op op) {
  std::lock_guard lock(mutex_);
  return requests_[op];
}
