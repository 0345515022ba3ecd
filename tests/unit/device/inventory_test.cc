// All objects of a device, a page at a time, for those who look at it from outside.
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <vector>

#include "emulator/device/hca.h"

namespace rocemu::device {

namespace {

struct NoEvents final : EventChannel {
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
  bool completion_event(uint64_t) noexcept override { return true; }
};

struct Nobody final : AddressResolver {
  bool resolve(const wire::Gid&, MacAddress&) noexcept override { return false; }
};

HcaConfig config() {
  HcaConfig config = default_config(0);
  config.limits.max_contexts = 4000;
  return config;
}

struct Stage {
  Nobody nobody;
  Hca hca{config(), {}, nobody};

  ContextId open() {
    return hca.open_context(dma::AddressSpace::none(), std::make_unique<NoEvents>()).value();
  }

  // Reads all pages, and does something between two of them. No number may come back for ever.
  template <class Between>
  std::vector<ResourceReport> list(ResourceKind kind, size_t most, Between between) {
    std::vector<ResourceReport> all;
    std::optional<ResourceCursor> at = ResourceCursor{};
    for (unsigned pages = 0; at; ++pages) {
      REQUIRE(pages < 100'000);
      const ResourcePage page = hca.list_resources(kind, *at, most);
      CHECK(page.reports.size() <= most);
      if (page.next)
        CHECK((page.next->context > at->context ||
               (page.next->context == at->context && page.next->place > at->place)));
      all.insert(all.end(), page.reports.begin(), page.reports.end());
      at = page.next;
      between();
    }
    return all;
  }
  std::vector<ResourceReport> list(ResourceKind kind, size_t most) {
    return list(kind, most, [] {});
  }
};

std::set<uint32_t> numbers(const std::vector<ResourceReport>& reports) {
  std::set<uint32_t> all;
  for (const ResourceReport& report : reports) all.insert(report.number);
  return all;
}

}  // namespace

TEST_CASE("A device without programs has nothing to list") {
  Stage stage;
  for (const ResourceKind kind : {ResourceKind::context, ResourceKind::pd, ResourceKind::cq,
                                  ResourceKind::qp, ResourceKind::mr, ResourceKind::srq})
    CHECK(stage.list(kind, 40).empty());
}

TEST_CASE("Every object is listed once, whatever the size of a page") {
  Stage stage;
  const size_t most = GENERATE(1, 7, 40, 5000);
  std::vector<ContextId> contexts;
  size_t pds = 0;
  for (const size_t count : {0u, 1u, 3u, 0u, 1500u, 0u, 8u}) {
    contexts.push_back(stage.open());
    for (size_t i = 0; i < count; ++i) REQUIRE(stage.hca.alloc_pd(contexts.back()));
    pds += count;
  }
  const auto listed = stage.list(ResourceKind::pd, most);
  CHECK(listed.size() == pds);
  CHECK(numbers(listed).size() == pds);
  CHECK(stage.list(ResourceKind::context, most).size() == contexts.size());
}

TEST_CASE("Contexts that have nothing are passed over, some at a time") {
  Stage stage;
  for (int i = 0; i < 2500; ++i) stage.open();
  const ContextId last = stage.open();
  REQUIRE(stage.hca.alloc_pd(last));
  const auto listed = stage.list(ResourceKind::pd, 40);
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].context == last);
  CHECK(listed[0].users == 0);
}

TEST_CASE("What is there all the while is listed although others come and go meanwhile") {
  Stage stage;
  const ContextId context = stage.open();
  std::set<uint32_t> kept;
  for (int i = 0; i < 300; ++i) REQUIRE(stage.hca.alloc_pd(context));
  kept = numbers(stage.list(ResourceKind::pd, 40));
  std::vector<Handle> made;
  const auto listed = stage.list(ResourceKind::pd, 10, [&] {
    if (made.size() < 3000)
      for (int i = 0; i < 100; ++i) made.push_back(stage.hca.alloc_pd(context).value());
  });
  for (const uint32_t number : kept) CHECK(numbers(listed).contains(number));
}

TEST_CASE("A region says its key, its address and its length") {
  Stage stage;
  const ContextId context = stage.open();
  const Handle pd = stage.hca.alloc_pd(context).value();
  MrSpec spec;
  spec.pd = pd;
  spec.address = 0x10000;
  spec.iova = 0x20000;
  spec.length_bytes = 4096;
  const auto keys = stage.hca.reg_mr(context, spec);
  REQUIRE(keys);
  const auto listed = stage.list(ResourceKind::mr, 40);
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].key == keys->lkey.value);
  CHECK(listed[0].iova == spec.iova);
  CHECK(listed[0].length_bytes == spec.length_bytes);
  CHECK(listed[0].pd == stage.list(ResourceKind::pd, 40).at(0).number);
  CHECK(stage.list(ResourceKind::pd, 40).at(0).users == 1);
}

TEST_CASE("There are no counters of a QP that is not there") {
  Stage stage;
  CHECK_FALSE(stage.hca.counters_of(wire::Qpn{17}));
}

}  // namespace rocemu::device
