// Filter says what a trace is about: all, or certain QPs, or the QPs of certain programs. Which
// devices are traced is decided by who makes their recorders.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu::trace {

struct Filter {
  std::vector<uint32_t> qpns;         // empty: all
  std::vector<std::string> programs;  // each a name or a pid; empty: all

  bool everything() const { return qpns.empty() && programs.empty(); }
};

// True when the QP is traced. `program` is "" and `pid` 0 where it is not known whose it is.
bool lets_through(const Filter& filter, uint32_t qpn, std::string_view program, uint32_t pid);

// Reads "device=rocemu0,qp=17,program=ib_write_bw", each key as often as there are values: any of a
// key's values will do, and all keys have to. Devices go to `devices`. Returns what is wrong, or
// nothing.
std::string parse_filter(std::string_view text, Filter& filter, std::vector<std::string>& devices);

}  // namespace rocemu::trace
