// The checker as the provider sees it: its hooks, told of objects that exist in this test alone.
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "verbs_shim/abi/check.h"

namespace {

constexpr uint32_t kDepth = 4;
constexpr uint32_t kLkey = 5;

const char* findings_folder() {
  static const std::string folder = [] {
    std::string name = "/tmp/rocemu-checker-test-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    ::setenv(ROCEMU_ENV_CHECK, "all,-leaks", 1);
    ::setenv(ROCEMU_ENV_CHECK_DIR, name.c_str(), 1);
    return name;
  }();
  return folder.c_str();
}

bool cq_has_completions = false;

const rocemu_check_hooks& start() {
  static const rocemu_check_services services = {
      [](ibv_context*, uint32_t, void*, size_t, void*, size_t) { return ENOSYS; },
      [](ibv_cq*) { return cq_has_completions ? 1 : 0; }};
  findings_folder();
  return *rocemu_check_start_v1(&services);
}

// Where a verb is called, which the checker tells places apart by: in a function that is not
// inlined.
#define AT(verb) \
  const rocemu_check_call at = {verb, __builtin_return_address(0), __builtin_frame_address(0)}

// A QP with a CQ of its own on a device of its own.
class World {
 public:
  explicit World(uint32_t cq_entries = 64, ibv_qp_type type = IBV_QPT_RC) : hooks(start()) {
    AT("ibv_open_device");
    std::strcpy(device.name, "rocemu9");
    context.device = &device;
    const ibv_device_attr limits = {};
    hooks.context_opened(&at, &context, &limits, 0);
    pd.context = &context;
    hooks.made(&at, ROCEMU_CHECK_PD, &context, &pd, nullptr, 1);
    cq.context = &context;
    cq.cqe = static_cast<int>(cq_entries);
    cq_shadow = hooks.cq_made(&at, &cq, nullptr, cq_entries, 0);
    qp.context = &context;
    qp.pd = &pd;
    qp.send_cq = qp.recv_cq = &cq;
    qp.qp_num = 17;
    qp.qp_type = type;
    ibv_qp_init_attr_ex asked = {};
    asked.cap = {kDepth, kDepth, 1, 1, 16};
    const rocemu_check_qp made = {&qp, &asked, &asked.cap};
    qp_shadow = hooks.qp_made(&at, &made);
    REQUIRE(qp_shadow != nullptr);
    move_to(IBV_QPS_RTS);
    before_ = lines();
  }

  [[gnu::noinline]] void move_to(ibv_qp_state state) {
    AT("ibv_modify_qp");
    ibv_qp_attr attr = {};
    attr.qp_state = state;
    hooks.qp_modifying(&at, qp_shadow, &attr, IBV_QP_STATE);
    qp.state = state;
    hooks.qp_modified(&at, qp_shadow, &attr, IBV_QP_STATE, 0);
  }

  // What the NIC says is `error`, and then of the first one.
  [[gnu::noinline]] void post(uint64_t wr_id, unsigned flags, ibv_wr_opcode opcode = IBV_WR_SEND,
                              int error = 0) {
    ibv_send_wr wr = {};
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.send_flags = flags;
    post(wr, error);
  }
  [[gnu::noinline]] void post(ibv_send_wr& wr, int error = 0) {
    AT("ibv_post_send");
    hooks.sends_posting(&at, qp_shadow, &wr);
    hooks.sends_posted(&at, qp_shadow, &wr, error, error == 0 ? nullptr : &wr);
  }
  // Into registered `memory`, where that is given.
  [[gnu::noinline]] void post_receive(uint64_t wr_id, void* memory = nullptr, int error = 0) {
    AT("ibv_post_recv");
    ibv_sge sge = {reinterpret_cast<uintptr_t>(memory), 64, kLkey};
    ibv_recv_wr wr = {};
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = memory == nullptr ? 0 : 1;
    hooks.receives_posting(&at, qp_shadow, &wr);
    hooks.receives_posted(&at, qp_shadow, &wr, error, error == 0 ? nullptr : &wr);
  }
  [[gnu::noinline]] void register_memory(void* memory, size_t bytes) {
    AT("ibv_reg_mr");
    mr.context = &context;
    mr.pd = &pd;
    mr.addr = memory;
    mr.length = bytes;
    mr.lkey = kLkey;
    hooks.mr_made(&at, &mr, reinterpret_cast<uintptr_t>(memory), IBV_ACCESS_LOCAL_WRITE);
  }

