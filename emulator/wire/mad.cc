#include "emulator/wire/mad.h"

#include "base/byte_order.h"

namespace rocemu::wire {

MadHeader load_mad_header(const std::byte* mad) {
  return {.base_version = load_u8(mad),
          .management_class = load_u8(mad + 1),
          .class_version = load_u8(mad + 2),
          .method = load_u8(mad + 3),
          .status = load_be16(mad + 4),
          .class_specific = load_be16(mad + 6),
          .transaction_id = load_be64(mad + 8),
          .attribute_id = load_be16(mad + 16),
          .attribute_modifier = load_be32(mad + 20)};
}

void store_mad_header(std::byte* mad, const MadHeader& header) {
  store_u8(mad, header.base_version);
  store_u8(mad + 1, header.management_class);
  store_u8(mad + 2, header.class_version);
  store_u8(mad + 3, header.method);
  store_be16(mad + 4, header.status);
  store_be16(mad + 6, header.class_specific);
  store_be64(mad + 8, header.transaction_id);
  store_be16(mad + 16, header.attribute_id);
  store_be16(mad + 18, 0);
  store_be32(mad + 20, header.attribute_modifier);
}

}  // namespace rocemu::wire
