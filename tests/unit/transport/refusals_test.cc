// The table of refusals: its rows are consistent, and RC and UC do what their rows say.
#include "emulator/transport/responder/refusals.h"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

using Kind = Reaction::Kind;

wire::ExtendedHeaders atomic(const Buffer& far, uint32_t offset) {
  wire::ExtendedHeaders ext;
  ext.atomic = {far.address + offset, wire::RKey{far.key}, 1, 0};
  return ext;
}

// How to draw each refusal from b.
const std::map<Refusal, std::function<void(Pair&)>> kRequests = {
    {Refusal::repeated_psn,
     [](Pair& p) { p.inject(p.b, Operation::send_only, kPsn - 1, {}, filled(8)); }},
    {Refusal::out_of_sequence_psn,
     [](Pair& p) { p.inject(p.b, Operation::send_only, kPsn + 1, {}, filled(8)); }},
    {Refusal::receiver_not_ready,
     [](Pair& p) { p.inject(p.b, Operation::send_only, kPsn, {}, filled(8)); }},
    {Refusal::opcode_sequence,
     [](Pair& p) { p.inject(p.b, Operation::send_last, kPsn, {}, filled(8)); }},
    {Refusal::payload_length,
     [](Pair& p) { p.inject(p.b, Operation::send_first, kPsn, {}, filled(8)); }},
    {Refusal::access_not_enabled,
     [](Pair& p) {
       p.b.attributes.access = 0;
       p.b.modify(QpState::ready_to_send);
       p.inject(p.b, Operation::write_only, kPsn, reth(p.b.buffer(8), 8), filled(8));
     }},
    {Refusal::bad_rkey,
     [](Pair& p) {
       const Buffer far = p.b.buffer(8, 0, kLocalWrite);
       p.inject(p.b, Operation::write_only, kPsn, reth(far, 8), filled(8));
     }},
    {Refusal::dma_length,
     [](Pair& p) {
       p.inject(p.b, Operation::write_only, kPsn, reth(p.b.buffer(9), 9), filled(8));
     }},
    {Refusal::message_too_long,
     [](Pair& p) {
       p.inject(p.b, Operation::write_first, kPsn, reth(p.b.buffer(8), 0x80000001), filled(1024));
     }},
    {Refusal::atomic_length,
     [](Pair& p) {
       p.inject(p.b, Operation::atomic_write, kPsn, reth(p.b.buffer(8), 4), filled(4));
     }},
    {Refusal::misaligned_atomic,
     [](Pair& p) { p.inject(p.b, Operation::fetch_add, kPsn, atomic(p.b.buffer(16), 4)); }},
    {Refusal::too_many_rd_atomics,
     [](Pair& p) {
       p.b.attributes.max_dest_rd_atomic = 0;
       p.b.modify(QpState::ready_to_send);
       p.inject(p.b, Operation::fetch_add, kPsn, atomic(p.b.buffer(8), 0));
     }},
    {Refusal::receive_malformed,
     [](Pair& p) {
       p.b.receive_queue.post({.wr_id = 1, .fault = WcStatus::local_qp_operation_error});
       p.inject(p.b, Operation::send_only, kPsn, {}, filled(8));
     }},
    {Refusal::receive_too_short,
     [](Pair& p) {
       p.b.receive(1, {p.b.buffer(7).sge()});
       p.inject(p.b, Operation::send_only, kPsn, {}, filled(8));
     }},
    {Refusal::receive_protection,
     [](Pair& p) {
       p.b.receive(1, {p.b.buffer(8, 0, kLocalRead).sge()});
       p.inject(p.b, Operation::send_only, kPsn, {}, filled(8));
     }},
    {Refusal::bad_invalidate,
     [](Pair& p) {
       p.b.receive(1, {p.b.buffer(8).sge()});
       wire::ExtendedHeaders ext;
       ext.invalidate.value = 77;
       p.inject(p.b, Operation::send_only_invalidate, kPsn, ext, filled(8));
     }},
    {Refusal::remote_memory_lost,
     [](Pair& p) {
       const Buffer far = p.b.buffer(8);
       p.b.node().memory().break_region(far.key);
       p.inject(p.b, Operation::write_only, kPsn, reth(far, 8), filled(8));
     }},
    {Refusal::receive_memory_lost,
     [](Pair& p) {
       const Buffer far = p.b.buffer(2000);
       p.b.node().memory().break_region(far.key);
       p.b.receive(1, {far.sge()});
       p.inject(p.b, Operation::send_first, kPsn, {}, filled(1024));
     }},
    {Refusal::completed_receive_memory_lost,
     [](Pair& p) {
       const Buffer far = p.b.buffer(8);
       p.b.node().memory().break_region(far.key);
       p.b.receive(1, {far.sge()});
       p.inject(p.b, Operation::send_only, kPsn, {}, filled(8));
     }},
};