  [[gnu::noinline]] ibv_wc poll(uint64_t wr_id, ibv_wc_opcode opcode,
                                ibv_wc_status status = IBV_WC_SUCCESS, uint32_t byte_len = 0) {
    AT("ibv_poll_cq");
    ibv_wc wc = {};
    wc.wr_id = wr_id;
    wc.opcode = opcode;
    wc.status = status;
    wc.qp_num = qp.qp_num;
    wc.byte_len = byte_len;
    hooks.polled(&at, cq_shadow, &wc, 1);
    return wc;
  }
  [[gnu::noinline]] void poll_nothing() {
    AT("ibv_poll_cq");
    hooks.polled(&at, cq_shadow, nullptr, 0);
  }

  [[gnu::noinline]] void destroy() {
    AT("ibv_destroy_qp");
    hooks.going(&at, ROCEMU_CHECK_QP, &qp);
    hooks.gone(&at, ROCEMU_CHECK_QP, &qp, 0);
  }

  [[gnu::noinline]] void free_block(uintptr_t address, size_t bytes) {
    AT("free");
    hooks.memory_going(&at, reinterpret_cast<void*>(address), bytes, "free");
  }

  // Names of what was found since the world is there.
  std::vector<std::string> found() const {
    std::vector<std::string> names;
    const std::vector<std::string> all = lines();
    for (size_t i = before_.size(); i < all.size(); ++i) {
      names.push_back(nlohmann::json::parse(all[i])["name"]);
    }
    return names;
  }

  const rocemu_check_hooks& hooks;
  ibv_device device = {};
  ibv_context context = {};
  ibv_pd pd = {};
  ibv_mr mr = {};
  ibv_cq cq = {};
  ibv_qp qp = {};
  void* cq_shadow = nullptr;
  void* qp_shadow = nullptr;

