// What programs make of memory beside plain regions: changes of registrations, null regions, device
// memory, windows as objects, prefetching.
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <vector>

#include "emulator/device/hca.h"
#include "emulator/device/memory/memory_regions.h"

using namespace rocemu;
using namespace rocemu::device;

namespace {

constexpr uint64_t kBase = 0x10000;

struct NoEvents final : EventChannel {
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
};

struct Nobody final : AddressResolver {
  bool resolve(const wire::Gid&, MacAddress&) noexcept override { return false; }
};

struct Bytes final : DeviceMemory {
  explicit Bytes(size_t length) : memory(length) {}
  std::span<std::byte> bytes() noexcept override { return memory; }
  int descriptor() const noexcept override { return 77; }
  std::vector<std::byte> memory;
};

HcaConfig small_config() {
  HcaConfig config = default_config(0);
  config.limits.max_mr = 3;
  config.limits.max_mw = 2;
  config.limits.max_dm_size = 1000;
  return config;
}

struct Program {
  Program() {
    context =
        hca.open_context(dma::AddressSpace::local(memory, kBase), std::make_unique<NoEvents>())
            .value();
    pd = hca.alloc_pd(context).value();
  }
  MrSpec spec(uint32_t access = kLocalWrite) const {
    MrSpec result;
    result.pd = pd;
    result.access = access;
    result.address = result.iova = kBase;
    result.length_bytes = memory.size();
    return result;
  }
  int dm_error(uint64_t length) {
    const auto dm = hca.alloc_dm(context, std::make_unique<Bytes>(length));
    return dm ? 0 : dm.error();
  }

  std::array<std::byte, 4096> memory{};
  Nobody nobody;
  Hca hca{small_config(), {}, nobody};
  ContextId context = 0;
  Handle pd = 0;
};

}  // namespace

TEST_CASE("A region is registered anew under its keys") {
  Program p;
  const Handle other_pd = p.hca.alloc_pd(p.context).value();
  const MrKeys keys = p.hca.reg_mr(p.context, p.spec()).value();

  MrSpec to_other = p.spec();
  to_other.pd = other_pd;
  const MrKeys moved = p.hca.rereg_mr(p.context, keys.mr, kChangePd, to_other).value();
  CHECK(moved.rkey == keys.rkey);
  CHECK(p.hca.dealloc_pd(p.context, other_pd) == EBUSY);
  CHECK(p.hca.dealloc_pd(p.context, p.pd) == 0);
  CHECK(p.hca.dereg_mr(p.context, keys.mr) == 0);
  CHECK(p.hca.dealloc_pd(p.context, other_pd) == 0);
}

TEST_CASE("A new registration that cannot be leaves the old one") {
  Program p;
  const MrKeys keys = p.hca.reg_mr(p.context, p.spec()).value();
  MrSpec wrong = p.spec();
  uint32_t flags = kChangeTranslation;
  int expected = EINVAL;
  Handle mr = keys.mr;
  SECTION("flags that do not exist") { flags = 8; }
  SECTION("no such region") {
    mr = 99;
    expected = ENOENT;
  }
  SECTION("no such domain") {
    flags = kChangePd;
    wrong.pd = 99;
    expected = ENOENT;
  }
  SECTION("remote write without local write") {
    flags = kChangeAccess;
    wrong.access = transport::kRemoteWrite;
  }
  SECTION("a length that wraps round") { wrong.length_bytes = ~uint64_t{0}; }
  CHECK(p.hca.rereg_mr(p.context, mr, flags, wrong).error() == expected);
  CHECK(p.hca.dereg_mr(p.context, keys.mr) == 0);
  CHECK(p.hca.dealloc_pd(p.context, p.pd) == 0);
}

