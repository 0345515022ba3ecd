#include "emulator/transport/interface/tag_matching.h"

#include <cstring>

#include "base/byte_order.h"

namespace rocemu::transport {

using verbs::TagOperation;

std::optional<TagHeader> parse_tag_header(std::span<const std::byte> message) {
  if (message.size() < TagHeader::kBytes) return std::nullopt;
  TagHeader header;
  const auto operation = static_cast<TagOperation>(message[0]);
  header.operation = operation <= TagOperation::eager ? operation : TagOperation::no_tag;
  std::memcpy(&header.context, &message[4], sizeof(header.context));
  header.tag = load_be64(&message[8]);
  return header;
}

std::optional<RendezvousHeader> parse_rendezvous_header(std::span<const std::byte> message) {
  if (message.size() < kRendezvousBytes) return std::nullopt;
  const std::byte* const at = &message[TagHeader::kBytes];
  return RendezvousHeader{load_be64(at), wire::RKey{load_be32(at + 8)}, load_be32(at + 12)};
}

}  // namespace rocemu::transport
