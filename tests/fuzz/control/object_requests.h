// Requests about what a program may make beside PDs, regions, CQs and QPs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "emulator/device/attributes/device_config.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/control/model.h"

namespace rocemu::fuzz {

template <class Message>
std::vector<std::byte> as_bytes(const Message& message) {
  const auto bytes = std::as_bytes(std::span(&message, 1));
  return {bytes.begin(), bytes.end()};
}

// Handles start at 1 and stay small.
uint32_t draw_handle(ByteSource& input);

// For ops that are known here and for all others, which are about a handle.
std::vector<std::byte> draw_object_request(ByteSource& input, uint32_t op,
                                           const device::HcaConfig& config, const Model& model);

}  // namespace rocemu::fuzz
