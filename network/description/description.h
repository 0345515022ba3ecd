// A network as a file says it: the topology and what its switches do. docs/networks.md has the
// grammar.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

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
ParsedDescription read_description(const std::filesystem::path& file);

}  // namespace rocemu::network
