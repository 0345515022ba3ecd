// The keys of a description: their names, what they take, an example.
#include <algorithm>
#include <functional>
#include <span>

#include "impairment/quantity.h"
#include "network/description/draft.h"
#include "network/description/values.h"

namespace rocemu::network {
namespace {

using impairment::Kind;
using impairment::Unit;

constexpr Unit kFactorUnits[] = {{"", kOneInPpm}};
constexpr Kind kAlpha{"a factor", kFactorUnits, 64 * uint64_t{kOneInPpm}, "64", "0.125"};
constexpr Kind kOversubscription{"a factor", kFactorUnits, 1000 * uint64_t{kOneInPpm}, "1000", "2"};

uint8_t priority_bits(const Values& values) {
  unsigned bits = 0;
  for (const std::string& value : values) bits |= 1u << number(value, 0, kPriorities - 1);
  return static_cast<uint8_t>(bits);
}

// "26=3": frames of DSCP 26 have priority 3.
void set_priority_of_dscp(Draft& draft, const Values& values) {
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    if (equals == std::string::npos) throw Wrong{quoted(value) + " is not DSCP=PRIORITY"};
    draft.settings.priority_of_dscp[number(value.substr(0, equals), 0, 63)] =
        static_cast<uint8_t>(number(value.substr(equals + 1), 0, kPriorities - 1));
  }
}

void set_weights(Draft& draft, const Values& values) {
  if (values.size() != kPriorities)
    throw Wrong{"there are " + std::to_string(values.size()) +
                " weights; 8 are wanted, priority 0's first"};
  for (size_t i = 0; i < kPriorities; ++i)
    draft.settings.switches.scheduling.weights[i] =
        static_cast<uint32_t>(number(values[i], 1, 1000));
}

EcnSettings& ecn(Draft& draft) {
  auto& ecn = draft.settings.switches.ecn;
  if (!ecn) ecn.emplace();
  return *ecn;
}
TrimSettings& trim(Draft& draft) {
  auto& trim = draft.settings.switches.trim;
  if (!trim) trim.emplace(TrimSettings{.keep_bytes = 64});
  return *trim;
}

using Apply = void (*)(Draft&, const Values&);
struct Key {
  const char* section;
  const char* name;
  const char* example;
  Apply apply;
};

template <std::optional<uint64_t> TopologyDraft::*Member>
void set_count(Draft& draft, const Values& values) {
  draft.topology.*Member = number(one(values), 1, 65536);
}
template <LinkDraft Draft::*Links>
void set_rate(Draft& draft, const Values& values) {
  (draft.*Links).rate_bits_per_s = positive(impairment::kRate, values);
}
template <LinkDraft Draft::*Links>
void set_delay(Draft& draft, const Values& values) {
  (draft.*Links).delay_ns = quantity(impairment::kDuration, values);
}
template <LinkDraft Draft::*Links>
void set_loss(Draft& draft, const Values& values) {
  (draft.*Links).loss_ppm = quantity(impairment::kProbability, values);
}
bool on_or_off(const Values& values) {
  return choice<bool>(values, {{"on", true}, {"off", false}});
}
uint64_t size(const Values& values) { return quantity(impairment::kSize, values); }

constexpr Key kKeys[] = {
    {"", "seed", "7",
     [](Draft& d, const Values& v) { d.settings.seed = number(one(v), 0, UINT64_MAX); }},
    {"", "overhead", "\"24b\"",
     [](Draft& d, const Values& v) {
       const uint64_t bytes = size(v);
       if (bytes > 1000) throw Wrong{quoted(v.front()) + " is more than 1kb"};
       d.settings.overhead_bytes = static_cast<uint32_t>(bytes);
     }},
    {"", "reroute", "\"1ms\"",
     [](Draft& d, const Values& v) { d.settings.reroute_ns = quantity(impairment::kDuration, v); }},
    {"", "failures", "[\"leaf0 spine1 down 1ms up 5ms\"]",
     [](Draft& d, const Values& v) { d.failures = v; }},
    {"topology", "kind", "\"leaf-spine\"",
     [](Draft& d, const Values& v) {
       d.topology.kind = choice<const char*>(v, {{"pair", "pair"},
                                                 {"dumbbell", "dumbbell"},
                                                 {"star", "star"},
                                                 {"leaf-spine", "leaf-spine"},
                                                 {"fat-tree", "fat-tree"},
                                                 {"list", "list"},
                                                 {"file", "file"}});
     }},
    {"topology", "left", "2", set_count<&TopologyDraft::left>},
    {"topology", "right", "2", set_count<&TopologyDraft::right>},
    {"topology", "hosts", "8", set_count<&TopologyDraft::hosts>},
    {"topology", "leaves", "8", set_count<&TopologyDraft::leaves>},
    {"topology", "spines", "8", set_count<&TopologyDraft::spines>},
    {"topology", "hosts_per_leaf", "16", set_count<&TopologyDraft::hosts_per_leaf>},
    {"topology", "k", "4", set_count<&TopologyDraft::k>},
    {"topology", "hosts_per_edge", "2", set_count<&TopologyDraft::hosts_per_edge>},
    {"topology", "oversubscription", "2",
     [](Draft& d, const Values& v) {
       d.topology.oversubscription_ppm = positive(kOversubscription, v);
     }},
    {"topology", "host_names", "[\"a\", \"b\"]",
     [](Draft& d, const Values& v) { d.topology.host_names = v; }},
    {"topology", "switch_names", "[\"s0\"]",
     [](Draft& d, const Values& v) { d.topology.switch_names = v; }},
    {"topology", "links", "[\"a s0\", \"b s0 rate=10gbit delay=5us\"]",
     [](Draft& d, const Values& v) { d.topology.links = v; }},
    {"topology", "file", "\"fat.txt\"",
     [](Draft& d, const Values& v) { d.topology.file = one(v); }},
    {"links", "rate", "\"100gbit\"", set_rate<&Draft::links>},
    {"links", "delay", "\"1us\"", set_delay<&Draft::links>},
    {"links", "loss", "\"0.01%\"", set_loss<&Draft::links>},
    {"fabric_links", "rate", "\"400gbit\"", set_rate<&Draft::fabric_links>},
    {"fabric_links", "delay", "\"1us\"", set_delay<&Draft::fabric_links>},
    {"fabric_links", "loss", "\"0.01%\"", set_loss<&Draft::fabric_links>},
    {"hosts", "queue", "\"1mb\"",
     [](Draft& d, const Values& v) {
       d.settings.host_queue_bytes = positive(impairment::kSize, v);
     }},
    {"switch", "buffer", "\"16mb\"",
     [](Draft& d, const Values& v) {
       d.settings.switches.buffer_bytes = positive(impairment::kSize, v);
     }},
    {"switch", "alpha", "1",
     [](Draft& d, const Values& v) {
       d.settings.switches.alpha_ppm = static_cast<uint32_t>(positive(kAlpha, v));
     }},
    {"switch", "queue_limit", "\"200kb\"",
     [](Draft& d, const Values& v) {
       d.settings.switches.queue_limit_bytes = positive(impairment::kSize, v);
     }},
    {"switch", "telemetry", "\"off\"",
     [](Draft& d, const Values& v) { d.settings.switches.telemetry = on_or_off(v); }},
    {"ecn", "kmin", "\"100kb\"", [](Draft& d, const Values& v) { ecn(d).kmin_bytes = size(v); }},
    {"ecn", "kmax", "\"400kb\"", [](Draft& d, const Values& v) { ecn(d).kmax_bytes = size(v); }},
    {"ecn", "pmax", "\"20%\"",
     [](Draft& d, const Values& v) {
       ecn(d).pmax_ppm = static_cast<uint32_t>(quantity(impairment::kProbability, v));
     }},
    {"ecn", "at_rate", "\"25gbit\"",
     [](Draft& d, const Values& v) { ecn(d).at_rate_bits_per_s = positive(impairment::kRate, v); }},
    {"ecn", "use", "\"off\"", [](Draft& d, const Values& v) { ecn(d).on = on_or_off(v); }},
    {"pfc", "priorities", "[3]",
     [](Draft& d, const Values& v) { d.settings.switches.pfc.lossless = priority_bits(v); }},
    {"pfc", "xoff", "\"200kb\"",
     [](Draft& d, const Values& v) {
       d.settings.switches.pfc.xoff_bytes = positive(impairment::kSize, v);
     }},
    {"pfc", "xon", "\"180kb\"",
     [](Draft& d, const Values& v) { d.settings.switches.pfc.xon_bytes = size(v); }},
    {"pfc", "alpha", "0.125",
     [](Draft& d, const Values& v) {
       d.settings.switches.pfc.alpha_ppm = static_cast<uint32_t>(positive(kAlpha, v));
     }},
    {"pfc", "resume_offset", "\"3kb\"",
     [](Draft& d, const Values& v) { d.settings.switches.pfc.resume_offset_bytes = size(v); }},
    {"pfc", "headroom", "\"100kb\"",
     [](Draft& d, const Values& v) {
       d.settings.switches.pfc.headroom_bytes = positive(impairment::kSize, v);
     }},
    {"pfc", "quanta", "65535",
     [](Draft& d, const Values& v) {
       d.settings.switches.pfc.quanta = static_cast<uint16_t>(number(one(v), 1, 65535));
     }},
    {"priorities", "by", "\"dscp\"",
     [](Draft& d, const Values& v) {
       d.settings.priority_by =
           choice<PriorityBy>(v, {{"dscp", PriorityBy::dscp}, {"pcp", PriorityBy::pcp}});
     }},
    {"priorities", "dscp", "[\"26=3\", \"48=6\"]", set_priority_of_dscp},
    {"priorities", "strict", "[6, 7]",
     [](Draft& d, const Values& v) { d.settings.switches.scheduling.strict = priority_bits(v); }},
    {"priorities", "weights", "[1, 1, 1, 4, 1, 1, 1, 1]", set_weights},
    {"priorities", "quantum", "\"1600b\"",
     [](Draft& d, const Values& v) {
       const uint64_t bytes = size(v);
       if (bytes < 64 || bytes > 1'000'000)
         throw Wrong{quoted(v.front()) + " is not from 64b to 1mb"};
       d.settings.switches.scheduling.quantum_bytes = static_cast<uint32_t>(bytes);
     }},
    {"paths", "by", "\"flow\"",
     [](Draft& d, const Values& v) {
       d.settings.switches.paths.by = choice<PathBy>(
           v, {{"flow", PathBy::flow}, {"flowlet", PathBy::flowlet}, {"packet", PathBy::packet}});
     }},
    {"paths", "gap", "\"50us\"",
     [](Draft& d, const Values& v) {
       d.settings.switches.paths.flowlet_gap_ns = quantity(impairment::kDuration, v);
     }},
    {"trimming", "keep", "\"64b\"",
     [](Draft& d, const Values& v) {
       const uint64_t bytes = size(v);
       if (bytes < 62 || bytes > 9000)
         throw Wrong{quoted(v.front()) + " is not from 62b, which IPv6 and UDP need, to 9kb"};
       trim(d).keep_bytes = static_cast<uint32_t>(bytes);
     }},
    {"trimming", "priority", "7",
     [](Draft& d, const Values& v) {
       trim(d).priority = static_cast<uint8_t>(number(one(v), 0, kPriorities - 1));
     }},
    {"trimming", "dscp", "45",
     [](Draft& d, const Values& v) { trim(d).dscp = static_cast<uint8_t>(number(one(v), 0, 63)); }},
    {"trimming", "use", "\"off\"", [](Draft& d, const Values& v) { trim(d).on = on_or_off(v); }},
};

std::string sections() {
  std::string names;
  std::string last;
  for (const Key& key : kKeys) {
    if (key.section == last) continue;
    last = key.section;
    names += (names.empty() ? "" : ", ") + last;
  }
  return names + ", switches.NAME";
}

}  // namespace

void apply_key(Draft& draft, const std::string& section, const std::string& name,
               const std::vector<std::string>& values) {
  const auto* const key = std::ranges::find_if(
      kKeys, [&](const Key& each) { return each.section == section && each.name == name; });
  if (key == std::end(kKeys)) {
    const std::string known = names_in(kKeys, section);
    if (known.empty())
      throw WrongKey{"", section, "there is no such section; there are " + sections()};
    throw WrongKey{section, name, "there is no such key; there are " + known};
  }
  try {
    key->apply(draft, values);
  } catch (const Wrong& wrong) {
    throw WrongKey{section, name, wrong.what + " (as in " + key->name + " = " + key->example + ")"};
  }
}

}  // namespace rocemu::network