TEST_CASE("Windows and device memory are as many as the limits say, and go in order") {
  Program p;
  const MrKeys first = p.hca.alloc_mw(p.context, p.pd, 1).value();
  CHECK(p.hca.alloc_mw(p.context, p.pd, 0).error() == EINVAL);
  CHECK(p.hca.alloc_mw(p.context, p.pd, 3).error() == EINVAL);
  CHECK(p.hca.alloc_mw(p.context, 99, 1).error() == ENOENT);
  CHECK(p.hca.alloc_mw(p.context, p.pd, 2));
  CHECK(p.hca.alloc_mw(p.context, p.pd, 2).error() == ENOMEM);
  CHECK(p.hca.dealloc_pd(p.context, p.pd) == EBUSY);
  CHECK(p.hca.dealloc_mw(p.context, first.mr) == 0);
  CHECK(p.hca.dealloc_mw(p.context, first.mr) == ENOENT);
  CHECK(p.hca.alloc_mw(p.context, p.pd, 2));

  for (int i = 0; i < 3; ++i) CHECK(p.hca.reg_mr(p.context, p.spec()));
  CHECK(p.hca.reg_mr(p.context, p.spec()).error() == ENOMEM);

  CHECK(p.dm_error(1001) == EINVAL);
  CHECK(p.dm_error(600) == 0);
  CHECK(p.dm_error(600) == ENOMEM);
  CHECK(p.dm_error(400) == 0);
  CHECK(p.hca.counts().dm_bytes == 1000);
  p.hca.close_context(p.context);
  CHECK(p.hca.counts().dm_bytes == 0);
  CHECK(p.hca.counts().mws == 0);
}

TEST_CASE("Device memory is registered from 0 on and within its length") {
  Program p;
  const Handle dm = p.hca.alloc_dm(p.context, std::make_unique<Bytes>(100)).value();
  MrSpec spec;
  spec.pd = p.pd;
  spec.kind = MrKind::device_memory;
  spec.dm = dm;
  spec.access = kLocalWrite | kZeroBased;
  spec.address = 40;
  spec.length_bytes = 60;
  const MrKeys keys = p.hca.reg_mr(p.context, spec).value();
  CHECK(p.hca.free_dm(p.context, dm) == EBUSY);
  CHECK(p.hca.rereg_mr(p.context, keys.mr, kChangeAccess, spec).error() == EOPNOTSUPP);

  MrSpec wrong = spec;
  int expected = EINVAL;
  SECTION("beyond the end") { wrong.length_bytes = 61; }
  SECTION("from beyond the end") { wrong.address = ~uint64_t{0} - 60; }
  SECTION("with addresses") { wrong.access = kLocalWrite; }
  SECTION("of another's") {
    wrong.dm = 99;
    expected = ENOENT;
  }
  CHECK(p.hca.reg_mr(p.context, wrong).error() == expected);
  CHECK(p.hca.dereg_mr(p.context, keys.mr) == 0);
  CHECK(p.hca.free_dm(p.context, dm) == 0);
  CHECK(p.hca.free_dm(p.context, dm) == ENOENT);
}

TEST_CASE("Regions grant FLUSH for visibility, and not for persistence") {
  Program p;
  CHECK(p.hca.reg_mr(p.context, p.spec(kLocalWrite | kFlushGlobal)));
  CHECK(p.hca.reg_mr(p.context, p.spec(kLocalWrite | kFlushPersistent)).error() == EOPNOTSUPP);
  CHECK(p.hca.reg_mr(p.context, p.spec(kLocalWrite | 1u << 10)).error() == EINVAL);
}

TEST_CASE("All of the address space is registered on demand, and not otherwise") {
  Program p;
  MrSpec spec = p.spec();
  spec.address = spec.iova = 0;
  spec.length_bytes = UINT64_MAX;
  CHECK(p.hca.reg_mr(p.context, spec).error() == EINVAL);
  spec.access |= kOnDemand;
  const MrKeys keys = p.hca.reg_mr(p.context, spec).value();
  CHECK(p.hca.check_prefetch(p.context, p.pd, keys.lkey, 0x1234, 100, true).value() == 0x1234);
}

