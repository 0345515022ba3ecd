// The detectors that ask the NIC: what each makes of its answers.
#include <infiniband/verbs.h>
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "verbs_shim/abi/check.h"
#include "verbs_shim/abi/inspect.h"

namespace {

constexpr uint32_t kDepth = 16;
constexpr uint64_t kAddress = 0x7f0000001000;

// What the NIC says.
rocemu_inspect_qp_reply facts;
std::vector<rocemu_nic_finding> nic_findings;
int nic_error = 0;

int control(ibv_context*, uint32_t op, void*, size_t, void* reply, size_t reply_bytes) {
  if (nic_error != 0) return nic_error;
  if (op == ROCEMU_OP_INSPECT_QP) {
    std::memcpy(reply, &facts, reply_bytes);
    return 0;
  }
  if (op != ROCEMU_OP_TAKE_FINDINGS) return ENOSYS;
  rocemu_take_findings_reply taken = {};
  for (const rocemu_nic_finding& found : nic_findings) taken.findings[taken.count++] = found;
  nic_findings.clear();
  std::memcpy(reply, &taken, reply_bytes);
  return 0;
}

const std::string& folder() {
  static const std::string made = [] {
    std::string name = "/tmp/rocemu-checker-test-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    ::setenv(ROCEMU_ENV_CHECK, "all,-leaks,-destroyed-undrained,-queue-full", 1);
    ::setenv(ROCEMU_ENV_CHECK_DIR, name.c_str(), 1);
    return name;
  }();
  return made;
}

const rocemu_check_hooks& start() {
  static const rocemu_check_services services = {control, [](ibv_cq*) { return 0; }};
  folder();
  return *rocemu_check_start_v1(&services);
}

// Each call in the test's source is a place of its own.
#define AT(verb)                                                                                  \
  const rocemu_check_call at = {verb, __builtin_extract_return_addr(__builtin_return_address(0)), \
                                __builtin_frame_address(0)}

// A device with QPs, of which findings are read.
class World {
 public:
  World() : hooks(start()) {
    facts = {};
    nic_findings.clear();
    AT("ibv_open_device");
    std::strcpy(device.name, "rocemu9");
    context.device = &device;
    const ibv_device_attr limits = {};
    hooks.context_opened(&at, &context, &limits, 0);
    pd.context = &context;
    hooks.made(&at, ROCEMU_CHECK_PD, &context, &pd, nullptr, 1);
    cq.context = &context;
    cq.cqe = 64;
    hooks.cq_made(&at, &cq, nullptr, 64, 0);
    before_ = lines().size();
  }
  ~World() {
    AT("ibv_close_device");
    hooks.going(&at, ROCEMU_CHECK_CONTEXT, &context);
    hooks.gone(&at, ROCEMU_CHECK_CONTEXT, &context, 0);
  }

  struct End {
    ibv_qp qp = {};
    void* shadow = nullptr;
  };
  void make(End& end, ibv_qp_type type = IBV_QPT_RC) {
    static uint32_t last_qpn = 0x100;
    AT("ibv_create_qp");
    end.qp.context = &context;
    end.qp.pd = &pd;
    end.qp.send_cq = end.qp.recv_cq = &cq;
    end.qp.qp_num = ++last_qpn;
    end.qp.qp_type = type;
    ibv_qp_init_attr_ex asked = {};
    asked.cap = {kDepth, kDepth, 1, 1, 16};
    const rocemu_check_qp made = {&end.qp, &asked, &asked.cap};
    end.shadow = hooks.qp_made(&at, &made);
    for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) move(end, state);
    facts.qp_num = end.qp.qp_num;
  }
  void move(End& end, ibv_qp_state state) {
    AT("ibv_modify_qp");
    ibv_qp_attr attr = {};
    attr.qp_state = state;
    hooks.qp_modifying(&at, end.shadow, &attr, IBV_QP_STATE);
    hooks.qp_modified(&at, end.shadow, &attr, IBV_QP_STATE, 0);
  }
  void post(End& end, ibv_wr_opcode opcode, uint64_t wr_id, uint64_t address = kAddress,
            uint32_t bytes = 64) {
    AT("ibv_post_send");
    ibv_sge sge = {0x1000, bytes, 1};
    ibv_send_wr wr = {};
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = 7;
    hooks.sends_posting(&at, end.shadow, &wr);
    hooks.sends_posted(&at, end.shadow, &wr, 0, nullptr);
  }
  void complete(End& end, uint64_t wr_id) {
    AT("ibv_poll_cq");
    ibv_wc wc = {};
    wc.wr_id = wr_id;
    wc.opcode = IBV_WC_RDMA_WRITE;
    wc.qp_num = end.qp.qp_num;
    hooks.polled(&at, cq_shadow(), &wc, 1);
  }
  void destroy(End& end) {
    AT("ibv_destroy_qp");
    hooks.going(&at, ROCEMU_CHECK_QP, &end.qp);
    hooks.gone(&at, ROCEMU_CHECK_QP, &end.qp, 0);
  }

