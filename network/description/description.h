// A network as a file says it: the topology and what its switches do. docs/networks.md has the
// grammar.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "network/description/toml.h"
#include "network/switching/settings.h"
#include "network/topology/topology.h"

namespace rocemu::network {

struct Description {
  Topology topology;
  NetworkSettings settings;
};

// Either a network, or one line without a full stop that names the file, the key and what is
// allowed.
struct ParsedDescription {
  std::optional<Description> description;
  std::string error;
};

// `name` is the file's, for messages; a topology of a file of its own is read from beside it.
ParsedDescription parse_description(const std::string& text, const std::filesystem::path& name);
// Makes a network of keys that stand in a larger file: sections are as in a network's own file, and
// errors name them within `within`, and no file.
ParsedDescription make_description(const std::vector<TomlKey>& keys,
                                   const std::filesystem::path& directory,
                                   const std::string& within = "");
ParsedDescription read_description(const std::filesystem::path& file);

}  // namespace rocemu::network
