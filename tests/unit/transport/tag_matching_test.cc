// Tag matching on a network that loses packets: each buffer is taken once, whatever comes again.
#include <catch2/catch.hpp>
#include <cstring>

#include "base/byte_order.h"
#include "base/random.h"
#include "emulator/device/objects/tag_matcher.h"
#include "tests/unit/transport/pair.h"

using namespace rocemu::transport_test;
using namespace rocemu;
using verbs::TagOperation;

namespace {

// `b` has a list of tags; what it matches completes to its receive CQ.
class TaggedPair {
 public:
  device::TagList tags{64};
  std::unique_ptr<device::TagMatcher> matcher;
  Pair pair{options()};

  // A buffer for `tag`, which is also its wr_id.
  Buffer add(uint64_t tag, uint32_t bytes) {
    const Buffer buffer = pair.b.buffer(bytes);
    device::TagOp op;
    op.receive_wr_id = op.tag = tag;
    op.mask = ~uint64_t{0};
    op.sges = {buffer.sge()};
    REQUIRE(tags.add(op));
    return buffer;
  }

  // The first bytes of `message` become its header; `offered` is what it offers.
  void send_tagged(const Buffer& message, TagOperation operation, uint64_t tag,
                   const Buffer* offered = nullptr) {
    const auto at = pair.a.node().memory().at(message.address, message.length_bytes);
    std::memset(at.data(), 0, TagHeader::kBytes);
    at[0] = static_cast<std::byte>(operation);
    store_be64(&at[8], tag);
    if (offered != nullptr) {
      store_be64(&at[16], offered->address);
      store_be32(&at[24], offered->key);
      store_be32(&at[28], offered->length_bytes);
    }
    pair.a.post(send(message, tag));
  }

 private:
  PairOptions options() {
    PairOptions options;
    options.retry_count = 7;
    options.equip_b = [this](Host& b, QpResources& resources) {
      matcher = std::make_unique<device::TagMatcher>(tags, b.send_queue, b.send_cq, b.receive_cq,
                                                     resources.pd);
      resources.tags = matcher.get();
      resources.send_queue = matcher.get();
      resources.send_cq = matcher.get();
      resources.receives_are_shared = true;
    };
    return options;
  }
};

}  // namespace

TEST_CASE("Under loss each tag takes its buffer once, and each offer is read and told of once") {
  TaggedPair tagged;
  Pair& pair = tagged.pair;
  Random random(GENERATE(range(1, 9)));
  pair.lose = [&](const Sent&) { return random.below(8) == 0; };

  constexpr uint64_t kMessages = 24;
  std::vector<Buffer> sources;
  std::vector<Buffer> targets;
  for (uint64_t tag = 1; tag <= kMessages; ++tag) {
    const bool offers = tag % 3 == 0;
    const auto seed = static_cast<uint8_t>(tag);
    sources.push_back(pair.a.buffer(offers ? 7000 : 16 + 500 * static_cast<uint32_t>(tag), seed));
    targets.push_back(tagged.add(tag, 12000));
    if (!offers) {
      tagged.send_tagged(sources.back(), TagOperation::eager, tag);
      continue;
    }
    pair.a.receive(tag, {pair.a.buffer(kRendezvousBytes).sge()});
    tagged.send_tagged(pair.a.buffer(kRendezvousBytes), TagOperation::rendezvous, tag,
                       &sources.back());
  }
  pair.drive();

  CHECK(statuses(pair.a.send_cq) == std::vector(kMessages, WcStatus::success));
  CHECK(pair.a.receive_cq.completions.size() == kMessages / 3);
  CHECK(pair.b.send_cq.completions.empty());
  std::vector<unsigned> matches(kMessages + 1);
  std::vector<unsigned> arrivals(kMessages + 1);
  for (const Completion& completion : pair.b.receive_cq.completions) {
    CHECK(completion.status == WcStatus::success);
    CHECK(completion.opcode == WcOpcode::tm_receive);
    const bool match = (completion.tag_flags & verbs::wc_flag::kTmMatch) != 0;
    if (match) CHECK(completion.tag() == completion.wr_id);
    matches.at(completion.wr_id) += match;
    arrivals.at(completion.wr_id) += (completion.tag_flags & verbs::wc_flag::kTmDataValid) != 0;
  }
  for (uint64_t tag = 1; tag <= kMessages; ++tag) {
    CHECK(matches[tag] == 1);
    CHECK(arrivals[tag] == 1);
    const size_t header = tag % 3 == 0 ? 0 : TagHeader::kBytes;
    const auto sent = pair.a.bytes(sources[tag - 1]);
    const auto got = pair.b.bytes(targets[tag - 1]);
    CHECK(std::memcmp(got.data(), sent.data() + header, sent.size() - header) == 0);
  }
}

TEST_CASE("What an offer's READ was to fill is free again when the QP fails or is reset") {
  TaggedPair tagged;
  Pair& pair = tagged.pair;
  const Buffer offered = pair.a.buffer(5000, 1);
  tagged.add(1, 5000);
  pair.lose = [](const Sent& frame) { return frame.operation == Operation::read_request; };
  tagged.send_tagged(pair.a.buffer(kRendezvousBytes), TagOperation::rendezvous, 1, &offered);
  pair.run_for(1 * kMs);
  REQUIRE(pair.b.receive_cq.completions.size() == 1);
  SECTION("it fails") {
    pair.b.modify(QpState::error);
    REQUIRE(pair.b.receive_cq.completions.size() == 2);
    CHECK(pair.b.receive_cq.completions[1].status == WcStatus::flush_error);
    CHECK(pair.b.receive_cq.completions[1].wr_id == 1);
    CHECK(pair.b.send_cq.completions.empty());
  }
  SECTION("it is reset") {
    pair.b.modify(QpState::reset);
    tagged.matcher->reset();
  }
  for (uint64_t tag = 1; tag <= 64; ++tag) tagged.add(tag, 8);
}
