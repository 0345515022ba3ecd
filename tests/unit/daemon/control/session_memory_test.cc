// Requests of verbs_shim/abi/memory.h on a connection.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "tests/unit/daemon/nic_fixture.h"
#include "verbs_shim/abi/import.h"
#include "verbs_shim/abi/memory.h"
#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon {
namespace {

struct Program {
  explicit Program(NicFixture& nic) : client(nic) {
    REQUIRE(client.hello().header.status == 0);
    pd = client.call_handle(ROCEMU_OP_ALLOC_PD, 0).as<rocemu_handle_message>().handle;
  }
  rocemu_reg_mr region() {
    rocemu_reg_mr message{};
    message.pd = pd;
    message.access = 1;
    message.address = message.iova = reinterpret_cast<uintptr_t>(bytes);
    message.length_bytes = sizeof(bytes);
    return message;
  }
  Client client;
  uint32_t pd = 0;
  char bytes[4096] = {};
};

}  // namespace

TEST_CASE("device memory is one memory on both sides") {
  NicFixture nic;
  Program p(nic);
  rocemu_alloc_dm ask{};
  ask.length_bytes = 5000;
  auto reply = p.client.call(ROCEMU_OP_ALLOC_DM, ask);
  REQUIRE(reply.header.status == 0);
  const auto dm = reply.as<rocemu_alloc_dm_reply>();
  REQUIRE(reply.fds.size() == 1);
  CHECK(dm.memory_bytes >= 5000);
  void* mapped =
      mmap(nullptr, dm.memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, reply.fds[0].get(), 0);
  CHECK(mapped != MAP_FAILED);
  munmap(mapped, dm.memory_bytes);

  rocemu_reg_dm_mr region{};
  region.pd = p.pd;
  region.dm = dm.dm;
  region.access = 1u << 5 | 1;
  region.offset_bytes = 1000;
  region.length_bytes = 4000;
  const auto keys = p.client.call(ROCEMU_OP_REG_DM_MR, region);
  CHECK(keys.header.status == 0);
  CHECK(p.client.call_handle(ROCEMU_OP_FREE_DM, dm.dm).header.status == EBUSY);
  CHECK(p.client.call_handle(ROCEMU_OP_DEREG_MR, keys.as<rocemu_reg_mr_reply>().mr).header.status ==
        0);
  region.length_bytes = 4001;
  CHECK(p.client.call(ROCEMU_OP_REG_DM_MR, region).header.status == EINVAL);
  region.length_bytes = 0;
  region.reserved = 1;
  CHECK(p.client.call(ROCEMU_OP_REG_DM_MR, region).header.status == EINVAL);
  CHECK(p.client.call_handle(ROCEMU_OP_FREE_DM, dm.dm).header.status == 0);

  ask.length_bytes = 0;
  CHECK(p.client.call(ROCEMU_OP_ALLOC_DM, ask).header.status == EINVAL);
  ask.length_bytes = uint64_t{1} << 60;
  CHECK(p.client.call(ROCEMU_OP_ALLOC_DM, ask).header.status == EINVAL);
  ask.length_bytes = 1;
  ask.log_align = 13;
  CHECK(p.client.call(ROCEMU_OP_ALLOC_DM, ask).header.status == EINVAL);
}

TEST_CASE("windows, null regions and new registrations come and go") {
  NicFixture nic;
  Program p(nic);
  rocemu_alloc_mw ask{};
  ask.pd = p.pd;
  ask.type = 2;
  const auto window = p.client.call(ROCEMU_OP_ALLOC_MW, ask);
  CHECK(window.header.status == 0);
  CHECK(window.as<rocemu_reg_mr_reply>().rkey != 0);
  ask.type = 3;
  CHECK(p.client.call(ROCEMU_OP_ALLOC_MW, ask).header.status == EINVAL);
  const auto null_region = p.client.call_handle(ROCEMU_OP_ALLOC_NULL_MR, p.pd);
  CHECK(null_region.header.status == 0);

  const auto keys = p.client.call(ROCEMU_OP_REG_MR, p.region()).as<rocemu_reg_mr_reply>();
  rocemu_rereg_mr again{};
  again.mr = keys.mr;
  again.flags = 4;
  again.access = 3;
  CHECK(p.client.call(ROCEMU_OP_REREG_MR, again).as<rocemu_reg_mr_reply>().rkey == keys.rkey);
  again.mr = null_region.as<rocemu_reg_mr_reply>().mr;
  CHECK(p.client.call(ROCEMU_OP_REREG_MR, again).header.status == EOPNOTSUPP);

  rocemu_check_prefetch advice{};
  advice.pd = p.pd;
  advice.lkey = keys.lkey;
  advice.iova = p.region().iova;
  CHECK(p.client.call(ROCEMU_OP_CHECK_PREFETCH, advice).header.status == ENOENT);
  rocemu_reg_mr on_demand = p.region();
  on_demand.access |= 1u << 6;
  advice.lkey = p.client.call(ROCEMU_OP_REG_MR, on_demand).as<rocemu_reg_mr_reply>().lkey;
  CHECK(p.client.call(ROCEMU_OP_CHECK_PREFETCH, advice).as<rocemu_check_prefetch_reply>().address ==
        advice.iova);

  CHECK(p.client.call_handle(ROCEMU_OP_DEALLOC_MW, window.as<rocemu_reg_mr_reply>().mr)
            .header.status == 0);
  p.client.close();
  CHECK(nic.empty_soon());
}