  // Names of what was found since the world is there.
  std::vector<std::string> found() const {
    const std::vector<std::string> all = lines();
    std::vector<std::string> names;
    for (size_t i = before_; i < all.size(); ++i)
      names.push_back(nlohmann::json::parse(all[i])["name"]);
    return names;
  }
  std::string sentence() const { return nlohmann::json::parse(lines().back())["sentence"]; }

  const rocemu_check_hooks& hooks;
  ibv_device device = {};
  ibv_context context = {};
  ibv_pd pd = {};
  ibv_cq cq = {};

 private:
  void* cq_shadow() {
    if (shadow_of_cq_ == nullptr) {
      AT("ibv_create_cq");
      shadow_of_cq_ = hooks.cq_made(&at, &cq, nullptr, 64, 0);
    }
    return shadow_of_cq_;
  }
  static std::vector<std::string> lines() {
    std::vector<std::string> result;
    std::ifstream file(folder() + "/" ROCEMU_CHECK_FINDINGS_FILE);
    for (std::string line; std::getline(file, line);) result.push_back(line);
    return result;
  }
  void* shadow_of_cq_ = nullptr;
  size_t before_ = 0;
};

using Names = std::vector<std::string>;

void meet() {
  facts.flags = ROCEMU_INSPECTED_MET | ROCEMU_INSPECTED_PEER_BEGAN | ROCEMU_INSPECTED_BEGAN;
  for (rocemu_qp_attr* attr : {&facts.own, &facts.peer}) {
    attr->path_mtu = 3;
    attr->timeout = 14;
    attr->retry_cnt = attr->rnr_retry = 7;
    attr->max_rd_atomic = attr->max_dest_rd_atomic = 4;
  }
  facts.own_gid[0] = facts.peer.ah.dgid[0] = 0x20;
  facts.peer_gid[0] = facts.own.ah.dgid[0] = 0x21;
  facts.peer_qp_num = 0x12;
}

}  // namespace

TEST_CASE("ends that agree are nothing to report") {
  World world;
  World::End end;
  world.make(end);
  meet();
  world.post(end, IBV_WR_RDMA_READ, 1);
  world.destroy(end);
  CHECK(world.found().empty());
}

