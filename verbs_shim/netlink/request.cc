#include "verbs_shim/netlink/request.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

#include "verbs_shim/netlink/objects.h"

namespace rocemu::netlink {
namespace {

Number* number_of(Request& request, uint16_t type) {
  switch (type) {
    case RDMA_NLDEV_ATTR_DEV_INDEX:
      return &request.device;
    case RDMA_NLDEV_ATTR_PORT_INDEX:
      return &request.port;
    case RDMA_NLDEV_ATTR_STAT_RES:
      return &request.statistic;
    case RDMA_NLDEV_ATTR_STAT_MODE:
      return &request.stat_mode;
    default:
      break;
  }
  const Objects* const objects = objects_of(request.command);
  return objects != nullptr && objects->number_attribute == type ? &request.object : nullptr;
}

bool take_text(const char* value, size_t bytes, char (&text)[kMaxTextBytes]) {
  if (bytes == 0 || bytes > sizeof(text) || memchr(value, '\0', bytes) == nullptr) return false;
  memcpy(text, value, bytes);
  return true;
}

bool take_attribute(uint16_t type, const char* value, size_t bytes, Request& request) {
  if (type == RDMA_NLDEV_ATTR_CHARDEV_TYPE) return take_text(value, bytes, request.chardev_type);
  Number* const number = number_of(request, type);
  if (number == nullptr) return true;  // newer programs may say more than is known here
  if (bytes != sizeof(number->value)) return false;
  memcpy(&number->value, value, bytes);
  number->given = true;
  return true;
}

}  // namespace

size_t message_bytes(const char* bytes, size_t length_bytes) {
  if (length_bytes < sizeof(nlmsghdr)) return 0;
  nlmsghdr header;
  memcpy(&header, bytes, sizeof(header));
  if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > length_bytes) return 0;
  const size_t padded = NLMSG_ALIGN(header.nlmsg_len);
  return padded < length_bytes ? padded : length_bytes;
}

int parse_request(const char* message, Request& request) {
  request = Request{};
  memcpy(&request.header, message, sizeof(request.header));
  if (RDMA_NL_GET_CLIENT(request.header.nlmsg_type) != RDMA_NL_NLDEV) return EINVAL;
  request.command = RDMA_NL_GET_OP(request.header.nlmsg_type);
  request.dump = (request.header.nlmsg_flags & NLM_F_DUMP) != 0;
  const char* at = message + sizeof(nlmsghdr);
  size_t left = request.header.nlmsg_len - sizeof(nlmsghdr);
  while (left > 0) {
    nlattr attribute;
    if (left < sizeof(attribute)) return EINVAL;
    memcpy(&attribute, at, sizeof(attribute));
    if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > left) return EINVAL;
    const auto type = static_cast<uint16_t>(attribute.nla_type & NLA_TYPE_MASK);
    if (!take_attribute(type, at + NLA_HDRLEN, attribute.nla_len - sizeof(attribute), request))
      return EINVAL;
    const size_t padded = NLA_ALIGN(attribute.nla_len);
    const size_t step = padded < left ? padded : left;
    at += step;
    left -= step;
  }
  return 0;
}

}  // namespace rocemu::netlink