 private:
  static std::vector<std::string> lines() {
    std::vector<std::string> result;
    std::ifstream file(std::string(findings_folder()) + "/" ROCEMU_CHECK_FINDINGS_FILE);
    for (std::string line; std::getline(file, line);) result.push_back(line);
    return result;
  }
  std::vector<std::string> before_;
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a QP that is destroyed before its completion is polled", "[checker]") {
  World world;
  world.post(1, 0);
  world.post(2, IBV_SEND_SIGNALED);
  SECTION("is found") {
    world.destroy();
    CHECK(world.found() == Names{"destroyed-undrained"});
  }
  SECTION("is nothing when it was polled: unsignaled requests are over with it") {
    world.poll(2, IBV_WC_SEND);
    world.destroy();
    CHECK(world.found().empty());
  }
  SECTION("is nothing when the QP was reset, or has failed") {
    world.move_to(GENERATE(IBV_QPS_RESET, IBV_QPS_ERR));
    world.destroy();
    CHECK(world.found().empty());
  }
  SECTION("is nothing when the checker has lost sight of the queue") {
    world.poll(77, IBV_WC_SEND);
    world.destroy();
    CHECK(world.found().empty());
  }
}

TEST_CASE("a failed completion that may be of several requests", "[checker]") {
  constexpr uint64_t kOwner = 0x72000000;
  SECTION("leaves nothing to conclude") {
    World world(64, IBV_QPT_UD);
    world.post(0, 0);
    world.post(0, IBV_SEND_SIGNALED);
    world.poll(0, IBV_WC_SEND, IBV_WC_LOC_LEN_ERR);
    world.move_to(IBV_QPS_RTS);
    world.destroy();
    CHECK(world.found().empty());
  }
  SECTION("leaves nothing to conclude of the receives either") {
    World world(64, IBV_QPT_UD);
    world.post_receive(7);
    world.post(0, 0);
    world.post(0, IBV_SEND_SIGNALED);
    world.poll(0, IBV_WC_SEND, IBV_WC_LOC_LEN_ERR);
    world.move_to(IBV_QPS_RTS);
    world.post(7, IBV_SEND_SIGNALED);
    world.post(8, IBV_SEND_SIGNALED);
    world.poll(7, IBV_WC_SEND, IBV_WC_LOC_LEN_ERR);
    CHECK(world.found().empty());
  }
  SECTION("is not of the oldest where the QP has gone on after an error") {
    World world(64, IBV_QPT_UD);
    for (int i = 0; i < 2; ++i) world.post(0, IBV_SEND_SIGNALED);
    world.poll(0, IBV_WC_SEND, IBV_WC_LOC_LEN_ERR);
    world.move_to(IBV_QPS_RTS);
    world.post(0, 0);
    world.post(0, IBV_SEND_SIGNALED);
    world.poll(0, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
    world.poll(0, IBV_WC_SEND, IBV_WC_LOC_LEN_ERR);
    world.move_to(IBV_QPS_RTS);
    world.destroy();
    CHECK(world.found().empty());
  }
  SECTION("is of the oldest where one has failed before") {
    World world;
    world.post(1, IBV_SEND_SIGNALED);
    for (int i = 0; i < 2; ++i) world.post(kOwner, 0);
    world.poll(1, IBV_WC_SEND, IBV_WC_RETRY_EXC_ERR);
    world.poll(kOwner, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
    world.destroy();
    world.free_block(kOwner - 8, 64);
    world.poll_nothing();
    CHECK(world.found() == Names{"destroyed-undrained"});
  }
}

TEST_CASE("places of requests that are not posted any more", "[checker]") {
  alignas(64) static char memory[64];
  World world;
  world.register_memory(memory, sizeof(memory));
  SECTION("wait for nothing after the post was refused") {
    world.post_receive(1, memory, ENOMEM);
    world.post_receive(2);
    world.poll(2, IBV_WC_RECV);
  }
  SECTION("wait for nothing after the checker has lost sight of the queue") {
    if (GENERATE(true, false)) {
      world.post_receive(1, memory);
      world.poll(77, IBV_WC_RECV);
    } else {
      world.poll(77, IBV_WC_RECV);
      world.post_receive(1, memory);
    }
    world.move_to(IBV_QPS_RESET);
    world.move_to(IBV_QPS_RTS);
  }
  world.post_receive(3, memory);
  world.poll(3, IBV_WC_RECV, IBV_WC_SUCCESS, sizeof(memory));
  CHECK(world.found().empty());
}

TEST_CASE("what a flushed request belonged to, freed while its completion may stand", "[checker]") {
  constexpr uint64_t kOwner = 0x70000000;
  World world;
  world.post_receive(kOwner);
  world.move_to(IBV_QPS_ERR);
  SECTION("is found at the next poll, once") {
    world.destroy();
    world.free_block(kOwner - 8, 64);
    world.poll_nothing();
    CHECK(world.found() == Names{"destroyed-undrained"});
    world.poll_nothing();
    CHECK(world.found().size() == 1);
  }
  SECTION("is nothing when the request came back before") {
    world.poll(kOwner, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
    world.destroy();
    world.free_block(kOwner - 8, 64);
    world.poll_nothing();
    CHECK(world.found().empty());
  }
  SECTION("is nothing when the CQ was found empty after the QP was gone") {
    world.destroy();
    world.poll_nothing();
    world.free_block(kOwner - 8, 64);
    world.poll_nothing();
    CHECK(world.found().empty());
  }
  SECTION("is nothing when other memory was freed") {
    world.destroy();
    world.free_block(kOwner + 8, 64);
    world.poll_nothing();
    CHECK(world.found().empty());
  }
}

TEST_CASE("a failed send flushes the receives of reliable QPs alone", "[checker]") {
  constexpr uint64_t kOwner = 0x71000000;
  const auto type = GENERATE(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET);
  World world(64, type);
  world.post_receive(kOwner);
  world.post(1, IBV_SEND_SIGNALED);
  world.poll(1, IBV_WC_SEND, IBV_WC_LOC_LEN_ERR);
  world.destroy();
  world.free_block(kOwner - 8, 64);
  world.poll_nothing();
  CHECK(world.found() == (type == IBV_QPT_RC ? Names{"destroyed-undrained"} : Names{}));
}

TEST_CASE("a send queue in which nothing is signaled", "[checker]") {
  World world;
  SECTION("is found when it is over full") {
    for (uint64_t i = 0; i <= kDepth; ++i) world.post(i, 0);
    CHECK(world.found() == Names{"queue-full"});
  }
  SECTION("is found when it is full and refuses") {
    for (uint64_t i = 0; i < kDepth; ++i) world.post(i, 0);
    CHECK(world.found().empty());
    world.post(9, 0, IBV_WR_SEND, ENOMEM);
    CHECK(world.found() == Names{"queue-full"});
  }
  SECTION("is nothing with a signaled one in it") {
    for (uint64_t i = 0; i < kDepth; ++i) world.post(i, i == 1 ? unsigned{IBV_SEND_SIGNALED} : 0);
    world.post(9, 0, IBV_WR_SEND, ENOMEM);
    world.poll(1, IBV_WC_SEND);
    world.post(9, IBV_SEND_SIGNALED);
    CHECK(world.found().empty());
  }
}

TEST_CASE("more requests than the CQ has entries", "[checker]") {
  World world(/*cq_entries=*/3);
  for (uint64_t i = 0; i < 2; ++i) world.post_receive(i);
  world.post(10, IBV_SEND_SIGNALED);
  world.post(11, 0);
  CHECK(world.found().empty());
  SECTION("are found") {
    world.post(12, IBV_SEND_SIGNALED);
    CHECK(world.found() == Names{"cq-too-small"});
  }
  SECTION("are nothing when some were polled") {
    world.poll(0, IBV_WC_RECV);
    world.post(12, IBV_SEND_SIGNALED);
    world.poll(12, IBV_WC_SEND);
    world.post_receive(2);
    CHECK(world.found().empty());
  }
  SECTION("are nothing when they were refused") {
    world.post(12, IBV_SEND_SIGNALED, IBV_WR_SEND, EINVAL);
    CHECK(world.found().empty());
  }
}

TEST_CASE("failed completions have garbage where nothing has a meaning", "[checker]") {
  World world;
  world.post(1, IBV_SEND_SIGNALED);
  world.post_receive(1);
  const ibv_wc wc = world.poll(1, IBV_WC_SEND, IBV_WC_RETRY_EXC_ERR);
  CHECK(wc.wr_id == 1);
  CHECK(wc.status == IBV_WC_RETRY_EXC_ERR);
  CHECK(wc.qp_num == 17);
  CHECK(wc.byte_len == ROCEMU_GARBAGE_BYTE_LEN);
  uint32_t opcode = 0;  // no value of the enumeration
  std::memcpy(&opcode, &wc.opcode, sizeof(opcode));
  CHECK(opcode == ROCEMU_GARBAGE_OPCODE);
  CHECK(world.found().empty());
  ibv_sge sge = {0, wc.byte_len - 40, 1};
  ibv_send_wr again = {};
  again.sg_list = &sge;
  again.num_sge = 1;
  world.post(again);
  CHECK(world.found() == Names{"error-fields-read"});
}

TEST_CASE("an atomic at an odd address", "[checker]") {
  World world;
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.atomic.remote_addr = GENERATE(64, 68);
  world.post(wr);
  const bool is_odd = wr.wr.atomic.remote_addr % 8 != 0;
  CHECK(world.found() == (is_odd ? Names{"unaligned-atomic"} : Names{}));
}

TEST_CASE("requests that the QP's state does not take", "[checker]") {
  World world;
  world.move_to(IBV_QPS_RESET);
  world.qp.state = IBV_QPS_RTR;
  world.post(1, 0, IBV_WR_SEND, EINVAL);
  CHECK(world.found() == Names{"post-in-error"});
}

TEST_CASE("flushed requests that are polled late do not stop a QP that went on", "[checker]") {
  World world(64, IBV_QPT_UD);
  for (const uint64_t id : {1, 2}) world.post(id, IBV_SEND_SIGNALED);
  world.poll(1, IBV_WC_SEND, IBV_WC_LOC_PROT_ERR);
  world.move_to(IBV_QPS_RTS);
  for (const uint64_t id : {3, 4}) world.post(id, IBV_SEND_SIGNALED);
  world.poll(2, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
  // What comes after them does.
  const bool fails_again = GENERATE(false, true);
  if (fails_again) world.poll(3, IBV_WC_SEND, IBV_WC_LOC_PROT_ERR);
  world.destroy();
  CHECK(world.found() == (fails_again ? Names{} : Names{"destroyed-undrained"}));
}

TEST_CASE("an address handle that is destroyed early", "[checker]") {
  World world(64, IBV_QPT_UD);
  AT("ibv_create_ah");
  ibv_ah ah = {};
  ah.context = &world.context;
  const ibv_ah_attr attr = {};
  world.hooks.ah_made(&at, &ah, &attr);
  ibv_send_wr wr = {};
  wr.wr_id = 3;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud.ah = &ah;
  world.post(wr);
  const bool early = GENERATE(true, false);
  if (!early) world.poll(3, IBV_WC_SEND);
  world.hooks.going(&at, ROCEMU_CHECK_AH, &ah);
  world.hooks.gone(&at, ROCEMU_CHECK_AH, &ah, 0);
  CHECK(world.found() == (early ? Names{"ah-freed-early"} : Names{}));
}

TEST_CASE("a list without an end", "[checker]") {
  World world;
  ibv_send_wr wr = {};
  wr.next = &wr;
  world.post(wr, ENOMEM);
  world.post(5, IBV_SEND_SIGNALED);
  world.poll(5, IBV_WC_SEND);
  world.destroy();
  CHECK(world.found().empty());
}
