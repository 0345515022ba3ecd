// Address handles, SRQs, XRC domains and multicast groups of the HCA.
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <deque>
#include <utility>
#include <vector>

#include "emulator/device/hca.h"

using namespace rocemu;
using namespace rocemu::device;
using transport::QpState;

namespace {

constexpr uint32_t kEventSrqLimit = 15;
constexpr uint32_t kEventLastWqe = 16;
constexpr uint32_t kUd = 4;
constexpr uint32_t kXrcSend = 9;
constexpr uint32_t kXrcReceive = 10;

struct NoQueues final : WorkQueues, transport::SendQueue, transport::ReceiveQueue {
  bool pop(transport::SendWork&) noexcept override { return false; }
  void release(uint32_t) noexcept override {}
  bool pop(transport::ReceiveWork&) noexcept override { return false; }
  transport::SendQueue& send() noexcept override { return *this; }
  transport::ReceiveQueue& receive() noexcept override { return *this; }
  void show_state(QpState) noexcept override {}
  void reset() noexcept override {}
};

struct NoRing final : CompletionRing {
  bool push(const transport::Completion&) noexcept override { return true; }
  bool show() noexcept override { return false; }
  bool take_arm() noexcept override { return false; }
  bool take_over(CompletionRing&) noexcept override { return true; }
};

struct CountedRing final : ReceiveRing {
  explicit CountedRing(uint32_t& count_) : count(count_) {}
  bool pop(transport::ReceiveWork&) noexcept override { return count != 0 && count-- != 0; }
  uint32_t waiting() const noexcept override { return count; }
  bool take_over(ReceiveRing& old) noexcept override { return old.waiting() <= 16; }
  uint32_t& count;
};

using Events = std::vector<std::pair<uint64_t, uint32_t>>;

struct EventList final : EventChannel {
  explicit EventList(Events& list_) : list(list_) {}
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t element, uint32_t type) noexcept override {
    list.emplace_back(element, type);
    return true;
  }
  Events& list;
};

struct Neighbour final : AddressResolver {
  bool resolve(const wire::Gid& gid, MacAddress& mac) noexcept override {
    mac = {2, 0, 0, 0, 0, 9};
    return gid == default_config(1).port.gids[1].gid;
  }
};

DeviceLimits small() {
  DeviceLimits limits;
  limits.max_ah = 2;
  limits.max_srq = 2;
  limits.max_srq_wr = 16;
  limits.max_mcast_grp = 2;
  limits.max_mcast_qp_attach = 1;
  return limits;
}

HcaConfig config(const DeviceLimits& limits) {
  HcaConfig config = default_config(0);
  config.limits = limits;
  return config;
}

// A device and a program on it.
struct Stage {
  explicit Stage(const DeviceLimits& limits = small()) : hca(config(limits), {}, neighbour) {}

  Neighbour neighbour;
  Hca hca;
  Events events;
  ContextId context = *hca.open_context(nullptr, std::make_unique<EventList>(events));
  Handle pd = *hca.alloc_pd(context);
  Handle cq = *hca.create_cq(context, {16, 0, 0, 0}, std::make_unique<NoRing>());

  QpSpec spec(uint32_t type) const {
    QpSpec spec;
    spec.type = type;
    spec.pd = pd;
    spec.send_cq = spec.receive_cq = cq;
    spec.user_pointer = 0xabc;
    return spec;
  }
  Result<CreatedQp> create(const QpSpec& spec) {
    return hca.create_qp(context, spec, std::make_unique<NoQueues>());
  }
  AhAttr to_neighbour() const {
    AhAttr ah;
    ah.is_global = true;
    ah.sgid_index = 1;
    ah.port_num = 1;
    ah.dgid = default_config(1).port.gids[1].gid;
    return ah;
  }
};

wire::Gid group(unsigned number) {
  wire::Gid gid;
  gid.bytes[0] = 0xff;
  gid.bytes[14] = static_cast<uint8_t>(number >> 8);
  gid.bytes[15] = static_cast<uint8_t>(number);
  return gid;
}

}  // namespace

TEST_CASE("An address handle is resolved when it is made") {
  Stage stage;
  Hca& hca = stage.hca;
  AhAttr ah = stage.to_neighbour();
  const auto made = hca.create_ah(stage.context, stage.pd, ah);
  REQUIRE(made);
  CHECK(hca.dealloc_pd(stage.context, stage.pd) == EBUSY);
  CHECK(hca.create_ah(stage.context, 99, ah).error() == ENOENT);
  ah.port_num = 2;
  CHECK(hca.create_ah(stage.context, stage.pd, ah).error() == EINVAL);
  ah.port_num = 1;
  ah.dgid.bytes[15] = 77;
  CHECK(hca.create_ah(stage.context, stage.pd, ah).error() == EHOSTUNREACH);
  ah.sgid_index = 9;
  CHECK(hca.create_ah(stage.context, stage.pd, ah).error() == EINVAL);
  ah.sgid_index = 0;
  ah.dgid = group(1);  // whoever is in it
  REQUIRE(hca.create_ah(stage.context, stage.pd, ah));
  CHECK(hca.create_ah(stage.context, stage.pd, ah).error() == ENOMEM);
  CHECK(hca.destroy_ah(stage.context, *made) == 0);
  CHECK(hca.destroy_ah(stage.context, *made) == ENOENT);
  CHECK(hca.counts().ahs == 1);
}

