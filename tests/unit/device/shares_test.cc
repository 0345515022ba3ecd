// What one program may have of a device's tables, with all its contexts.
#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>
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
  config.limits.max_contexts = 1000;
  config.limits.max_pd = 1000;
  config.limits.max_channels = 100;
  return config;
}

struct Stage {
  Nobody nobody;
  Hca hca{config(), {}, nobody};

  ContextId open(uint64_t program) {
    return hca.open_context(nullptr, std::make_unique<NoEvents>(), program).value();
  }
  unsigned fill_pds(ContextId context) {
    unsigned made = 0;
    while (hca.alloc_pd(context)) ++made;
    return made;
  }
};

}  // namespace

TEST_CASE("A program has three quarters of a table at most, with all its contexts") {
  Stage stage;
  const ContextId first = stage.open(1);
  const ContextId second = stage.open(1);
  const ContextId other = stage.open(2);
  for (int i = 0; i < 500; ++i) REQUIRE(stage.hca.alloc_pd(first));
  CHECK(stage.fill_pds(second) == 250);
  CHECK(stage.hca.alloc_pd(first).error() == ENOMEM);
  CHECK(stage.fill_pds(other) == 250);
  stage.hca.close_context(first);
  CHECK(stage.fill_pds(second) == 500);
}

TEST_CASE("A program has three quarters of the contexts") {
  Stage stage;
  for (int i = 0; i < 750; ++i) stage.open(1);
  CHECK(stage.hca.open_context(nullptr, std::make_unique<NoEvents>(), 1).error() == ENOMEM);
  for (int i = 0; i < 250; ++i) stage.open(2);
  CHECK(stage.hca.open_context(nullptr, std::make_unique<NoEvents>(), 3).error() == ENOMEM);
}

TEST_CASE("A small table has no shares") {
  Stage stage;
  const ContextId context = stage.open(1);
  unsigned channels = 0;
  while (stage.hca.create_channel(context, std::make_unique<NoEvents>())) ++channels;
  CHECK(channels == 100);
}

}  // namespace rocemu::device