// Hears by which rules packets are refused.
class RefusalRecorder : public Observer {
 public:
  void on_event(wire::Qpn, TraceEvent, uint32_t) noexcept override {}
  void on_refusal(wire::Qpn, Refusal refusal, uint32_t) noexcept override {
    refusals.push_back(refusal);
  }
  std::vector<Refusal> refusals;
};

// Drawn over XRC alone, or with selective repeat, by tests of their own (shared_receives_test.cc,
// selective_repeat_test.cc).
const std::set<Refusal> kDrawnElsewhere = {Refusal::unknown_srq, Refusal::other_srq,
                                           Refusal::wrong_place};

}  // namespace

TEST_CASE("Each refusal has one row, with a name, a clause and a reaction") {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kRefusalRules.size(); ++i) {
    const RefusalRule& rule = kRefusalRules[i];
    CAPTURE(std::string(rule.name));
    CHECK(static_cast<size_t>(rule.refusal) == i);
    CHECK(&rule_of(rule.refusal) == &rule);
    CHECK(names.insert(rule.name).second);
    if (rule.refusal == Refusal::none) continue;
    CHECK_FALSE(rule.clause.empty());
    bool possible = false;
    for (const Reaction& reaction : {rule.rc, rule.uc, rule.ud}) {
      possible = possible || reaction.kind != Kind::impossible;
      CHECK(!reaction.event == (reaction.kind == Kind::impossible));
    }
    CHECK(possible);
    // Nothing but a failure has an event or costs a receive its status, and only RC sends NAKs.
    CHECK((rule.uc.kind != Kind::nak && rule.ud.kind != Kind::nak));
    CHECK((rule.syndrome != 0) == (rule.rc.kind == Kind::nak || rule.rc.kind == Kind::fail));
    const bool fails = rule.rc.kind == Kind::fail;
    CHECK((fails || (!rule.event && rule.receive_status == WcStatus::flush_error)));
    CHECK((!fails || rule.syndrome > wire::syndrome::kNakSequence));
  }
  CHECK(names.size() == static_cast<size_t>(Refusal::completed_receive_memory_lost) + 1);
}

TEST_CASE("RC answers each refusal as its row says") {
  for (const RefusalRule& rule : kRefusalRules) {
    if (rule.rc.kind != Kind::nak && rule.rc.kind != Kind::fail) continue;
    if (kDrawnElsewhere.count(rule.refusal) != 0) continue;
    CAPTURE(std::string(rule.name));
    RefusalRecorder recorder;
    Pair pair;
    pair.b.endpoint().set_observer(&recorder);
    kRequests.at(rule.refusal)(pair);
    pair.drive();
    CHECK(recorder.refusals == std::vector{rule.refusal});
    const std::vector<Sent> answers = pair.sent_by(pair.b, Operation::acknowledge);
    REQUIRE(answers.size() == 1);
    const bool rnr = wire::syndrome::is_rnr(rule.syndrome);
    CHECK(answers[0].ext.aeth.syndrome ==
          (rnr ? rule.syndrome | pair.b.attributes.min_rnr_timer : rule.syndrome));
    CHECK(pair.b.counters()[*rule.rc.event] == 1);
    CHECK((pair.b.state() == QpState::error) == (rule.rc.kind == Kind::fail));
    const bool by_status = !pair.b.receive_cq.completions.empty();
    if (by_status && rule.receive_status != WcStatus::flush_error)
      CHECK(statuses(pair.b.receive_cq) == std::vector{rule.receive_status});
    CHECK(pair.b.events() ==
          (by_status || !rule.event ? std::vector<QpEvent>{} : std::vector<QpEvent>{*rule.event}));
  }
}

TEST_CASE("UC drops a message or fails as the row says, without an answer") {
  PairOptions options;
  options.a_service = options.b_service = Service::uc;
  for (const auto& [refusal, request] : kRequests) {
    const RefusalRule& rule = rule_of(refusal);
    if (rule.uc.kind == Kind::impossible) continue;
    CAPTURE(std::string(rule.name));
    RefusalRecorder recorder;
    Pair pair(options);
    pair.b.endpoint().set_observer(&recorder);
    request(pair);
    pair.drive();
    CHECK(recorder.refusals.at(0) == refusal);
    CHECK(pair.sent.empty());
    CHECK(pair.b.counters()[*rule.uc.event] == 1);
    CHECK((pair.b.state() == QpState::error) == (rule.uc.kind == Kind::fail));
    if (rule.uc.kind != Kind::fail) CHECK(pair.b.receive_cq.completions.empty());
  }
}

}  // namespace rocemu::transport_test
