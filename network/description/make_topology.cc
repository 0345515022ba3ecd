#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

#include "base/read_file.h"
#include "impairment/quantity.h"
#include "network/description/draft.h"
#include "network/description/ns3_topology.h"
#include "network/description/values.h"
#include "network/topology/kinds.h"

namespace rocemu::network {
namespace {

constexpr uint64_t kMaxLinks = 1'000'000;

[[noreturn]] void fail(const std::string& key, const std::string& what) {
  throw WrongKey{"topology", key, what};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// The keys of [topology] that a kind needs, and those that it takes besides.
struct KindKeys {
  const char* kind;
  std::vector<std::string> needed;
  std::vector<std::string> possible;
};

std::vector<std::string> given(const TopologyDraft& draft) {
  std::vector<std::string> keys;
  const auto add = [&keys](bool is_given, const char* key) {
    if (is_given) keys.emplace_back(key);
  };
  add(draft.left.has_value(), "left");
  add(draft.right.has_value(), "right");
  add(draft.hosts.has_value(), "hosts");
  add(draft.leaves.has_value(), "leaves");
  add(draft.spines.has_value(), "spines");
  add(draft.hosts_per_leaf.has_value(), "hosts_per_leaf");
  add(draft.k.has_value(), "k");
  add(draft.hosts_per_edge.has_value(), "hosts_per_edge");
  add(draft.oversubscription_ppm.has_value(), "oversubscription");
  add(!draft.host_names.empty(), "host_names");
  add(!draft.switch_names.empty(), "switch_names");
  add(!draft.links.empty(), "links");
  add(!draft.file.empty(), "file");
  return keys;
}

void check_keys(const TopologyDraft& draft) {
  static const KindKeys kKinds[] = {
      {"pair", {}, {}},
      {"dumbbell", {"left", "right"}, {}},
      {"star", {"hosts"}, {}},
      {"leaf-spine", {"leaves", "spines", "hosts_per_leaf"}, {"oversubscription"}},
      {"fat-tree", {"k"}, {"hosts_per_edge", "oversubscription"}},
      {"list", {"host_names", "links"}, {"switch_names"}},
      {"file", {"file"}, {}},
  };
  if (draft.kind.empty())
    fail("kind", "it is missing; write pair, dumbbell, star, leaf-spine, fat-tree, list or file");
  const KindKeys& kind = *std::ranges::find(kKinds, draft.kind, &KindKeys::kind);
  const std::vector<std::string> keys = given(draft);
  const auto has = [](const std::vector<std::string>& list, const std::string& key) {
    return std::ranges::find(list, key) != list.end();
  };
  for (const std::string& key : kind.needed)
    if (!has(keys, key)) fail(key, "it is missing, and a " + draft.kind + " needs it");
  std::string allowed;
  for (const auto* list : {&kind.needed, &kind.possible})
    for (const std::string& key : *list) allowed += (allowed.empty() ? "" : ", ") + key;
  for (const std::string& key : keys)
    if (!has(kind.needed, key) && !has(kind.possible, key))
      fail(key, "a " + draft.kind + " has none; it has " + (allowed.empty() ? "no key" : allowed));
}

void check_links(uint64_t links) {
  if (links > kMaxLinks)
    fail("kind", "that would be " + std::to_string(links) + " links; at most " +
                     std::to_string(kMaxLinks) + " are possible");
}

// With an oversubscription the links upwards carry as much less than what their hosts can send.
KindLinks links_of(const Draft& draft, uint64_t hosts_below, uint64_t links_up) {
  KindLinks links;
  links.host = draft.links.over({});
  links.fabric = draft.fabric_links.over(links.host);
  if (!draft.topology.oversubscription_ppm) return links;
  if (draft.fabric_links.rate_bits_per_s)
    fail("oversubscription", "it says what [fabric_links] rate says too; give one of them");
  links.fabric.rate_bits_per_s = static_cast<uint64_t>(
      static_cast<unsigned __int128>(links.host.rate_bits_per_s) * hosts_below * 1'000'000 /
      links_up / *draft.topology.oversubscription_ppm);
  return links;
}

Topology make_leaf_spine(const Draft& draft) {
  const TopologyDraft& t = draft.topology;
  check_links(*t.leaves * (*t.hosts_per_leaf + *t.spines));
  return leaf_spine(static_cast<uint32_t>(*t.leaves), static_cast<uint32_t>(*t.spines),
                    static_cast<uint32_t>(*t.hosts_per_leaf),
                    links_of(draft, *t.hosts_per_leaf, *t.spines));
}

Topology make_fat_tree(const Draft& draft) {
  const uint64_t k = *draft.topology.k;
  if (k % 2 != 0 || k > 128) fail("k", std::to_string(k) + " is no even number from 2 to 128");
  const uint64_t hosts = draft.topology.hosts_per_edge.value_or(k / 2);
  check_links(k * k / 2 * (k + hosts));
  return fat_tree(static_cast<uint32_t>(k), static_cast<uint32_t>(hosts),
                  links_of(draft, hosts, k / 2));
}

// "rate=10gbit" and the like, over what [links] says.
void set_link(LinkSettings& link, const std::string& line, const std::string& word) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string name = word.substr(0, equals);
  const std::string value = word.substr(std::min(equals + 1, word.size()));
  const auto take = [&](const impairment::Kind& kind) {
    const impairment::ParsedQuantity parsed = impairment::parse_quantity(kind, value);
    if (!parsed.value) fail("links", quoted(line) + ": " + name + ": " + parsed.error);
    return *parsed.value;
  };
  if (name == "rate") {
    link.rate_bits_per_s = take(impairment::kRate);
  } else if (name == "delay") {
    link.delay_ns = take(impairment::kDuration);
  } else if (name == "loss") {
    link.loss_ppm = static_cast<uint32_t>(take(impairment::kProbability));
  } else {
    fail("links", quoted(line) + ": " + quoted(word) +
                      " is none of rate=, delay=, loss= (as in \"a s0 rate=10gbit delay=5us\")");
  }
}

Topology make_list(const Draft& draft) {
  Topology topology;
  std::map<std::string, uint32_t> nodes;
  const auto add = [&](const char* key, const std::string& name, uint32_t node) {
    if (words_of(name).size() != 1) fail(key, quoted(name) + " is no name; a word is one");
    if (!nodes.emplace(name, node).second) fail(key, quoted(name) + " is there twice");
  };
  for (const std::string& name : draft.topology.host_names)
    add("host_names", name, topology.add_host(name));
  for (const std::string& name : draft.topology.switch_names)
    add("switch_names", name, topology.add_switch(name));
  check_links(draft.topology.links.size());
  for (const std::string& line : draft.topology.links) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 2) fail("links", quoted(line) + " does not name two nodes (as in \"a s0\")");
    for (size_t i = 0; i < 2; ++i)
      if (!nodes.contains(words[i]))
        fail("links", quoted(line) + ": there is no node " + quoted(words[i]) +
                          "; host_names and switch_names say which there are");
    const uint32_t a = nodes.at(words[0]);
    const uint32_t b = nodes.at(words[1]);
    LinkSettings link = draft.links.over({});
    if (topology.nodes[a].is_switch && topology.nodes[b].is_switch)
      link = draft.fabric_links.over(link);
    for (size_t i = 2; i < words.size(); ++i) set_link(link, line, words[i]);
    topology.connect(a, b, link);
  }
  return topology;
}

