#include "base/byte_order.h"

#include <array>
#include <catch2/catch.hpp>

namespace rocemu {
namespace {

using Bytes = std::array<std::byte, 9>;

Bytes bytes(std::array<uint8_t, 9> values) {
  Bytes result;
  for (size_t i = 0; i < values.size(); ++i) result[i] = std::byte{values[i]};
  return result;
}

TEST_CASE("Loads take the most significant byte first, at any address") {
  const Bytes b = bytes({0, 0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8});
  CHECK(load_be16(&b[1]) == 0x8192);
  CHECK(load_be24(&b[1]) == 0x8192a3);
  CHECK(load_be32(&b[1]) == 0x8192a3b4);
  CHECK(load_be64(&b[1]) == 0x8192a3b4c5d6e7f8);
  CHECK(load_le32(&b[1]) == 0xb4a39281);
}

TEST_CASE("Stores write as many bytes as they say and what loads read") {
  Bytes b{};
  store_be16(&b[1], 0xff8192);
  CHECK(b == bytes({0, 0x81, 0x92, 0, 0, 0, 0, 0, 0}));
  store_be24(&b[1], 0xff8192a3);
  CHECK(b == bytes({0, 0x81, 0x92, 0xa3, 0, 0, 0, 0, 0}));
  store_be32(&b[1], 0x8192a3b4);
  CHECK(b == bytes({0, 0x81, 0x92, 0xa3, 0xb4, 0, 0, 0, 0}));
  store_le32(&b[1], 0x8192a3b4);
  CHECK(b == bytes({0, 0xb4, 0xa3, 0x92, 0x81, 0, 0, 0, 0}));
  store_be64(&b[1], 0x8192a3b4c5d6e7f8);
  CHECK(b == bytes({0, 0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8}));
}

}  // namespace
}  // namespace rocemu
