#include "tests/sim/arena_model.h"

#include <algorithm>
#include <cstring>

namespace rocemu::sim_scenarios {

namespace {

std::vector<std::byte> random_bytes(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<std::byte> bytes(count);
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const uint64_t word = random.next();
    std::memcpy(&bytes[i], &word, 8);
  }
  for (; i < count; ++i) bytes[i] = static_cast<std::byte>(random.next());
  return bytes;
}

}  // namespace

std::vector<std::byte> payload_of(const Op& op) {
  return random_bytes(op.payload_seed, op.length_bytes);
}

ArenaModel::ArenaModel(const Direction& direction)
    : direction_(direction),
      initial_(random_bytes(direction.arena_seed, direction.arena_bytes)),
      results_(direction.ops.size()),
      payloads_(direction.ops.size()) {
  std::fill_n(initial_.begin(), kCellBytes, std::byte{0});
  std::vector<std::byte> image = initial_;
  for (size_t i = 0; i < direction.ops.size(); ++i) {
    const Op& op = direction.ops[i];
    const auto at = image.begin() + op.arena_offset;
    if (!touches_arena(op.opcode) || op.shared_counter || op.mishap != Mishap::none) continue;
    if (transport::brings_data(op.opcode)) results_[i].assign(at, at + op.length_bytes);
    if (transport::is_write(op.opcode) || op.opcode == WorkOpcode::atomic_write) {
      payloads_[i] = payload_of(op);
    } else if (transport::is_atomic(op.opcode)) {
      uint64_t word;
      std::memcpy(&word, &*at, sizeof word);
      if (op.opcode == WorkOpcode::fetch_add) {
        word += op.compare_add;
      } else if (word == op.compare_add) {
        word = op.swap;
      }
      payloads_[i].resize(sizeof word);
      std::memcpy(payloads_[i].data(), &word, sizeof word);
    }
    apply(i, image);
  }
  image_ = initial_;
}

bool ArenaModel::changes_arena(size_t op) const { return !payloads_[op].empty(); }

void ArenaModel::apply(size_t op, std::vector<std::byte>& image) const {
  std::copy(payloads_[op].begin(), payloads_[op].end(),
            image.begin() + direction_.ops[op].arena_offset);
}

// Most calls ask for a later image than the one before.
const std::vector<std::byte>& ArenaModel::image_before(size_t executed) {
  if (executed < executed_) {
    image_ = initial_;
    executed_ = 0;
  }
  for (; executed_ < executed; ++executed_) apply(executed_, image_);
  return image_;
}

bool ArenaModel::allows(size_t executed, size_t possible, uint32_t offset,
                        std::span<const std::byte> bytes) {
  const std::span image = std::span(image_before(executed)).subspan(offset, bytes.size());
  if (std::memcmp(image.data(), bytes.data(), bytes.size()) == 0) return true;
  std::vector<bool> fits(bytes.size());
  size_t misfits = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    fits[i] = image[i] == bytes[i];
    misfits += fits[i] ? 0 : 1;
  }
  for (size_t i = executed; i < possible && misfits > 0; ++i) {
    if (!changes_arena(i)) continue;
    const size_t from = direction_.ops[i].arena_offset;
    const size_t to = from + payloads_[i].size();
    for (size_t at = std::max<size_t>(from, offset); at < std::min(to, offset + bytes.size());
         ++at) {
      if (fits[at - offset] || payloads_[i][at - from] != bytes[at - offset]) continue;
      fits[at - offset] = true;
      --misfits;
    }
  }
  return misfits == 0;
}

}  // namespace rocemu::sim_scenarios
