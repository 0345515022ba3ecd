#include "network/description/description.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/read_file.h"
#include "impairment/quantity.h"
#include "network/description/draft.h"
#include "network/description/values.h"
#include "network/switching/shared_buffer.h"
#include "network/topology/routes.h"

namespace rocemu::network {
namespace {

uint32_t find_link(const Topology& topology, const std::string& a, const std::string& b) {
  for (uint32_t i = 0; i < topology.links.size(); ++i) {
    const std::string& from = topology.nodes[topology.links[i].a].name;
    const std::string& to = topology.nodes[topology.links[i].b].name;
    if ((from == a && to == b) || (from == b && to == a)) return i;
  }
  return kNone;
}

void check_headroom(const Description& description, uint32_t node, const Routes& routes) {
  const SwitchSettings& settings = description.settings.of_node(node);
  const auto headroom = headroom_at(description.topology, settings, routes.ports_at(node));
  if (SharedBuffer::shared_bytes(settings, headroom) > 0) return;
  throw WrongKey{"switch", "buffer",
                 impairment::to_text(impairment::kSize, settings.buffer_bytes) +
                     " is not more than the headroom of the ports of " +
                     quoted(description.topology.nodes[node].name) +
                     "; more of it, or less of [pfc] headroom, is wanted"};
}

void check_switch(const SwitchSettings& settings) {
  if (settings.ecn && settings.ecn->kmin_bytes > settings.ecn->kmax_bytes)
    throw WrongKey{"ecn", "kmin", "it is more than kmax; at most that is possible"};
  const PfcSettings& pfc = settings.pfc;
  if (pfc.xoff_bytes == 0 && pfc.xon_bytes != 0)
    throw WrongKey{"pfc", "xon", "it goes with xoff; without that there is resume_offset"};
  if (pfc.xoff_bytes != 0 && pfc.xon_bytes >= pfc.xoff_bytes)
    throw WrongKey{"pfc", "xon", "it is not less than xoff"};
}

}  // namespace

LinkFailure parse_failure(const std::string& text, const Topology& topology) {
  const auto fail = [&](const std::string& what) {
    throw WrongKey{
        "", "failures",
        quoted(text) + ": " + what + " (as in \"leaf0 spine1 down 1ms up 5ms every 100ms\")"};
  };
  std::istringstream stream(text);
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  const bool repeats = words.size() == 8 && words[6] == "every";
  if ((words.size() != 6 && !repeats) || words[2] != "down" || words[4] != "up")
    fail("it does not say NODE NODE down TIME up TIME, or every TIME behind that");
  const auto time = [&](const std::string& word) {
    const impairment::ParsedQuantity parsed =
        impairment::parse_quantity(impairment::kDuration, word);
    if (!parsed.value) fail(parsed.error);
    return *parsed.value;
  };
  LinkFailure failure;
  failure.link = find_link(topology, words[0], words[1]);
  if (failure.link == kNone)
    fail("there is no link between " + quoted(words[0]) + " and " + quoted(words[1]));
  failure.down_ns = time(words[3]);
  failure.up_ns = time(words[5]);
  if (failure.up_ns <= failure.down_ns) fail("it comes back before it goes");
  if (!repeats) return failure;
  failure.every_ns = time(words[7]);
  if (failure.every_ns <= failure.up_ns - failure.down_ns)
    fail("it is down longer than until the next time");
  return failure;
}

void check(const Description& description) {
  const NetworkSettings& settings = description.settings;
  check_switch(settings.switches);
  for (const auto& [node, own] : settings.other_switches) {
    try {
      check_switch(own);
    } catch (WrongKey& wrong) {
      wrong.what = "of " + quoted(description.topology.nodes[node].name) + ": " + wrong.what;
      throw;
    }
  }
  const Routes routes(description.topology);
  for (uint32_t node = 0; node < description.topology.nodes.size(); ++node)
    if (description.topology.nodes[node].is_switch && settings.of_node(node).pfc.lossless != 0)
      check_headroom(description, node, routes);
}

ParsedDescription make_description(const std::vector<TomlKey>& keys,
                                   const std::filesystem::path& directory,
                                   const std::string& within) {
  try {
    Draft draft;
    for (const TomlKey& key : keys)
      if (!take_group_key(draft, key)) apply_key(draft, key.section, key.name, key.values);
    Description description;
    description.topology = make_topology(draft, directory);
    description.settings = draft.settings;
    description.settings.other_switches = settings_of_groups(draft, description.topology);
    for (const std::string& failure : draft.failures)
      description.settings.failures.push_back(parse_failure(failure, description.topology));
    check(description);
    return {std::move(description), {}};
  } catch (const WrongKey& wrong) {
    const std::string dot = within.empty() || wrong.section.empty() ? "" : ".";
    const std::string section = within + dot + wrong.section;
    return {std::nullopt,
            (section.empty() ? "" : "[" + section + "] ") + wrong.key + ": " + wrong.what};
  }
}

ParsedDescription parse_description(const std::string& text, const std::filesystem::path& name) {
  try {
    ParsedDescription parsed = make_description(read_toml(text), name.parent_path());
    if (!parsed.description) parsed.error = name.string() + ": " + parsed.error;
    return parsed;
  } catch (const NotToml& error) {
    return {std::nullopt, name.string() + ": it is no TOML: " + error.what};
  }
}

ParsedDescription read_description(const std::filesystem::path& file) {
  const std::optional<std::string> text = read_file(file);
  if (!text) return {std::nullopt, file.string() + ": it cannot be read"};
  return parse_description(*text, file);
}

}  // namespace rocemu::network
