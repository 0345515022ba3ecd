// Queues, events and objects in numbers that no turn has time for.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/hostile/deeds.h"
#include "tests/e2e/tools/lab.h"
#include "verbs_shim/abi/rings.h"

namespace rocemu::e2e {
namespace {

LinkOptions deep(const ibv_device_attr& attr) {
  LinkOptions options;
  options.max_recv_wr = options.max_send_wr = static_cast<uint32_t>(attr.max_qp_wr);
  options.cqe = static_cast<int>(std::min(attr.max_cqe, 2 * attr.max_qp_wr));
  return options;
}

// Queues full of requests are flushed, again and again.
void flush_long_queues(const std::string& device) {
  const Lab lab(open_device(device, 1), open_device(device, 1));
  const LinkOptions options = deep(lab.a().attr);
  std::vector<ibv_wc> completions(1024);
  for (;;) {
    Link link = lab.make_link(options);
    for (uint32_t i = 0; i < options.max_recv_wr; ++i)
      if (ibv_sge sge = link.a.sge(0, 8); post_recv(link.a.qp.get(), i, {&sge, 1}) != 0) break;
    must(change_to(IBV_QPS_ERR).apply(link.a.qp.get()), "ibv_modify_qp to ERR");
    while (ibv_poll_cq(link.a.recv_cq.get(), 1024, completions.data()) > 0) continue;
  }
}

void resize_huge_rings(const std::string& device) {
  const Device own = open_device(device, 1);
  const CqPtr cq(must(ibv_create_cq(own.context.get(), 1, nullptr, nullptr, 0), "ibv_create_cq"));
  for (int big = 1;; big = 1 - big) ibv_resize_cq(cq.get(), big == 1 ? own.attr.max_cqe : 1);
}

// A program that ends with much that it made, and then the next one.
void end_with_many_objects(const std::string& device) {
  for (;;) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const Device own = open_device(device, 1);
      const Memory memory(4096);
      for (int i = 0; i < 10'000; ++i)
        register_memory(own.pd.get(), memory.data(), 4096, kAllRights).release();
      ibv_cq* const cq = must(ibv_create_cq(own.context.get(), 64, nullptr, nullptr, 0), "CQ");
      ibv_qp_init_attr init{};
      init.send_cq = init.recv_cq = cq;
      init.qp_type = IBV_QPT_RC;
      init.cap = {16, 16, 1, 1, 0};
      for (int i = 0; i < 1000; ++i)
        if (ibv_create_qp(own.pd.get(), &init) == nullptr) break;
      ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
  }
}

// This process's only one.
rocemu_doorbell_page& doorbell_page() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t address = 0;
    if (line.find("doorbells") != std::string::npos &&
        std::sscanf(line.c_str(), "%" SCNxPTR, &address) == 1)
      return *reinterpret_cast<rocemu_doorbell_page*>(address);
  }
  fail("no page of doorbells is mapped");
}

// Rings for all of many QPs, as fast as it can write.
void ring_for_all_queues(const std::string& device) {
  constexpr uint32_t kQueues = 4000;
  const Device own = open_device(device, 1);
  rocemu_doorbell_page& page = doorbell_page();
  ibv_cq* const cq = must(ibv_create_cq(own.context.get(), 64, nullptr, nullptr, 0), "CQ");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {1, 1, 1, 1, 0};
  uint32_t made = 0;
  const auto ring = [&] {
    rocemu_doorbell_group& group = page.groups[0];
    for (uint32_t word = 0; word < (made + 63) / 64; ++word)
      __atomic_store_n(&group.words[word], UINT64_MAX, __ATOMIC_SEQ_CST);
    __atomic_store_n(&group.summary, UINT64_MAX, __ATOMIC_SEQ_CST);
  };
  for (; made < kQueues && ibv_create_qp(own.pd.get(), &init) != nullptr; ++made) ring();
  if (made < 1000) fail("only %u QPs", made);
  for (;;) ring();
}

}  // namespace

std::span<const Deed> object_deeds() {
  static constexpr Deed kDeeds[] = {{"long-queues", nothing_missing, flush_long_queues},
                                    {"huge-rings", nothing_missing, resize_huge_rings},
                                    {"many-objects", nothing_missing, end_with_many_objects},
                                    {"doorbells", nothing_missing, ring_for_all_queues}};
  return kDeeds;
}

}  // namespace rocemu::e2e
