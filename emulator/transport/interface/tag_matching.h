// Tag matching: a SEND to a QP on a tag-matching SRQ begins with a header whose tag decides where
// its payload goes (rdma-core, Documentation/tag_matching.md; infiniband/tm_types.h). The SRQ is
// the device's, what messages are matched with it is the responder's (responder/tagged_receive.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "emulator/transport/interface/work.h"

namespace rocemu::transport {

// struct ibv_tmh
struct TagHeader {
  static constexpr uint32_t kBytes = 16;
  verbs::TagOperation operation{};
  uint32_t context = 0;  // the sender's own, as it stands there
  uint64_t tag = 0;
};

// struct ibv_rvh, which follows it in a message that offers its payload for a READ.
struct RendezvousHeader {
  static constexpr uint32_t kBytes = 16;
  uint64_t address = 0;
  wire::RKey rkey{};
  uint32_t length_bytes = 0;
};
inline constexpr uint32_t kRendezvousBytes = TagHeader::kBytes + RendezvousHeader::kBytes;

// Both return nothing when the message is too short. An operation that is none counts as no_tag.
std::optional<TagHeader> parse_tag_header(std::span<const std::byte> message);
std::optional<RendezvousHeader> parse_rendezvous_header(std::span<const std::byte> message);

class TagMatching {
 public:
  virtual ~TagMatching() = default;
  // Takes the first buffer that `tag` matches off the list. False: there is none.
  virtual bool take(uint64_t tag, ReceiveWork& buffer) noexcept = 0;
  // A message with a tag goes to the SRQ's ordinary receives.
  virtual void note_unexpected() noexcept = 0;
  // Has the offered payload read into `buffer`, which take() gave, and the peer told when it is
  // there, by a message with `headers` of `offer`'s message (kRendezvousBytes).
  virtual void read(const ReceiveWork& buffer, const RendezvousHeader& offer,
                    std::span<const std::byte> headers) noexcept = 0;
};

}  // namespace rocemu::transport