// Reports are shown once for each place, so each kind of mistake is made once.
TEST_CASE("ends that disagree are found when the QP goes, and what about") {
  World world;
  World::End end;
  world.make(end);
  meet();
  SECTION("the path MTU") {
    facts.peer.path_mtu = 5;
    world.destroy(end);
    CHECK(world.found() == Names{"mtu-mismatch"});
    CHECK(world.sentence().find("path MTU of 1024 bytes") != std::string::npos);
    CHECK(world.sentence().find("QP 0x000012 of rocemu0, one of 4096") != std::string::npos);
  }
  SECTION("the first PSN, once it was sent") {
    facts.peer.sq_psn = 5;
    facts.flags = ROCEMU_INSPECTED_MET;
    world.move(end, IBV_QPS_ERR);
    CHECK(world.found().empty());
    World::End other;
    world.make(other);
    facts.flags |= ROCEMU_INSPECTED_PEER_BEGAN;
    world.destroy(other);
    CHECK(world.found() == Names{"psn-mismatch"});
  }
  SECTION("how long they wait") {
    facts.peer.timeout = 17;  // eight times: it may be meant
    world.move(end, IBV_QPS_ERR);
    CHECK(world.found().empty());
    World::End other;
    world.make(other);
    facts.peer.timeout = 0;
    world.destroy(other);
    CHECK(world.found() == Names{"timeout-mismatch"});
  }
  SECTION("READs, where there are any") {
    facts.peer.max_dest_rd_atomic = 1;
    world.move(end, IBV_QPS_ERR);
    CHECK(world.found().empty());
    World::End other;
    world.make(other);
    world.post(other, IBV_WR_RDMA_READ, 1);
    world.destroy(other);
    CHECK(world.found() == Names{"rd-atomic-mismatch"});
  }
  SECTION("addresses") {
    facts.own_gid[0] = 0xfe;
    facts.own_gid[1] = 0x80;
    world.destroy(end);
    CHECK(world.found() == Names{"gid-index"});
  }
}

TEST_CASE("a receive that came too late") {
  World world;
  World::End end;
  world.make(end);
  facts.receives_missing = 3;
  SECTION("is none when the queue ran dry later") {
    world.destroy(end);
    CHECK(world.found().empty());
  }
  SECTION("is found before a reset") {
    facts.receives_missing_before_first = 2;
    facts.waited_before_first_ns = 1'280'000;
    world.move(end, IBV_QPS_RESET);
    CHECK(world.found() == Names{"receive-too-late"});
    CHECK(world.sentence().find("2 RNR NAKs have") != std::string::npos);
    CHECK(world.sentence().find("1.28 ms") != std::string::npos);
  }
}

TEST_CASE("what the NIC found is passed on, at the request's place") {
  World world;
  World::End end;
  world.make(end);
  world.post(end, IBV_WR_RDMA_WRITE, 5);
  const auto& [kind, name] =
      GENERATE(table<uint32_t, std::string>({{ROCEMU_FOUND_KEY_GONE, "memory-gone"},
                                             {ROCEMU_FOUND_KEY_SWAPPED, "byte-order"},
                                             {ROCEMU_FOUND_KEY_NEVER_GIVEN, "key-guessing"},
                                             {ROCEMU_FOUND_PROCESSOR_RACE, "remote-race"}}));
  rocemu_nic_finding found = {};
  found.kind = kind;
  found.qp_num = end.qp.qp_num;
  found.rkey = 7;
  found.address = kAddress;
  found.length_bytes = 64;
  nic_findings.push_back(found);
  world.destroy(end);
  CHECK(world.found() == Names{name});
}

TEST_CASE("accesses of two QPs to the same bytes") {
  World world;
  World::End first;
  World::End second;
  world.make(first);
  world.make(second);
  world.post(first, IBV_WR_RDMA_WRITE, 1);
  SECTION("in order once the completion was taken") {
    world.complete(first, 1);
    world.post(second, IBV_WR_RDMA_WRITE, 2);
    CHECK(world.found().empty());
  }
  SECTION("perhaps in order when the peer was told") {
    const ibv_wr_opcode how = GENERATE(IBV_WR_SEND, IBV_WR_ATOMIC_FETCH_AND_ADD);
    world.post(first, how, 3);
    world.post(second, IBV_WR_RDMA_WRITE, 2);
    CHECK(world.found().empty());
  }
  SECTION("beside each other") {
    world.post(second, IBV_WR_RDMA_WRITE, 2, kAddress + 64);
    CHECK(world.found().empty());
  }
  SECTION("of a QP that is gone") {
    world.destroy(first);
    world.post(second, IBV_WR_RDMA_WRITE, 2);
    CHECK(world.found().empty());
  }
  SECTION("in no order") {
    world.post(second, IBV_WR_RDMA_READ, 2, kAddress + 60);
    CHECK(world.found() == Names{"remote-race"});
  }
  world.destroy(first);
  world.destroy(second);
}
