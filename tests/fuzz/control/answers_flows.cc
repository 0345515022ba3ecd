// The answers about flows, their counters and the rates of QPs.
#include "tests/fuzz/control/answers.h"
#include "tests/fuzz/expect.h"
#include "verbs_shim/abi/services.h"

namespace rocemu::fuzz {
namespace {

using AboutHandle = Exchange<rocemu_handle_message>;

void limit_qp_rate(Model& model, const Exchange<rocemu_limit_qp_rate>& e) {
  expect(may_be_refused(model.qps, e.request.qp, e.status()),
         "the rate of a QP that exists can be limited in most states");
}

void create_flow(Model& model, const Exchange<rocemu_create_flow>& e) {
  if (e.status() != 0) return;
  expect(e.request.qp_count >= 1 && e.request.qp_count <= ROCEMU_FLOW_RECEIVERS_MAX,
         "a flow leads to as many QPs as its request can name");
  Model::Flow flow;
  flow.qps.assign(e.request.qps, e.request.qps + e.request.qp_count);
  flow.counters = e.request.counters;
  for (const uint32_t qp : flow.qps) {
    expect(model.qps.contains(qp), "a flow leads to QPs that exist");
    ++model.qps.at(qp).flows;
  }
  if (flow.counters != 0) {
    expect(model.counters.contains(flow.counters), "a flow counts with counters that exist");
    ++model.counters.at(flow.counters).users;
  }
  expect(model.flows.emplace(e.reply<rocemu_handle_message>().handle, std::move(flow)).second,
         "a new flow has a new handle");
}

void destroy_flow(Model& model, const AboutHandle& e) {
  const auto found = model.flows.find(e.request.handle);
  expect(e.status() == (found == model.flows.end() ? ENOENT : 0), "a flow can always go");
  if (e.status() != 0) return;
  for (const uint32_t qp : found->second.qps) --model.qps.at(qp).flows;
  if (found->second.counters != 0) --model.counters.at(found->second.counters).users;
  model.flows.erase(found);
}

void create_counters(Model& model, const AboutHandle& e) {
  if (e.status() != 0) return;
  expect(model.counters.emplace(e.reply<rocemu_handle_message>().handle, Model::Counters{}).second,
         "new counters have a new handle");
}

void destroy_counters(Model& model, const AboutHandle& e) {
  expect(e.status() == expected_outcome(model.counters, e.request.handle),
         "counters go when no flow counts with them");
  if (e.status() == 0) model.counters.erase(e.request.handle);
}

void read_counters(Model& model, const AboutHandle& e) {
  expect(e.status() == (model.counters.contains(e.request.handle) ? 0 : ENOENT),
         "counters that exist can be read");
}

}  // namespace

std::span<const Check> flow_checks() {
  static constexpr Check kChecks[] = {
      {ROCEMU_OP_LIMIT_QP_RATE, &CheckOf<limit_qp_rate>::run},
      {ROCEMU_OP_CREATE_FLOW, &CheckOf<create_flow>::run},
      {ROCEMU_OP_DESTROY_FLOW, &CheckOf<destroy_flow>::run},
      {ROCEMU_OP_CREATE_COUNTERS, &CheckOf<create_counters>::run},
      {ROCEMU_OP_DESTROY_COUNTERS, &CheckOf<destroy_counters>::run},
      {ROCEMU_OP_READ_COUNTERS, &CheckOf<read_counters>::run},
  };
  return kChecks;
}

}  // namespace rocemu::fuzz
