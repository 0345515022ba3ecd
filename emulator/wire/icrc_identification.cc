#include "emulator/wire/icrc_identification.h"

#include <array>

#include "emulator/wire/byte_order.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/icrc.h"

namespace rocemu::wire {
namespace {

// Registers of the reflected CRC-32 are polynomials modulo P over GF(2), x^0 in the highest bit.
constexpr uint32_t kPolynomial = 0xedb88320;
constexpr uint32_t kOne = 0x80000000;
constexpr uint32_t kX = 0x40000000;
constexpr uint32_t kOrderOfX = 0xffffffff;  // P is primitive: x^(2^32 - 1) is 1

constexpr size_t kIdentificationOffset = 4;  // in the IPv4 header (RFC 791)
constexpr size_t kIdentificationBytes = 2;

constexpr uint32_t times_x(uint32_t a) { return (a & 1) != 0 ? (a >> 1) ^ kPolynomial : a >> 1; }

constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) sum ^= b;
    b = times_x(b);
  }
  return sum;
}

// x^(2^i)
constexpr std::array<uint32_t, 32> kSquares = [] {
  std::array<uint32_t, 32> squares{};
  uint32_t power = kX;
  for (uint32_t& square : squares) {
    square = power;
    power = product(power, power);
  }
  return squares;
}();

constexpr uint32_t power_of_x(uint32_t exponent) {
  uint32_t power = kOne;
  for (size_t i = 0; exponent != 0; ++i, exponent >>= 1)
    if ((exponent & 1) != 0) power = product(power, kSquares[i]);
  return power;
}

}  // namespace

// Two bytes D with n bytes behind them put D x^(8 n + 32) into the register. So dividing the
// difference by that power gives the two bytes, or something of a degree above 15, which no two
// bytes are.
std::optional<uint16_t> identification_by_icrc(std::span<const std::byte> l3) {
  if (l3.size() < kIpv4Bytes + kUdpBytes + kBthBytes + kIcrcBytes || load_u8(l3.data()) >> 4 != 4)
    return std::nullopt;
  const size_t covered_bytes = l3.size() - kIcrcBytes;
  const uint32_t difference =
      compute_icrc(l3.first(covered_bytes)) ^ load_le32(l3.data() + covered_bytes);
  const size_t behind_bytes = covered_bytes - kIdentificationOffset - kIdentificationBytes;
  const auto shift = static_cast<uint32_t>(8 * behind_bytes + 32);
  const uint32_t bits = product(difference, power_of_x(kOrderOfX - shift));
  if ((bits & 0xffff) != 0) return std::nullopt;
  const uint32_t first_byte = bits >> 16 & 0xff;  // the highest powers of x
  const uint32_t second_byte = bits >> 24;
  return static_cast<uint16_t>(load_be16(l3.data() + kIdentificationOffset) ^
                               (first_byte << 8 | second_byte));
}

}  // namespace rocemu::wire
