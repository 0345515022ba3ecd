// The answers to what verbs_shim/abi/services.h asks for, but for opened QPs.
#include <algorithm>
#include <array>
#include <iterator>

#include "tests/fuzz/control/answers.h"
#include "tests/fuzz/expect.h"
#include "verbs_shim/abi/services.h"

namespace rocemu::fuzz {
namespace {

using AboutHandle = Exchange<rocemu_handle_message>;

void create_ah(Model& model, const Exchange<rocemu_create_ah>& e) {
  if (e.status() != 0) return;
  expect(model.pds.contains(e.request.pd), "an address handle has a PD");
  expect(model.ahs.emplace(e.reply<rocemu_handle_message>().handle, Model::Ah{e.request.pd}).second,
         "a new address handle has a new handle");
  ++model.pds.at(e.request.pd).users;
}

void destroy_ah(Model& model, const AboutHandle& e) {
  const auto found = model.ahs.find(e.request.handle);
  expect(e.status() == (found == model.ahs.end() ? ENOENT : 0), "an address handle can always go");
  if (e.status() != 0) return;
  --model.pds.at(found->second.pd).users;
  model.ahs.erase(found);
}

void create_srq(Model& model, const Exchange<rocemu_create_srq>& e) {
  if (e.status() != 0) return;
  const auto reply = e.reply<rocemu_create_srq_reply>();
  expect(reply.entries >= e.request.max_wr && reply.max_sge >= e.request.max_sge,
         "an SRQ has what was asked for");
  expect(e.answer.fds.size() == 1, "an SRQ comes with its memory");
  Model::Srq srq;
  srq.pd = e.request.pd;
  srq.memory = map(e.answer.fds[0].get(), reply.memory_bytes);
  srq.number = reply.srq_num;
  expect(model.pds.contains(srq.pd), "an SRQ has a PD");
  ++model.pds.at(srq.pd).users;
  if (e.request.srq_type == ROCEMU_SRQ_XRC) {
    srq.cq = e.request.cq;
    srq.xrcd = e.request.xrcd;
    expect(model.cqs.contains(srq.cq) && model.xrcds.contains(srq.xrcd),
           "an SRQ of XRC has a CQ and a domain");
    ++model.cqs.at(srq.cq).users;
    ++model.xrcds.at(srq.xrcd).users;
  }
  if (e.request.srq_type == ROCEMU_SRQ_TM) {
    srq.cq = e.request.cq;
    srq.has_tags = true;
    expect(model.cqs.contains(srq.cq), "an SRQ that matches tags has a CQ");
    ++model.cqs.at(srq.cq).users;
  }
  expect(model.srqs.emplace(reply.srq, std::move(srq)).second, "a new SRQ has a new handle");
}

void modify_srq(Model& model, const Exchange<rocemu_srq_limit>& e) {
  expect(may_be_refused(model.srqs, e.request.srq, e.status()),
         "an SRQ that exists takes a limit that it can reach");
}

void query_srq(Model& model, const Exchange<rocemu_srq_limit>& e) {
  expect((e.status() == 0) == model.srqs.contains(e.request.srq),
         "an SRQ that exists can be queried");
}

void change_tags(Model& model, const Exchange<rocemu_change_tags>& e) {
  if (e.status() != 0) return;
  const auto found = model.srqs.find(e.request.srq);
  expect(found != model.srqs.end() && found->second.has_tags, "an SRQ with tags has them changed");
  expect((e.reply<rocemu_handle_message>().handle != 0) == (e.request.operation == 0),
         "what is added has a handle");
}

void resize_srq(Model& model, const Exchange<rocemu_resize_srq>& e) {
  expect(may_be_refused(model.srqs, e.request.srq, e.status()),
         "an SRQ that exists is resized, if what waits in it fits");
  if (e.status() != 0) return;
  expect(e.answer.fds.size() == 1, "a resized SRQ comes with its memory");
  model.srqs.at(e.request.srq).memory =
      map(e.answer.fds[0].get(), e.reply<rocemu_create_srq_reply>().memory_bytes);
}

void destroy_srq(Model& model, const AboutHandle& e) {
  expect(e.status() == expected_outcome(model.srqs, e.request.handle),
         "an SRQ goes when no QP uses it");
  if (e.status() != 0) return;
  const Model::Srq& srq = model.srqs.at(e.request.handle);
  --model.pds.at(srq.pd).users;
  if (srq.cq != 0) --model.cqs.at(srq.cq).users;
  if (srq.xrcd != 0) --model.xrcds.at(srq.xrcd).users;
  model.srqs.erase(e.request.handle);
}

void open_xrcd(Model& model, const Exchange<rocemu_open_xrcd>& e) {
  if (e.status() != 0) return;
  expect(model.xrcds.emplace(e.reply<rocemu_handle_message>().handle, Model::Xrcd{}).second,
         "a new domain has a new handle");
}

void close_xrcd(Model& model, const AboutHandle& e) {
  expect(e.status() == expected_outcome(model.xrcds, e.request.handle),
         "a domain goes when nothing is in it");
  if (e.status() == 0) model.xrcds.erase(e.request.handle);
}

void change_mcast(Model& model, const Exchange<rocemu_mcast>& e) {
  if (e.status() != 0) return;
  std::array<uint8_t, 16> group{};
  std::copy(std::begin(e.request.gid), std::end(e.request.gid), group.begin());
  const auto found = model.qps.find(e.request.qp);
  expect(found != model.qps.end(), "only a QP that exists joins and leaves");
  if (e.request.header.op == ROCEMU_OP_ATTACH_MCAST)
    found->second.groups.insert(group);
  else
    expect(found->second.groups.erase(group) == 1, "who leaves was there");
}

}  // namespace

std::span<const Check> service_checks() {
  static constexpr Check kChecks[] = {
      {ROCEMU_OP_CREATE_AH, &CheckOf<create_ah>::run},
      {ROCEMU_OP_DESTROY_AH, &CheckOf<destroy_ah>::run},
      {ROCEMU_OP_CREATE_SRQ, &CheckOf<create_srq>::run},
      {ROCEMU_OP_MODIFY_SRQ, &CheckOf<modify_srq>::run},
      {ROCEMU_OP_CHANGE_TAGS, &CheckOf<change_tags>::run},
      {ROCEMU_OP_QUERY_SRQ, &CheckOf<query_srq>::run},
      {ROCEMU_OP_RESIZE_SRQ, &CheckOf<resize_srq>::run},
      {ROCEMU_OP_DESTROY_SRQ, &CheckOf<destroy_srq>::run},
      {ROCEMU_OP_OPEN_XRCD, &CheckOf<open_xrcd>::run},
      {ROCEMU_OP_CLOSE_XRCD, &CheckOf<close_xrcd>::run},
      {ROCEMU_OP_ATTACH_MCAST, &CheckOf<change_mcast>::run},
      {ROCEMU_OP_DETACH_MCAST, &CheckOf<change_mcast>::run},
  };
  return kChecks;
}

}  // namespace rocemu::fuzz
