#include "network/description/description.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "impairment/quantity.h"
#include "network/description/draft.h"
#include "network/switching/shared_buffer.h"
#include "network/topology/routes.h"

namespace rocemu::network {
namespace {

std::string quoted(const std::string& text) { return "'" + text + "'"; }

// Takes comments away, and makes one line of a list that has several, which CLI11 does not do of
// itself where the list begins at the end of a line or has comments in it.
std::string plain_lines(const std::string& text) {
  std::string plain;
  char quote = 0;
  bool comment = false;
  bool value = false;  // behind an equals sign
  int depth = 0;       // of brackets
  for (const char c : text) {
    if (c == '\n') {
      comment = false;
      quote = 0;
      value = depth > 0;
      plain += depth > 0 ? ' ' : c;
      continue;
    }
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '#') {
      comment = true;
    } else if (!comment && (c == '"' || c == '\'')) {
      quote = c;
    } else if (!comment) {
      value = value || c == '=';
      if (value) depth = std::max(0, depth + (c == '[') - (c == ']'));
    }
    if (!comment) plain += c;
  }
  return plain;
}

// The last one of a list may have a comma behind it.
std::vector<std::string> values_of(const CLI::ConfigItem& item) {
  std::vector<std::string> values = item.inputs;
  while (!values.empty() && values.back().empty()) values.pop_back();
  return values;
}

Draft read_keys(const std::string& text) {
  Draft draft;
  std::istringstream stream(plain_lines(text));
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(stream)) {
    if (item.name == "++" || item.name == "--") continue;  // a section begins, ends
    std::string section;
    for (const std::string& parent : item.parents) section += (section.empty() ? "" : ".") + parent;
    apply_key(draft, section, item.name, values_of(item));
  }
  return draft;
}

uint32_t find_link(const Topology& topology, const std::string& a, const std::string& b) {
  for (uint32_t i = 0; i < topology.links.size(); ++i) {
    const std::string& from = topology.nodes[topology.links[i].a].name;
    const std::string& to = topology.nodes[topology.links[i].b].name;
    if ((from == a && to == b) || (from == b && to == a)) return i;
  }
  return kNone;
}

void check_headroom(const Description& description) {
  const Routes routes(description.topology);
  const SwitchSettings& settings = description.settings.switches;
  for (uint32_t node = 0; node < description.topology.nodes.size(); ++node) {
    if (!description.topology.nodes[node].is_switch) continue;
    const auto headroom = headroom_at(description.topology, settings, routes.ports_at(node));
    if (SharedBuffer::shared_bytes(settings, headroom) > 0) continue;
    throw WrongKey{"switch", "buffer",
                   impairment::to_text(impairment::kSize, settings.buffer_bytes) +
                       " is not more than the headroom of the ports of " +
                       quoted(description.topology.nodes[node].name) +
                       "; more of it, or less of [pfc] headroom, is wanted"};
  }
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
  const SwitchSettings& settings = description.settings.switches;
  if (settings.ecn && settings.ecn->kmin_bytes > settings.ecn->kmax_bytes)
    throw WrongKey{"ecn", "kmin", "it is more than kmax; at most that is possible"};
  const PfcSettings& pfc = settings.pfc;
  if (pfc.xoff_bytes == 0 && pfc.xon_bytes != 0)
    throw WrongKey{"pfc", "xon", "it goes with xoff; without that there is resume_offset"};
  if (pfc.xoff_bytes != 0 && pfc.xon_bytes >= pfc.xoff_bytes)
    throw WrongKey{"pfc", "xon", "it is not less than xoff"};
  if (pfc.lossless != 0) check_headroom(description);
}

ParsedDescription parse_description(const std::string& text, const std::filesystem::path& name) {
  try {
    Draft draft = read_keys(text);
    Description description;
    description.topology = make_topology(draft, name.parent_path());
    description.settings = draft.settings;
    for (const std::string& failure : draft.failures)
      description.settings.failures.push_back(parse_failure(failure, description.topology));
    check(description);
    return {std::move(description), {}};
  } catch (const WrongKey& wrong) {
    const std::string section = wrong.section.empty() ? "" : "[" + wrong.section + "] ";
    return {std::nullopt, name.string() + ": " + section + wrong.key + ": " + wrong.what};
  } catch (const CLI::Error& error) {
    return {std::nullopt, name.string() + ": it is no TOML: " + error.what()};
  }
}

ParsedDescription read_description(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream || std::filesystem::is_directory(file))
    return {std::nullopt, file.string() + ": it cannot be read"};
  return parse_description(std::string(std::istreambuf_iterator<char>(stream), {}), file);
}

}  // namespace rocemu::network
