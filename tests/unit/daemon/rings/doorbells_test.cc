#include "emulator/daemon/rings/doorbells.h"

#include <catch2/catch.hpp>
#include <vector>

namespace rocemu::daemon {
namespace {

struct DoorbellPage {
  explicit DoorbellPage(uint32_t slots = ROCEMU_DOORBELL_SLOTS_MAX) {
    SharedMemory shared("test", sizeof(rocemu_doorbell_page));
    page = reinterpret_cast<rocemu_doorbell_page*>(shared.data());
    doorbells = std::make_unique<Doorbells>(std::move(shared), slots);
  }
  void ring(uint32_t slot) {
    rocemu_doorbell_group& group = page->groups[slot / 4096];
    group.words[slot / 64 % 64] |= uint64_t{1} << (slot % 64);
    group.summary |= uint64_t{1} << (slot / 64 % 64);
  }
  std::vector<uint32_t> rung() {
    std::vector<uint32_t> qpns;
    doorbells->scan(UINT32_MAX, [&](wire::Qpn qpn) { qpns.push_back(qpn.value); });
    return qpns;
  }

  rocemu_doorbell_page* page = nullptr;
  std::unique_ptr<Doorbells> doorbells;
};

}  // namespace

TEST_CASE("a rung slot names its QP, once") {
  DoorbellPage page;
  for (uint32_t qpn = 1000; qpn < 1000 + 5000; ++qpn)
    REQUIRE(page.doorbells->allocate(wire::Qpn{qpn}) == qpn - 1000);
  CHECK_FALSE(page.doorbells->any_rung());
  for (const uint32_t slot : {0u, 63u, 64u, 4095u, 4096u, 4999u}) page.ring(slot);
  CHECK(page.doorbells->any_rung());
  CHECK(page.rung() == std::vector<uint32_t>{1000, 1063, 1064, 5095, 5096, 5999});
  CHECK_FALSE(page.doorbells->any_rung());
  CHECK(page.rung().empty());
}

TEST_CASE("a program that rings for all has some rung at a time, and each before any again") {
  constexpr uint32_t kSlots = 5000, kMost = 128;
  DoorbellPage page;
  for (uint32_t slot = 0; slot < kSlots; ++slot)
    REQUIRE(page.doorbells->allocate(wire::Qpn{slot + 1}));
  std::vector<unsigned> rung(kSlots);
  for (uint32_t all = 0; all < kSlots;) {
    for (uint32_t slot = 0; slot < kSlots; ++slot) page.ring(slot);
    uint32_t now = 0;
    page.doorbells->scan(kMost, [&](wire::Qpn qpn) {
      ++rung[qpn.value - 1];
      ++now;
    });
    REQUIRE(now <= kMost + 64);
    REQUIRE(now > 0);
    REQUIRE(page.doorbells->any_rung());
    all += now;
  }
  for (const unsigned times : rung) REQUIRE((times >= 1 && times <= 2));
  while (page.doorbells->any_rung()) page.rung();
  page.ring(4999);
  CHECK(page.rung() == std::vector<uint32_t>{5000});
}

TEST_CASE("the lowest free slot comes first, and there are no more than agreed") {
  DoorbellPage page(64);
  for (uint32_t slot = 0; slot < 64; ++slot)
    REQUIRE(page.doorbells->allocate(wire::Qpn{slot + 1}) == slot);
  CHECK_FALSE(page.doorbells->allocate(wire::Qpn{100}));
  page.doorbells->release(40);
  page.doorbells->release(7);
  CHECK(page.doorbells->allocate(wire::Qpn{200}) == 7u);
  page.ring(7);
  page.ring(40);  // nobody's now
  CHECK(page.rung() == std::vector<uint32_t>{200});
}

TEST_CASE("a page full of nonsense rings those that exist and nobody else") {
  DoorbellPage page;
  REQUIRE(page.doorbells->allocate(wire::Qpn{11}));
  REQUIRE(page.doorbells->allocate(wire::Qpn{12}));
  for (rocemu_doorbell_group& group : page.page->groups) {
    group.summary = ~uint64_t{0};
    for (uint64_t& word : group.words) word = ~uint64_t{0};
  }
  CHECK(page.rung() == std::vector<uint32_t>{11, 12});
  CHECK(page.rung().empty());
  CHECK_FALSE(page.doorbells->any_rung());
}

TEST_CASE("a context without QPs looks at nothing") {
  DoorbellPage page;
  for (rocemu_doorbell_group& group : page.page->groups) group.summary = ~uint64_t{0};
  CHECK_FALSE(page.doorbells->any_rung());
  CHECK(page.rung().empty());
}

}  // namespace rocemu::daemon
