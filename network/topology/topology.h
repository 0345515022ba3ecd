// The parts of a network: hosts, switches and the links between them. Values alone: text
// (network/description) or a kind (kinds.h) gives them, and problem() checks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace rocemu::network {

struct LinkSettings {
  uint64_t rate_bits_per_s = 100'000'000'000;
  TimeNs delay_ns = 1000;
  uint32_t loss_ppm = 0;  // share of frames, each direction by itself

  bool operator==(const LinkSettings&) const = default;
};

struct Topology {
  struct Node {
    std::string name;
    bool is_switch = false;
  };
  // A cable. Its ends are two ports, 2 x link at `a` and 2 x link + 1 at `b` (port_of_link()).
  struct Link {
    uint32_t a = 0;  // nodes
    uint32_t b = 0;
    LinkSettings settings;
  };

  std::vector<Node> nodes;
  std::vector<Link> links;

  uint32_t add_host(std::string name) { return add({std::move(name), false}); }
  uint32_t add_switch(std::string name) { return add({std::move(name), true}); }
  void connect(uint32_t a, uint32_t b, const LinkSettings& settings) {
    links.push_back({a, b, settings});
  }
  // Hosts are numbered in the order of the nodes: host N is node hosts()[N].
  std::vector<uint32_t> hosts() const {
    std::vector<uint32_t> found;
    for (uint32_t i = 0; i < nodes.size(); ++i)
      if (!nodes[i].is_switch) found.push_back(i);
    return found;
  }

  // The rate of the first link of host `number`, as hosts() counts. Precondition: the host has a
  // link.
  uint64_t rate_of_host(size_t number) const {
    const uint32_t node = hosts()[number];
    for (const Link& link : links)
      if (link.a == node || link.b == node) return link.settings.rate_bits_per_s;
    return 0;
  }

 private:
  uint32_t add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<uint32_t>(nodes.size() - 1);
  }
};

inline constexpr uint32_t kNone = ~uint32_t{0};

// The port at the other end of a port's cable.
constexpr uint32_t peer_of(uint32_t port) noexcept { return port ^ 1; }
constexpr uint32_t link_of(uint32_t port) noexcept { return port / 2; }
constexpr uint32_t port_of_link(uint32_t link, bool at_b) noexcept { return 2 * link + at_b; }

// Empty, or the first thing that makes no network of it: a host without a link or with two, a link
// from a node to itself or to none, a rate of 0, no host.
std::string problem(const Topology& topology);

}  // namespace rocemu::network