TEST_CASE("An SRQ tells once when it holds less than its limit") {
  Stage stage;
  Hca& hca = stage.hca;
  uint32_t posted = 8;
  SrqSpec spec{.pd = stage.pd, .max_wr = 17, .user_pointer = 0x5};
  CHECK(check_srq(small(), spec) == EINVAL);
  spec.max_wr = 0;
  CHECK(check_srq(small(), spec) == EINVAL);
  spec.max_wr = 8;
  const auto srq = hca.create_srq(stage.context, spec, std::make_unique<CountedRing>(posted));
  REQUIRE(srq);
  CHECK(hca.set_srq_limit(stage.context, srq->srq, 9) == EINVAL);
  CHECK(hca.set_srq_limit(stage.context, srq->srq, 4) == 0);
  CHECK(*hca.srq_limit(stage.context, srq->srq) == 4);
  hca.publish_completions(0);
  CHECK(stage.events.empty());
  // Armed with less than the limit posted, it tells at once.
  posted = 3;
  CHECK(hca.set_srq_limit(stage.context, srq->srq, 4) == 0);
  hca.publish_completions(0);
  CHECK(stage.events == Events{{0x5, kEventSrqLimit}});
  CHECK(*hca.srq_limit(stage.context, srq->srq) == 0);

  // Resized: not under what is armed, not over what the device has.
  uint32_t after = 3;
  const auto resize = [&](uint32_t max_wr) {
    std::unique_ptr<ReceiveRing> ring = std::make_unique<CountedRing>(after);
    const int error = hca.resize_srq(stage.context, srq->srq, max_wr, ring);
    CHECK((ring == nullptr) == (error == 0));
    return error;
  };
  CHECK(hca.set_srq_limit(stage.context, srq->srq, 2) == 0);
  CHECK(resize(0) == EINVAL);
  CHECK(resize(1) == EINVAL);
  CHECK(resize(17) == EINVAL);
  CHECK(resize(16) == 0);
  CHECK(hca.set_srq_limit(stage.context, srq->srq, 16) == 0);
  hca.publish_completions(0);
  stage.events.pop_back();
  CHECK(hca.set_srq_limit(stage.context, srq->srq, 0) == 0);

  QpSpec qp_spec = stage.spec(2);
  qp_spec.srq = srq->srq;
  const auto qp = stage.create(qp_spec);
  REQUIRE(qp);
  CHECK(hca.destroy_srq(stage.context, srq->srq).error() == EBUSY);
  QpAttr to_error;
  to_error.qp_state = static_cast<uint32_t>(QpState::error);
  REQUIRE(hca.modify_qp(stage.context, qp->qp, kState, to_error));
  hca.publish_completions(0);
  CHECK(stage.events.back() == std::pair<uint64_t, uint32_t>{0xabc, kEventLastWqe});
  CHECK(after == 3);
  REQUIRE(hca.destroy_qp(stage.context, qp->qp));
  CHECK(hca.destroy_srq(stage.context, srq->srq)->async == 2);
}

TEST_CASE("An XRC domain is one for all who open it by one file") {
  Stage stage;
  Hca& hca = stage.hca;
  XrcdSpec spec;
  CHECK(hca.open_xrcd(stage.context, spec).error() == EINVAL);
  spec.file = FileIdentity{1, 2};
  CHECK(hca.open_xrcd(stage.context, spec).error() == EAGAIN);
  spec.create = true;
  const auto first = hca.open_xrcd(stage.context, spec);
  REQUIRE(first);
  spec.exclusive = true;
  CHECK(hca.open_xrcd(stage.context, spec).error() == EINVAL);
  spec.create = spec.exclusive = false;

  Events others_events;
  const ContextId other = *hca.open_context(nullptr, std::make_unique<EventList>(others_events));
  const auto second = hca.open_xrcd(other, spec);
  REQUIRE(second);

  QpSpec receive = stage.spec(kXrcReceive);
  CHECK(stage.create(receive).error() == ENOENT);
  receive.xrcd = *first;
  const auto qp = stage.create(receive);
  REQUIRE(qp);
  CHECK(hca.close_xrcd(stage.context, *first) == EBUSY);
  CHECK(hca.open_qp(other, *second, wire::Qpn{12345}, 0).error() == EINVAL);
  const auto opened = hca.open_qp(other, *second, qp->qpn, 0xdef);
  REQUIRE(opened);

  // The QP outlives the one who made it.
  REQUIRE(hca.destroy_qp(stage.context, qp->qp));
  hca.close_context(stage.context);
  CHECK(hca.query_qp(other, opened->qp));
  QpAttr to_error;
  to_error.qp_state = static_cast<uint32_t>(QpState::error);
  REQUIRE(hca.modify_qp(other, opened->qp, kState, to_error));
  REQUIRE(hca.destroy_qp(other, opened->qp));
  CHECK(hca.endpoint().qp_count() == 0);
  CHECK(hca.close_xrcd(other, *second) == 0);
  CHECK(hca.open_xrcd(other, spec).error() == EAGAIN);
}

