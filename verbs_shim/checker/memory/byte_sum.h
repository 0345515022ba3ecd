// A sum over bytes of the program's memory, to see later whether they are the same.
//
// Up to 16 KiB all bytes are looked at; of more the first and the last 4 KiB, and 32 pieces of 256
// bytes in between, which `seed` chooses: so the cost has a bound, and a program that sends often
// is seen everywhere in time. Equal bytes always have equal sums.
#pragma once

#include <cstdint>
#include <span>

#include "verbs_shim/checker/memory/spans.h"

namespace rocemu::check {

// 0: there is a page among them that can't be read. Never 0 otherwise.
uint64_t byte_sum(std::span<const Span> spans, uint64_t seed);

}  // namespace rocemu::check
