#include "tests/e2e/bytes/message.h"

#include <algorithm>
#include <cstdio>

namespace rocemu::e2e {

namespace {

constexpr Operation kOperations[] = {
    {"SEND", IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, true, false, Payload::kIntoReceive},
    {"SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true, true,
     Payload::kIntoReceive},
    {"WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_RECV, false, false,
     Payload::kIntoRemoteMemory},
    {"WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM,
     true, true, Payload::kIntoRemoteMemory},
    {"READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, IBV_WC_RECV, false, false,
     Payload::kFromRemoteMemory},
};

constexpr uint32_t kSmallBytes = 4096;
constexpr size_t kOuterGuardBytes = 64;
constexpr size_t kInnerGuardBytes = 8;
constexpr size_t kMaxExtraGuardBytes = 63;

}  // namespace

std::span<const Operation> all_operations() { return kOperations; }

SizePlan::SizePlan(uint64_t messages, uint32_t max_bytes, uint64_t budget_bytes)
    : messages_(messages),
      max_bytes_(max_bytes),
      earned_per_message_(budget_bytes / std::max<uint64_t>(messages, 1)),
      tokens_(max_bytes) {}

uint32_t SizePlan::draw(Random& random, uint32_t mtu_bytes) {
  uint32_t bytes = 0;
  tokens_ += earned_per_message_;
  if (drawn_ == messages_ / 2) {
    bytes = max_bytes_;
  } else if (max_bytes_ == 0 || random.one_in(32)) {
    bytes = 0;
  } else if (random.one_in(8)) {
    const uint32_t packets = random.between32(1, 8);
    bytes = std::min(max_bytes_, mtu_bytes * packets + random.between32(0, 2) - 1);
  } else {
    bytes = random.log_uniform(max_bytes_);
    if (bytes > tokens_) bytes = random.log_uniform(std::min(max_bytes_, kSmallBytes));
  }
  tokens_ -= std::min<uint64_t>(tokens_, bytes);
  ++drawn_;
  return bytes;
}

Layout Layout::place(Random& random, const std::vector<uint32_t>& sizes) {
  Layout layout;
  size_t at = kOuterGuardBytes + random.between(0, kMaxExtraGuardBytes);
  for (const uint32_t size : sizes) {
    layout.pieces.push_back({at, size});
    at += size + kInnerGuardBytes + random.between(0, kMaxExtraGuardBytes);
  }
  layout.bytes = at + kOuterGuardBytes;
  return layout;
}

size_t Layout::most_bytes(size_t pieces, size_t payload_bytes) {
  return 2 * kOuterGuardBytes + kMaxExtraGuardBytes +
         pieces * (kInnerGuardBytes + kMaxExtraGuardBytes) + payload_bytes;
}

std::vector<uint32_t> cut(Random& random, uint32_t total, uint32_t pieces) {
  std::vector<uint32_t> sizes;
  if (pieces == 0) return sizes;
  std::vector<uint32_t> cuts{0, total};
  for (uint32_t i = 1; i < pieces; ++i) cuts.push_back(random.between32(0, total));
  std::sort(cuts.begin(), cuts.end());
  for (size_t i = 1; i < cuts.size(); ++i) sizes.push_back(cuts[i] - cuts[i - 1]);
  return sizes;
}

std::string Message::describe() const {
  char text[256];
  std::snprintf(text, sizeof text,
                "%s number %llu of %u bytes, %zu local and %zu receive pieces%s%s%s",
                operation->name, static_cast<unsigned long long>(number), bytes,
                local_pieces.size(), receive_pieces.size(), signalled ? ", signalled" : "",
                inlined ? ", inline" : "", fenced ? ", fenced" : "");
  return text;
}

}  // namespace rocemu::e2e