Topology read_topology(const std::filesystem::path& file) {
  const std::optional<std::string> text = read_file(file);
  if (!text) fail("file", quoted(file.string()) + " cannot be read");
  ParsedTopology parsed = parse_ns3_topology(*text);
  if (!parsed.topology) fail("file", file.string() + ": " + parsed.error);
  return std::move(*parsed.topology);
}

}  // namespace

Topology make_topology(const Draft& draft, const std::filesystem::path& directory) {
  check_keys(draft.topology);
  const TopologyDraft& t = draft.topology;
  const KindLinks links{draft.links.over({}), draft.fabric_links.over(draft.links.over({}))};
  if (t.kind == "pair") return pair(links.host);
  if (t.kind == "dumbbell")
    return dumbbell(static_cast<uint32_t>(*t.left), static_cast<uint32_t>(*t.right), links);
  if (t.kind == "star") return star(static_cast<uint32_t>(*t.hosts), links.host);
  if (t.kind == "leaf-spine") return make_leaf_spine(draft);
  if (t.kind == "fat-tree") return make_fat_tree(draft);
  if (t.kind == "file") return read_topology(directory / t.file);
  Topology topology = make_list(draft);
  if (const std::string wrong = problem(topology); !wrong.empty()) fail("links", wrong);
  return topology;
}

}  // namespace rocemu::network
