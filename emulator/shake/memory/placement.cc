#include "emulator/shake/memory/placement.h"

#include <algorithm>

#include "emulator/shake/memory/range_behind.h"

namespace rocemu::shake {
namespace {

constexpr uint32_t kReordersPpm = 900'000;
constexpr uint32_t kPausesPpm = 30'000;
constexpr uint64_t kMaxCuts = 3;     // cuts of one move
constexpr size_t kMaxInAGroup = 64;  // each is held against the others
constexpr uint32_t kWholeBytes = 8;

}  // namespace

void Placement::flush_scatters(std::vector<uint32_t>& failed) noexcept {
  failed.insert(failed.end(), failed_early_.begin(), failed_early_.end());
  failed_early_.clear();
  place_all();
  for (const Scatter& scatter : scatters_)
    if (scatter.failed) failed.push_back(scatter.tag);
  scatters_.clear();
}

bool Placement::compare_swap(const transport::MemoryRange& range, uint64_t compare, uint64_t swap,
                             uint64_t& original) noexcept {
  std::vector<uint32_t> failed;
  flush_scatters(failed);
  failed_early_ = std::move(failed);
  return inner().compare_swap(range, compare, swap, original);
}

bool Placement::fetch_add(const transport::MemoryRange& range, uint64_t add,
                          uint64_t& original) noexcept {
  std::vector<uint32_t> failed;
  flush_scatters(failed);
  failed_early_ = std::move(failed);
  return inner().fetch_add(range, add, original);
}

// Group by group, so that what overlaps keeps its order.
void Placement::place_all() noexcept {
  for (size_t first = 0; first < scatters_.size();) {
    const size_t end = end_of_group(first);
    const bool reorders = dice_.roll(kReordersPpm);
    cut(first, end);
    if (reorders) shuffle();
    const bool pauses = reorders && pieces_.size() > 1 && pause_ && dice_.roll(kPausesPpm);
    const size_t before_pause = pauses ? 1 + dice_.below(pieces_.size() - 1) : pieces_.size();
    const std::span<const Piece> pieces(pieces_);
    move(pieces.first(before_pause));
    if (pauses) pause_();
    move(pieces.subspan(before_pause));
    first = end;
  }
}

// The moves from `first` on of which no two overlap.
size_t Placement::end_of_group(size_t first) const {
  size_t end = first + 1;
  for (; end < scatters_.size() && end - first < kMaxInAGroup; ++end)
    for (size_t i = first; i < end; ++i)
      if (scatters_[i].overlaps(scatters_[end])) return end;
  return end;
}

void Placement::cut(size_t first, size_t end) {
  pieces_.clear();
  for (size_t i = first; i < end; ++i) {
    const Scatter& scatter = scatters_[i];
    const bool whole =
        scatter.length_bytes == kWholeBytes && scatter.range.address % kWholeBytes == 0;
    uint32_t from = 0;
    for (uint64_t cuts = whole ? 0 : dice_.below(kMaxCuts + 1); cuts > 0; --cuts) {
      const uint32_t left = scatter.length_bytes - from;
      if (left < 2) break;
      // The last bytes are what programs look at, so they are often on their own.
      const auto part =
          static_cast<uint32_t>(dice_.below(2) == 0 ? left - 1 : 1 + dice_.below(left - 1));
      pieces_.push_back({static_cast<uint32_t>(i), from, part});
      from += part;
    }
    pieces_.push_back({static_cast<uint32_t>(i), from, scatter.length_bytes - from});
  }
}

void Placement::shuffle() {
  for (size_t i = pieces_.size(); i > 1; --i) std::swap(pieces_[i - 1], pieces_[dice_.below(i)]);
}

void Placement::move(std::span<const Piece> pieces) noexcept {
  if (pieces.empty()) return;
  for (uint32_t i = 0; i < pieces.size(); ++i) {
    const Scatter& scatter = scatters_[pieces[i].scatter];
    inner().scatter(behind(scatter.range, pieces[i].offset_bytes),
                    scatter.from + pieces[i].offset_bytes, pieces[i].length_bytes, i);
  }
  inner().flush_scatters(failed_pieces_);
  for (const uint32_t piece : failed_pieces_) scatters_[pieces[piece].scatter].failed = true;
  failed_pieces_.clear();
}

}  // namespace rocemu::shake
