// The words of the language: verbs with their arguments and results, opcodes, fields of frames. The
// parser knows the grammar and looks up here what may stand where; the documentation's tables
// (docs/scripts.md) are these.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/wire/opcode.h"

namespace rocemu::script {

// The values that a key may have.
enum class Takes : uint8_t {
  nothing,  // a flag
  number,   // also, where something is expected, a range or *
  psn,      // the same, or relative
  place,    // an address: a region and what is added to it, or a number
  key,      // a region's, window's or SRQ's number, and what is added to it, or a number
  bytes,
  word,    // one of Key::words
  flags,   // some of Key::words, with | between
  object,  // the name of an object
  new_object,
  error,  // a name from errno.h
};

struct Key {
  std::string_view name;
  Takes takes = Takes::number;
  std::string_view words{};  // words allowed, with spaces between
};

struct Verb {
  std::string_view name;
  std::vector<Key> positional;  // without their names, in this order; the last may be left out
  size_t needed = 0;            // number of those that cannot be left out
  std::vector<Key> keys;
  std::vector<Key> result;         // positional as well; empty: "ok" or an error
  std::vector<Key> result_keys{};  // behind them
};

const Verb* find_verb(std::string_view name);
// Verbs that only look at something; and those that take something off, and say "nothing" when
// there is none. Neither gives a NIC anything to do.
bool shows_state(std::string_view verb);
bool takes_off(std::string_view verb);
std::string all_verbs();

// A name of a frame's opcode: the operation, and what distinguishes those of AETH.
struct Opcode {
  std::string_view name;
  std::optional<wire::Operation> operation;  // none: CNP, OPCODE
  std::optional<uint8_t> syndrome;           // an AETH's; RNR_NAK's without its timer
};

const Opcode* find_opcode(std::string_view name);
std::string all_opcodes();

// The name of a frame that came.
std::string opcode_name(uint8_t bth_opcode, uint8_t syndrome);

// Fields of the frame, whatever its opcode; and those that its headers bring.
std::span<const Key> common_fields();
std::vector<Key> header_fields(const Opcode& opcode, const wire::OpcodeTraits& traits);

inline constexpr std::string_view kQpTypes = "rc uc ud xrc_send xrc_recv";
inline constexpr std::string_view kQpStates = "reset init rtr rts sqd sqe err";
inline constexpr std::string_view kStatuses =
    "success loc_len_err loc_qp_op_err loc_prot_err wr_flush_err mw_bind_err bad_resp_err "
    "loc_access_err rem_inv_req_err rem_access_err rem_op_err retry_exc_err rnr_retry_exc_err "
    "general_err nothing";
inline constexpr std::string_view kWcOpcodes =
    "send write read cas fadd bind_mw local_inv atomic_write recv recv_imm";
inline constexpr std::string_view kSendOpcodes =
    "send send_imm send_inv write write_imm read cas fadd bind_mw local_inv atomic_write";
inline constexpr std::string_view kEvents =
    "cq_err qp_fatal qp_req_err qp_access_err comm_est sq_drained path_mig path_mig_err "
    "srq_limit_reached qp_last_wqe_reached nothing";
inline constexpr std::string_view kAccess =
    "local_write remote_write remote_read remote_atomic mw_bind flush_global none";

bool is_one_of(std::string_view words, std::string_view word);

}  // namespace rocemu::script