TEST_CASE("An XRC SRQ has a number and holds its domain and its CQ") {
  Stage stage;
  Hca& hca = stage.hca;
  uint32_t posted = 0;
  XrcdSpec own;
  own.create = true;
  const auto xrcd = hca.open_xrcd(stage.context, own);
  REQUIRE(xrcd);
  SrqSpec spec{.pd = stage.pd, .xrc = true, .max_wr = 4, .xrcd = *xrcd, .cq = 77};
  const auto make = [&] {
    return hca.create_srq(stage.context, spec, std::make_unique<CountedRing>(posted));
  };
  CHECK(make().error() == ENOENT);
  spec.cq = stage.cq;
  const auto srq = make();
  REQUIRE(srq);
  CHECK(srq->number.value != 0);
  CHECK(hca.destroy_cq(stage.context, stage.cq).error() == EBUSY);
  CHECK(hca.close_xrcd(stage.context, *xrcd) == EBUSY);
  QpSpec qp_spec = stage.spec(2);
  qp_spec.srq = srq->srq;  // XRC's are not for RC
  CHECK(stage.create(qp_spec).error() == EINVAL);
  QpSpec sender = stage.spec(kXrcSend);
  sender.receive_cq = 0;
  CHECK(stage.create(sender));
  REQUIRE(hca.destroy_srq(stage.context, srq->srq));
  CHECK(hca.close_xrcd(stage.context, *xrcd) == 0);
}

TEST_CASE("A program has three quarters of the multicast groups") {
  DeviceLimits limits;
  limits.max_mcast_grp = 400;
  Stage stage(limits);
  Hca& hca = stage.hca;
  const auto qp = stage.create(stage.spec(kUd));
  const ContextId other = *hca.open_context(nullptr, std::make_unique<EventList>(stage.events), 9);
  QpSpec spec = stage.spec(kUd);
  spec.pd = *hca.alloc_pd(other);
  spec.send_cq = spec.receive_cq = *hca.create_cq(other, {16, 0, 0, 0}, std::make_unique<NoRing>());
  const auto others = hca.create_qp(other, spec, std::make_unique<NoQueues>());
  REQUIRE((qp && others));
  for (unsigned i = 0; i < 300; ++i)
    REQUIRE(hca.attach_multicast(stage.context, qp->qp, group(i)) == 0);
  CHECK(hca.attach_multicast(stage.context, qp->qp, group(300)) == ENOMEM);
  CHECK(hca.attach_multicast(other, others->qp, group(300)) == 0);
  // One of a group that is there takes none.
  CHECK(hca.attach_multicast(stage.context, qp->qp, group(300)) == 0);
  hca.close_context(stage.context);
  for (unsigned i = 0; i < 299; ++i)
    REQUIRE(hca.attach_multicast(other, others->qp, group(i)) == 0);
  CHECK(hca.attach_multicast(other, others->qp, group(299)) == ENOMEM);
}

TEST_CASE("Only UD QPs are attached to multicast groups, and as many as there may be") {
  Stage stage;
  Hca& hca = stage.hca;
  const auto qp = stage.create(stage.spec(kUd));
  const auto other = stage.create(stage.spec(kUd));
  const auto connected = stage.create(stage.spec(2));
  REQUIRE((qp && other && connected));
  CHECK(hca.attach_multicast(stage.context, connected->qp, group(1)) == EINVAL);
  CHECK(hca.attach_multicast(stage.context, qp->qp, wire::Gid{}) == EINVAL);
  CHECK(hca.attach_multicast(stage.context, qp->qp, group(1)) == 0);
  CHECK(hca.attach_multicast(stage.context, qp->qp, group(1)) == 0);
  CHECK(hca.attach_multicast(stage.context, other->qp, group(1)) == ENOMEM);
  CHECK(hca.attach_multicast(stage.context, other->qp, group(2)) == 0);
  CHECK(hca.attach_multicast(stage.context, qp->qp, group(3)) == ENOMEM);
  CHECK(hca.detach_multicast(stage.context, qp->qp, group(2)) == EINVAL);
  CHECK(hca.destroy_qp(stage.context, qp->qp).error() == EBUSY);
  CHECK(hca.detach_multicast(stage.context, qp->qp, group(1)) == 0);
  CHECK(hca.destroy_qp(stage.context, qp->qp));
  CHECK(hca.attach_multicast(stage.context, other->qp, group(1)) == 0);
  hca.close_context(stage.context);
  CHECK(hca.endpoint().multicast_groups().group_count() == 0);
}
