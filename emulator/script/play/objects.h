// The objects that a script has made, by its names: the numbers that its lines mean.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "emulator/script/language/script.h"
#include "emulator/wire/opcode.h"
#include "emulator/wire/types.h"

namespace rocemu::script {

// A line that cannot be carried out as it stands: it names what is not there.
class Impossible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A QP of the NIC, and the one of the wire's side that it is connected with.
struct ScriptQp {
  wire::Transport transport = wire::Transport::rc;
  wire::Qpn qpn{};
  wire::Qpn wire_qpn{};
  wire::Psn rq_psn{};  // the first that the NIC expects
  wire::Psn sq_psn{};  // the first that it sends
};

// Numbers of a region, a window (a key alone) or an SRQ (its number in `rkey`).
struct Numbers {
  uint64_t va = 0;
  uint32_t rkey = 0;
  uint32_t lkey = 0;
};

// The numbers of a QP's connection when a script says nothing else.
inline constexpr uint32_t kDefaultRqPsn = 0x1000;
inline constexpr uint32_t kDefaultSqPsn = 0x2000;
inline constexpr uint32_t kDefaultQkey = 0x11111111;
inline constexpr uint32_t kFirstWireQpn = 0x100;

class Objects {
 public:
  // Takes in what a call has made, or changed of a QP's PSNs, and forgets what it destroyed.
  void learn(const Call& call, const Fields& result);

  // Throw Impossible.
  const ScriptQp& qp(const std::string& name) const;
  const Numbers& numbers(const std::string& name) const;
  // The QP that the script made last.
  const std::string& last_qp() const;
  // The QP of the NIC that has, or whose peer has, this number; null: none.
  const ScriptQp* by_wire_qpn(wire::Qpn qpn) const;
  std::string name_of(wire::Qpn qpn) const;

  uint64_t address(const Value& value) const;
  uint32_t key(const Value& value) const;  // an rkey

 private:
  std::map<std::string, ScriptQp> qps_;
  std::map<std::string, Numbers> numbers_;
  std::string last_qp_;
  uint32_t next_wire_qpn_ = kFirstWireQpn;
};

}  // namespace rocemu::script
