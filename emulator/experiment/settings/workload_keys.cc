// The keys of a workload: which there are, which kinds have them, what they take.
#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include "base/read_file.h"
#include "emulator/experiment/settings/draft.h"

namespace rocemu::experiment {

namespace {

using impairment::kDuration;
using impairment::kSize;

struct Context {
  const HostNames& hosts;
  const std::filesystem::path& directory;
};

std::string text_of(const std::filesystem::path& file) {
  std::optional<std::string> text = read_file(file);
  if (!text) throw Wrong{quoted(file.string()) + " cannot be read"};
  return std::move(*text);
}

Verb verb_of(const std::string& text) {
  return network::choice<Verb>({text}, {{"write", Verb::write},
                                        {"write_imm", Verb::write_imm},
                                        {"send", Verb::send},
                                        {"read", Verb::read}});
}

// A table that is part of rocemu, or a file.
SizeDistribution sizes_of(const std::string& text, const Context& context) {
  const std::string_view published = published_sizes(text);
  if (published.empty() && text.find_first_of("./") == std::string::npos)
    throw Wrong{quoted(text) + " is none of " + published_names() +
                ", nor a file (which has a dot or slash in its name)"};
  const ParsedSizes parsed =
      parse_sizes(published.empty() ? text_of(context.directory / text) : std::string(published));
  if (!parsed.error.empty()) throw Wrong{text + ": " + parsed.error};
  return parsed.sizes;
}

TracedFlow traced_flow(const std::string& line, const Context& context) {
  std::istringstream stream(line);
  const Values words{std::istream_iterator<std::string>(stream), {}};
  if (words.size() != 4 && words.size() != 5)
    throw Wrong{quoted(line) + " is not START FROM TO SIZE [VERB] (as in 10us h0 h3 1mb write)"};
  TracedFlow flow;
  flow.start_ns = quantity(kDuration, {words[0]});
  flow.from = context.hosts.find(words[1]);
  flow.to = context.hosts.find(words[2]);
  flow.bytes = positive(kSize, {words[3]});
  if (words.size() == 5) flow.verb = verb_of(words[4]);
  if (flow.from == flow.to) throw Wrong{quoted(line) + ": it is from a host to itself"};
  return flow;
}

std::vector<TracedFlow> trace_of(const std::string& file, const Context& context) {
  std::istringstream lines(text_of(context.directory / file));
  std::vector<TracedFlow> flows;
  std::string line;
  for (unsigned number = 1; std::getline(lines, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      flows.push_back(traced_flow(line, context));
    } catch (const Wrong& wrong) {
      throw Wrong{file + ": line " + std::to_string(number) + ": " + wrong.what};
    }
  }
  std::ranges::stable_sort(flows, {}, &TracedFlow::start_ns);
  return flows;
}

using W = WorkloadSettings;
constexpr unsigned bit(WorkloadKind kind) { return 1u << static_cast<unsigned>(kind); }
constexpr unsigned kPatterns =
    bit(WorkloadKind::incast) | bit(WorkloadKind::permutation) | bit(WorkloadKind::all_to_all);
constexpr unsigned kReduces = bit(WorkloadKind::ring_allreduce) | bit(WorkloadKind::tree_allreduce);
constexpr unsigned kPoisson = bit(WorkloadKind::poisson);
constexpr unsigned kTrace = bit(WorkloadKind::trace);
constexpr unsigned kAll = kPatterns | kReduces | kPoisson | kTrace;

struct Key {
  const char* name;
  unsigned kinds;   // kinds that have the key
  unsigned needed;  // kinds that need it
  const char* example;
  void (*apply)(W&, const Values&, const Context&);
};

constexpr Key kKeys[] = {
    {"kind", kAll, kAll, "\"incast\"", [](W&, const Values&, const Context&) {}},
    {"hosts", kAll & ~kTrace, 0, "[\"h0..h7\", \"h9\"]",
     [](W& w, const Values& v, const Context& c) { w.hosts = c.hosts.list(v); }},
    {"to", bit(WorkloadKind::incast), 0, "\"h0\"",
     [](W& w, const Values& v, const Context& c) { w.to = c.hosts.find(one(v)); }},
    {"senders", bit(WorkloadKind::incast), 0, "16",
     [](W& w, const Values& v, const Context& c) {
       const uint64_t senders = number(one(v), 1, c.hosts.count() - 1);
       std::erase(w.hosts, w.to);
       if (senders > w.hosts.size())
         throw Wrong{quoted(v.front()) + " is more than the " + std::to_string(w.hosts.size()) +
                     " of hosts"};
       w.hosts.resize(senders);
     }},
    {"verb", kPatterns | kPoisson, 0, "\"write\"",
     [](W& w, const Values& v, const Context&) { w.verb = verb_of(one(v)); }},
    {"flows", kPatterns, 0, "1",
     [](W& w, const Values& v, const Context&) {
       w.flows = static_cast<uint32_t>(number(one(v), 1, 1024));
     }},
    {"chunks", bit(WorkloadKind::tree_allreduce), 0, "8",
     [](W& w, const Values& v, const Context&) {
       w.chunks = static_cast<uint32_t>(number(one(v), 1, 4096));
     }},
    {"size", kPatterns | kReduces | kPoisson, kReduces, "\"1mb\"",
     [](W& w, const Values& v, const Context&) { w.bytes = positive(kSize, v); }},
    {"sizes", kPoisson, 0, "\"websearch\"",
     [](W& w, const Values& v, const Context& c) { w.sizes = sizes_of(one(v), c); }},
    {"load", kPoisson, kPoisson, "\"50%\"",
     [](W& w, const Values& v, const Context&) {
       w.load_ppm = static_cast<uint32_t>(positive(impairment::kProbability, v));
     }},
    {"file", kTrace, kTrace, "\"flows.txt\"",
     [](W& w, const Values& v, const Context& c) { w.trace = trace_of(one(v), c); }},
    {"at", kAll, 0, "\"100us\"",
     [](W& w, const Values& v, const Context&) { w.at_ns = quantity(kDuration, v); }},
    {"until", kAll, 0, "\"5ms\"",
     [](W& w, const Values& v, const Context&) { w.until_ns = positive(kDuration, v); }},
    {"every", kPatterns | kReduces, 0, "\"1ms\"",
     [](W& w, const Values& v, const Context&) { w.every_ns = positive(kDuration, v); }},
    {"rounds", kPatterns | kReduces, 0, "10",
     [](W& w, const Values& v, const Context&) {
       w.rounds = static_cast<uint32_t>(number(one(v), 1, UINT32_MAX));
     }},
};

std::string keys_of(WorkloadKind kind) {
  std::string names;
  for (const Key& key : kKeys)
    if ((key.kinds & bit(kind)) != 0) names += (names.empty() ? "" : ", ") + std::string(key.name);
  return names;
}

WorkloadKind kind_of(const Values& values) {
  return network::choice<WorkloadKind>(values, {{"incast", WorkloadKind::incast},
                                                {"permutation", WorkloadKind::permutation},
                                                {"all-to-all", WorkloadKind::all_to_all},
                                                {"ring-allreduce", WorkloadKind::ring_allreduce},
                                                {"tree-allreduce", WorkloadKind::tree_allreduce},
                                                {"poisson", WorkloadKind::poisson},
                                                {"trace", WorkloadKind::trace}});
}

void check_together(const WorkloadSettings& workload, const std::string& section) {
  const bool incast = workload.kind == WorkloadKind::incast;
  const size_t least = incast ? 1 : 2;
  if (workload.kind != WorkloadKind::trace && workload.hosts.size() < least)
    throw WrongKey{section, "hosts",
                   "there are " + std::to_string(workload.hosts.size()) + "; " +
                       std::to_string(least) + " at least are wanted" +
                       (incast ? " that send" : "")};
  if (workload.kind == WorkloadKind::poisson && workload.sizes.empty())
    throw WrongKey{section, "sizes",
                   "it is missing; write sizes = \"websearch\" or size = \"1mb\""};
  if (workload.bytes == 0 && workload.every_ns != 0)
    throw WrongKey{section, "every", "flows without a size have no end, so there is one round"};
}

// Also that the kind has all keys that are given.
WorkloadKind find_kind(const WorkloadDraft& draft, const std::string& section) {
  const auto named = draft.given.find("kind");
  if (named == draft.given.end())
    throw WrongKey{section, "kind",
                   "it is missing; write incast, permutation, all-to-all, ring-allreduce, "
                   "tree-allreduce, poisson or trace"};
  WorkloadKind kind{};
  try {
    kind = kind_of(named->second);
  } catch (const Wrong& wrong) {
    throw WrongKey{section, "kind", wrong.what};
  }
  for (const auto& each : draft.given) {
    const auto* const key =
        std::ranges::find_if(kKeys, [&](const Key& row) { return row.name == each.first; });
    if (key == std::end(kKeys) || (key->kinds & bit(kind)) == 0)
      throw WrongKey{section, each.first,
                     named->second.front() + " has no such key; it has " + keys_of(kind)};
  }
  return kind;
}

// In the order of the table: how many senders there are depends on hosts and receiver.
void apply_keys(WorkloadSettings& workload, const WorkloadDraft& draft, const Context& context,
                const std::string& section) {
  for (const Key& key : kKeys) {
    const std::string example = " (as in " + std::string(key.name) + " = " + key.example + ")";
    const auto given = draft.given.find(key.name);
    if (given == draft.given.end()) {
      if ((key.needed & bit(workload.kind)) != 0)
        throw WrongKey{section, key.name, "it is missing" + example};
      continue;
    }
    try {
      key.apply(workload, given->second, context);
    } catch (const Wrong& wrong) {
      throw WrongKey{section, key.name, wrong.what + example};
    }
  }
}

}  // namespace

HostNames::HostNames(const network::Topology& topology) {
  uint32_t number = 0;
  for (const uint32_t node : topology.hosts()) names_[topology.nodes[node].name] = number++;
}

uint32_t HostNames::find(const std::string& name) const {
  const auto found = names_.find(name);
  if (found == names_.end())
    throw Wrong{"there is no host " + quoted(name) + "; there are " +
                std::to_string(names_.size()) + ", the first is " + quoted(names_.begin()->first)};
  return found->second;
}

std::vector<uint32_t> HostNames::list(const Values& names) const {
  std::vector<uint32_t> hosts;
  for (const std::string& name : names) {
    const size_t dots = name.find("..");
    const uint32_t first = find(name.substr(0, dots));
    const uint32_t last = dots == std::string::npos ? first : find(name.substr(dots + 2));
    if (last < first) throw Wrong{quoted(name) + ": the second comes before the first"};
    for (uint32_t host = first; host <= last; ++host) {
      if (std::ranges::find(hosts, host) != hosts.end())
        throw Wrong{quoted(name) + " is there twice"};
      hosts.push_back(host);
    }
  }
  return hosts;
}

WorkloadSettings make_workload_settings(const std::string& name, const WorkloadDraft& draft,
                                        const HostNames& hosts,
                                        const std::filesystem::path& directory,
                                        TimeNs duration_ns) {
  const std::string section = "workload." + name;
  WorkloadSettings workload;
  workload.name = name;
  workload.until_ns = duration_ns;
  for (uint32_t host = 0; host < hosts.count(); ++host) workload.hosts.push_back(host);
  workload.kind = find_kind(draft, section);
  apply_keys(workload, draft, {hosts, directory}, section);
  if (workload.kind == WorkloadKind::incast) std::erase(workload.hosts, workload.to);
  if (workload.kind == WorkloadKind::poisson && workload.sizes.empty() && workload.bytes != 0)
    workload.sizes = SizeDistribution(workload.bytes);
  check_together(workload, section);
  return workload;
}

}  // namespace rocemu::experiment