TEST_CASE("a CQ is resized within the device's limits") {
  NicFixture nic;
  Program p(nic);
  rocemu_create_cq ask{};
  ask.cqe = 16;
  const auto cq = p.client.call(ROCEMU_OP_CREATE_CQ, ask).as<rocemu_create_cq_reply>().cq;
  rocemu_resize_cq resize{};
  resize.cq = cq;
  resize.cqe = 100;
  const auto reply = p.client.call(ROCEMU_OP_RESIZE_CQ, resize);
  REQUIRE(reply.header.status == 0);
  CHECK(reply.as<rocemu_create_cq_reply>().entries == 128);
  CHECK(reply.fds.size() == 1);
  resize.cqe = 0;
  CHECK(p.client.call(ROCEMU_OP_RESIZE_CQ, resize).header.status == EINVAL);
  resize.cqe = UINT32_MAX;
  CHECK(p.client.call(ROCEMU_OP_RESIZE_CQ, resize).header.status == EINVAL);
  resize.cqe = 1;
  resize.cq = 77;
  CHECK(p.client.call(ROCEMU_OP_RESIZE_CQ, resize).header.status == ENOENT);
}

TEST_CASE("the device says what memory it can do") {
  NicFixture nic;
  Program p(nic);
  const auto attr =
      p.client.call(ROCEMU_OP_QUERY_DEVICE_EX, HeaderOnly{}).as<rocemu_device_attr_ex>();
  CHECK(attr.max_dm_size > 0);
  CHECK(attr.odp_general_caps == 3);
  CHECK(attr.rc_odp_caps == 0xff);
  CHECK(attr.xrc_odp_caps == 0x3f);
  CHECK(attr.ud_odp_caps == 0x23);
}

TEST_CASE("who has a context's ticket imports what it made") {
  NicFixture nic;
  Program p(nic);
  const auto keys = p.client.call(ROCEMU_OP_REG_MR, p.region()).as<rocemu_reg_mr_reply>();
  rocemu_alloc_dm ask{};
  ask.length_bytes = 64;
  const auto dm = p.client.call(ROCEMU_OP_ALLOC_DM, ask).as<rocemu_alloc_dm_reply>();
  const auto reply = p.client.call_handle(ROCEMU_OP_CONTEXT_TICKET, 0);
  REQUIRE(reply.fds.size() == 1);
  rocemu_context_ticket ticket{};
  REQUIRE(pread(reply.fds[0].get(), &ticket, sizeof(ticket), 0) == sizeof(ticket));
  CHECK(std::memcmp(ticket.magic, ROCEMU_TICKET_MAGIC, 8) == 0);
  CHECK(ticket.device_index == 0);

  Client other(nic);
  REQUIRE(other.hello().header.status == 0);
  rocemu_join_context join{};
  CHECK(other.call(ROCEMU_OP_JOIN_CONTEXT, join).header.status == ENOENT);
  std::memcpy(join.token, ticket.token, sizeof(join.token));
  CHECK(other.call(ROCEMU_OP_JOIN_CONTEXT, join).header.status == 0);
  CHECK(other.call(ROCEMU_OP_JOIN_CONTEXT, join).header.status == EALREADY);
  rocemu_import_mr import{};
  import.pd = other.call_handle(ROCEMU_OP_IMPORT_PD, p.pd).as<rocemu_handle_message>().handle;
  import.mr = keys.mr;
  CHECK(other.call(ROCEMU_OP_IMPORT_MR, import).as<rocemu_import_mr_reply>().rkey == keys.rkey);
  const auto memory = other.call_handle(ROCEMU_OP_IMPORT_DM, dm.dm);
  CHECK(memory.as<rocemu_import_dm_reply>().length_bytes == 64);
  CHECK(memory.fds.size() == 1);
}

// An entry of /proc/self/maps with that name. The mapping goes on a thread that nobody waits for.
bool is_mapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos) return true;
  return false;
}

TEST_CASE("memory that is shared is not kept when who imported its region takes that down") {
  NicFixture nic;
  Program p(nic);
  const UniqueFd file(memfd_create("an-importers", MFD_CLOEXEC));
  REQUIRE(ftruncate(file.get(), 8192) == 0);
  struct stat status;
  REQUIRE(fstat(file.get(), &status) == 0);
  rocemu_reg_file_mr region{};
  region.pd = p.pd;
  region.access = 1;
  region.length_bytes = 8192;
  region.file_device = status.st_dev;
  region.file_inode = status.st_ino;
  const auto keys = p.client.call(ROCEMU_OP_REG_FILE_MR, region, std::array{file.get()});
  REQUIRE(keys.header.status == 0);
  CHECK(is_mapped("an-importers"));
  rocemu_context_ticket ticket{};
  const auto reply = p.client.call_handle(ROCEMU_OP_CONTEXT_TICKET, 0);
  REQUIRE(pread(reply.fds[0].get(), &ticket, sizeof(ticket), 0) == sizeof(ticket));
  Client other(nic);
  REQUIRE(other.hello().header.status == 0);
  rocemu_join_context join{};
  std::memcpy(join.token, ticket.token, sizeof(join.token));
  REQUIRE(other.call(ROCEMU_OP_JOIN_CONTEXT, join).header.status == 0);
  const uint32_t mr = keys.as<rocemu_reg_mr_reply>().mr;
  CHECK(other.call_handle(ROCEMU_OP_DEREG_MR, mr).header.status == 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (is_mapped("an-importers") && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  CHECK_FALSE(is_mapped("an-importers"));
}

}  // namespace rocemu::daemon
