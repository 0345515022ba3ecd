#include "emulator/wire/opcode.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>

#include "emulator/wire/headers.h"

namespace rocemu::wire {
namespace {

constexpr bool exists(Transport transport, Operation operation) {
  switch (transport) {
    case Transport::rc:
      return true;
    case Transport::xrc:
      return operation != Operation::atomic_write && operation != Operation::flush;
    case Transport::uc:
      return operation <= Operation::write_only_imm;
    case Transport::ud:
      return operation == Operation::send_only || operation == Operation::send_only_imm;
    case Transport::rd:   // reliable datagrams: not for RoCE
    case Transport::cnp:  // one opcode, which is no Operation
      return false;
  }
  return false;
}

constexpr MessageKind kind_of(Operation operation) {
  using enum Operation;
  if (operation <= send_only_imm || operation == send_last_invalidate ||
      operation == send_only_invalidate)
    return MessageKind::send;
  if (operation <= write_only_imm) return MessageKind::write;
  if (operation == read_request) return MessageKind::read;
  if (operation <= atomic_acknowledge) return MessageKind::response;
  if (operation == flush) return MessageKind::flush;
  return operation == atomic_write ? MessageKind::atomic_write : MessageKind::atomic;
}

constexpr bool is_one_of(Operation operation, std::initializer_list<Operation> others) {
  return std::find(others.begin(), others.end(), operation) != others.end();
}

constexpr bool starts_message(Operation operation) {
  using enum Operation;
  return !is_one_of(operation,
                    {send_middle, send_last, send_last_imm, send_last_invalidate, write_middle,
                     write_last, write_last_imm, read_response_middle, read_response_last});
}

constexpr bool ends_message(Operation operation) {
  using enum Operation;
  return !is_one_of(operation, {send_first, send_middle, write_first, write_middle,
                                read_response_first, read_response_middle});
}

// The headers that the operation itself brings, the same over every transport.
constexpr OpcodeTraits traits_of_operation(Operation operation) {
  switch (operation) {
    case Operation::send_first:
    case Operation::send_middle:
    case Operation::send_last:
    case Operation::send_only:
    case Operation::write_middle:
    case Operation::write_last:
    case Operation::read_response_middle:
      return {.known = true, .payload = true};
    case Operation::send_last_imm:
    case Operation::send_only_imm:
    case Operation::write_last_imm:
      return {.known = true, .imm = true, .payload = true};
    case Operation::send_last_invalidate:
    case Operation::send_only_invalidate:
      return {.known = true, .ieth = true, .payload = true};
    case Operation::write_first:
    case Operation::write_only:
    case Operation::atomic_write:
      return {.known = true, .reth = true, .payload = true};
    case Operation::write_only_imm:
      return {.known = true, .reth = true, .imm = true, .payload = true};
    case Operation::read_request:
      return {.known = true, .reth = true};
    case Operation::flush:
      return {.known = true, .feth = true, .reth = true};
    case Operation::read_response_first:
    case Operation::read_response_last:
    case Operation::read_response_only:
      return {.known = true, .aeth = true, .payload = true};
    case Operation::acknowledge:
      return {.known = true, .aeth = true};
    case Operation::atomic_acknowledge:
      return {.known = true, .aeth = true, .atomic_ack_eth = true};
    case Operation::compare_swap:
    case Operation::fetch_add:
      return {.known = true, .atomic_eth = true};
  }
  return {};
}

constexpr size_t header_bytes(const OpcodeTraits& traits) {
  size_t bytes = kBthBytes;
  if (traits.xrceth) bytes += kXrcEthBytes;
  if (traits.deth) bytes += kDethBytes;
  if (traits.feth) bytes += kFethBytes;
  if (traits.reth) bytes += kRethBytes;
  if (traits.atomic_eth) bytes += kAtomicEthBytes;
  if (traits.aeth) bytes += kAethBytes;
  if (traits.atomic_ack_eth) bytes += kAtomicAckEthBytes;
  if (traits.imm) bytes += kImmBytes;
  if (traits.ieth) bytes += kIethBytes;
  return bytes;
}

constexpr OpcodeTraits compute_traits(uint8_t opcode) {
  if (opcode == kCnpOpcode) return {.known = true, .payload = true, .header_bytes = kBthBytes};
  const auto transport = static_cast<Transport>(opcode & 0xe0);
  const auto operation = static_cast<Operation>(opcode & 0x1f);
  if (!exists(transport, operation)) return {};

  OpcodeTraits traits = traits_of_operation(operation);
  if (!traits.known) return {};
  traits.deth = transport == Transport::ud;
  traits.starts = starts_message(operation);
  traits.ends = ends_message(operation);
  traits.kind = kind_of(operation);
  traits.xrceth = transport == Transport::xrc && traits.kind != MessageKind::response;
  traits.header_bytes = static_cast<uint8_t>(header_bytes(traits));
  return traits;
}

}  // namespace

constexpr std::array<OpcodeTraits, 256> kOpcodeTraits = [] {
  std::array<OpcodeTraits, 256> table{};
  for (size_t opcode = 0; opcode < table.size(); ++opcode)
    table[opcode] = compute_traits(static_cast<uint8_t>(opcode));
  return table;
}();

}  // namespace rocemu::wire
