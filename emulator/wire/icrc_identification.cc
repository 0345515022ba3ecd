#include "emulator/wire/icrc_identification.h"

#include <array>
#include <cassert>

#include "base/net/checksum.h"
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

// x^(8 n) for n below what a datagram of the largest path MTU has.
constexpr size_t kPowers = 4352;

const std::array<uint32_t, kPowers>& powers_of_x8() {
  static const std::array<uint32_t, kPowers> powers = [] {
    std::array<uint32_t, kPowers> made{};
    uint32_t power = kOne;
    for (uint32_t& entry : made) {
      entry = power;
      for (int i = 0; i < 8; ++i) power = times_x(power);
    }
    return made;
  }();
  return powers;
}

// Two bytes, as they stand in the register: the first one's lowest bit is the highest power of x.
constexpr uint32_t polynomial_of(uint16_t two_bytes) {
  return static_cast<uint32_t>(two_bytes & 0xff) << 24 | static_cast<uint32_t>(two_bytes >> 8)
                                                             << 16;
}

size_t bytes_behind_identification(std::span<const std::byte> l3) {
  return l3.size() - kIcrcBytes - kIdentificationOffset - kIdentificationBytes;
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
  const auto shift = static_cast<uint32_t>(8 * bytes_behind_identification(l3) + 32);
  const uint32_t bits = product(difference, power_of_x(kOrderOfX - shift));
  if ((bits & 0xffff) != 0) return std::nullopt;
  const uint32_t first_byte = bits >> 16 & 0xff;  // the highest powers of x
  const uint32_t second_byte = bits >> 24;
  return static_cast<uint16_t>(load_be16(l3.data() + kIdentificationOffset) ^
                               (first_byte << 8 | second_byte));
}

void set_identification(std::span<std::byte> l3, uint16_t identification) {
  constexpr size_t kChecksumOffset = 10;
  constexpr size_t kRegisterBytes = 4;
  assert(l3.size() >= kIpv4Bytes + kUdpBytes + kBthBytes + kIcrcBytes);
  const uint16_t before = load_be16(l3.data() + kIdentificationOffset);
  store_be16(l3.data() + kIdentificationOffset, identification);

  // RFC 1624: HC' = ~(~HC + ~m + m')
  uint32_t sum = static_cast<uint16_t>(~load_be16(l3.data() + kChecksumOffset));
  sum += static_cast<uint16_t>(~before);
  sum += identification;
  store_be16(l3.data() + kChecksumOffset, internet_checksum(sum));

  const size_t x8 = bytes_behind_identification(l3) + kRegisterBytes;
  const uint32_t power =
      x8 < kPowers ? powers_of_x8()[x8] : power_of_x(static_cast<uint32_t>(8 * x8));
  std::byte* const icrc = l3.data() + l3.size() - kIcrcBytes;
  const auto difference = static_cast<uint16_t>(before ^ identification);
  store_le32(icrc, load_le32(icrc) ^ product(polynomial_of(difference), power));
}

}  // namespace rocemu::wire
