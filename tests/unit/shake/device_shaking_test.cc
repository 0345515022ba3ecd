// A whole device with everything that shakes it: what the parts do together.
#include "emulator/shake/device_shaking.h"

#include <catch2/catch.hpp>
#include <set>

#include "emulator/device/hca.h"
#include "tests/unit/shake/fakes.h"

namespace rocemu::shake {
namespace {

struct AnyBody final : device::AddressResolver {
  bool resolve(const wire::Gid&, MacAddress&) noexcept override { return true; }
};

struct NoEvents final : device::EventChannel {
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
};

struct NoQueues final : device::WorkQueues, transport::SendQueue, transport::ReceiveQueue {
  transport::SendQueue& send() noexcept override { return *this; }
  transport::ReceiveQueue& receive() noexcept override { return *this; }
  bool pop(transport::SendWork&) noexcept override { return false; }
  bool pop(transport::ReceiveWork&) noexcept override { return false; }
  void release(uint32_t) noexcept override {}
  void show_state(transport::QpState) noexcept override {}
  void reset() noexcept override {}
};

struct Numbers {
  std::vector<uint32_t> handles, keys, qpns;
};

// What a program is given that makes `count` of each kind.
Numbers numbers_of(const char* text, uint32_t index, unsigned count) {
  const Settings settings = *parse_settings(text).settings;
  DeviceShaking shaking(settings, index, {});
  AnyBody anybody;
  device::Hca hca(device::default_config(index), {}, anybody, shaking.parts());
  std::vector<std::byte> memory(4096);
  const auto context = *hca.open_context(dma::AddressSpace::local(memory, 0x10000),
                                         shaking.wrap_async(std::make_unique<NoEvents>()));
  const auto pd = *hca.alloc_pd(context);
  test::FakeRing::State state;
  const auto cq = *hca.create_cq(context, {8, 0, 0, 0},
                                 shaking.wrap(std::make_unique<test::FakeRing>(state), 8));
  Numbers numbers;
  for (unsigned i = 0; i < count; ++i) {
    const device::MrKeys keys = *hca.reg_mr(context, {pd, 1, 0x10000, 4096, 0x10000});
    numbers.handles.push_back(keys.mr);
    numbers.keys.push_back(keys.rkey.value);
    device::QpSpec spec;
    spec.pd = pd;
    spec.send_cq = spec.receive_cq = cq;
    spec.type = 2;
    const auto qp = *hca.create_qp(context, spec, shaking.wrap(std::make_unique<NoQueues>(), spec));
    numbers.handles.push_back(qp.qp);
    numbers.qpns.push_back(qp.qpn.value);
  }
  return numbers;
}

bool in_order(const std::vector<uint32_t>& numbers) {
  return std::is_sorted(numbers.begin(), numbers.end());
}

bool different(const std::vector<uint32_t>& numbers) {
  return std::set(numbers.begin(), numbers.end()).size() == numbers.size();
}

}  // namespace

TEST_CASE(
    "keys, QPNs and handles are drawn at random, are each somebody's, and repeat by the seed") {
  const Numbers drawn = numbers_of("numbers,seed=3", 0, 200);
  for (const auto* numbers : {&drawn.handles, &drawn.keys, &drawn.qpns}) {
    CHECK(different(*numbers));
    CHECK_FALSE(in_order(*numbers));
  }
  for (const uint32_t qpn : drawn.qpns) {
    CHECK(qpn > 16);
    CHECK(qpn < 0xffffff);
  }
  CHECK(numbers_of("numbers,seed=3", 0, 200).keys == drawn.keys);
  CHECK(numbers_of("numbers,seed=3", 0, 200).qpns == drawn.qpns);
  CHECK(numbers_of("numbers,seed=4", 0, 200).keys != drawn.keys);

  // No handle of one device is another device's.
  std::vector<uint32_t> handles = numbers_of("numbers,seed=3", 1, 200).handles;
  handles.insert(handles.end(), drawn.handles.begin(), drawn.handles.end());
  CHECK(different(handles));
}

TEST_CASE("without that behaviour numbers are as ever") {
  const Numbers plain = numbers_of("garbage,seed=3", 0, 20);
  CHECK(in_order(plain.qpns));
  CHECK(plain.qpns.front() == 17);
}

TEST_CASE("all behaviours together leave a device that can be made and taken down") {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    CHECK(numbers_of(("all,strength=100,seed=" + std::to_string(seed)).c_str(), 0, 5).qpns.size() ==
          5);
}

TEST_CASE("frames that are none of RoCE are not held back") {
  DeviceShaking shaking(*parse_settings("seed=1").settings, 0, {});
  CHECK(shaking.delays_arrivals());
  const std::array<std::byte, 60> frame{};
  for (TimeNs now = 1; now < 100; ++now) CHECK(shaking.arrival_due(now, frame) == now);
  DeviceShaking deaf(*parse_settings("placement,seed=1").settings, 0, {});
  CHECK_FALSE(deaf.delays_arrivals());
}

}  // namespace rocemu::shake