TEST_CASE("Only on-demand regions of one's own are prefetched") {
  Program p;
  const Handle other_pd = p.hca.alloc_pd(p.context).value();
  const MrKeys pinned = p.hca.reg_mr(p.context, p.spec()).value();
  const MrKeys keys = p.hca.reg_mr(p.context, p.spec(kOnDemand)).value();
  const auto check = [&](Handle pd, wire::LKey lkey, uint64_t iova, uint64_t length, bool writing) {
    const auto address = p.hca.check_prefetch(p.context, pd, lkey, iova, length, writing);
    return address ? 0 : address.error();
  };
  CHECK(check(p.pd, keys.lkey, kBase + 1, 4095, false) == 0);
  CHECK(check(p.pd, keys.lkey, kBase + 1, 4096, false) == EFAULT);
  CHECK(check(p.pd, keys.lkey, kBase - 1, 1, false) == EFAULT);
  CHECK(check(p.pd, keys.lkey, kBase, 1, true) == EPERM);
  CHECK(check(p.pd, pinned.lkey, kBase, 1, false) == ENOENT);
  CHECK(check(other_pd, keys.lkey, kBase, 1, false) == EPERM);
  CHECK(check(99, keys.lkey, kBase, 1, false) == ENOENT);
}

TEST_CASE("A null region has an lkey for any address and no rkey's rights") {
  Program p;
  MrSpec spec;
  spec.pd = p.pd;
  spec.kind = MrKind::null;
  const MrKeys keys = p.hca.reg_mr(p.context, spec).value();
  CHECK(p.hca.dealloc_pd(p.context, p.pd) == EBUSY);
  CHECK(p.hca.rereg_mr(p.context, keys.mr, kChangeAccess, p.spec()).error() == EOPNOTSUPP);
  CHECK(p.hca.dereg_mr(p.context, keys.mr) == 0);
}

TEST_CASE("What one context made another one imports, if it has the token") {
  Program p;
  constexpr ContextToken kToken{1, 2};
  const ContextId other =
      p.hca.open_context(dma::AddressSpace::local(p.memory, kBase), std::make_unique<NoEvents>())
          .value();
  const MrKeys keys = p.hca.reg_mr(p.context, p.spec()).value();
  const Handle dm = p.hca.alloc_dm(p.context, std::make_unique<Bytes>(100)).value();

  CHECK(p.hca.import_pd(other, p.pd).error() == ENOENT);
  CHECK(p.hca.join_context(other, kToken) == ENOENT);
  p.hca.set_token(p.context, kToken);
  p.hca.set_token(p.context, {3, 4});
  CHECK(p.hca.token(p.context) == kToken);
  CHECK(p.hca.join_context(other, {3, 4}) == ENOENT);
  REQUIRE(p.hca.join_context(other, kToken) == 0);
  CHECK(p.hca.join_context(other, kToken) == EALREADY);

  const Handle own_pd = p.hca.alloc_pd(other).value();
  const Handle pd = p.hca.import_pd(other, p.pd).value();
  CHECK(p.hca.import_pd(other, 99).error() == ENOENT);
  CHECK(p.hca.import_mr(other, pd, keys.mr)->rkey == keys.rkey);
  CHECK(p.hca.import_mr(other, pd, keys.mr)->length_bytes == p.memory.size());
  CHECK(p.hca.import_mr(other, own_pd, keys.mr).error() == EINVAL);
  CHECK(p.hca.import_mr(other, pd, 99).error() == ENOENT);

  const ImportedDm imported = p.hca.import_dm(other, dm).value();
  CHECK(imported.length_bytes == 100);
  CHECK(imported.descriptor == 77);
  CHECK(p.hca.import_dm(other, 99).error() == ENOENT);
  CHECK(p.hca.counts().dm_bytes == 100);
  CHECK(p.hca.free_dm(other, imported.dm) == 0);
  CHECK(p.hca.counts().dm_bytes == 100);

  // What was imported does not need whom it came from; what was not can no longer be.
  const Handle kept = p.hca.import_dm(other, dm)->dm;
  p.hca.close_context(p.context);
  CHECK(p.hca.import_pd(other, p.pd).error() == ENOENT);
  CHECK(p.hca.import_mr(other, pd, keys.mr).error() == ENOENT);
  CHECK(p.hca.counts().dm_bytes == 100);  // nobody has more than a device has by passing it on
  CHECK(p.hca.free_dm(other, kept) == 0);
  CHECK(p.hca.dealloc_pd(other, pd) == 0);
  CHECK(p.hca.counts().dm_bytes == 0);
}
