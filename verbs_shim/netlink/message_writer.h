// Writes netlink messages and their attributes (netlink(7)) into a buffer of the caller's. What
// does not fit is left out, and fits() says so: whoever wrote it cuts it off again, whole.
#pragma once

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace rocemu::netlink {

class MessageWriter {
 public:
  MessageWriter(char* buffer, size_t capacity_bytes)
      : buffer_(buffer), capacity_bytes_(capacity_bytes) {}

  void begin(uint16_t type, uint16_t flags, uint32_t sequence, uint32_t port) {
    message_ = length_;
    nlmsghdr header = {};
    header.nlmsg_type = type;
    header.nlmsg_flags = flags;
    header.nlmsg_seq = sequence;
    header.nlmsg_pid = port;
    append(&header, sizeof(header));
  }
  void end() { set_length<uint32_t>(message_ + offsetof(nlmsghdr, nlmsg_len), message_); }

  // Bytes of the message that are no attribute, padded.
  void append(const void* data, size_t bytes) {
    const size_t padded = NLMSG_ALIGN(bytes);
    if (!fits_ || padded > capacity_bytes_ - length_) {
      fits_ = false;
      return;
    }
    memcpy(buffer_ + length_, data, bytes);
    memset(buffer_ + length_ + bytes, 0, padded - bytes);
    length_ += padded;
  }

  void put(uint16_t type, const void* data, size_t bytes) {
    const nlattr attribute = {static_cast<uint16_t>(NLA_HDRLEN + bytes), type};
    append(&attribute, sizeof(attribute));
    append(data, bytes);
  }
  void put_u8(uint16_t type, uint8_t value) { put(type, &value, sizeof(value)); }
  void put_u32(uint16_t type, uint32_t value) { put(type, &value, sizeof(value)); }
  void put_u64(uint16_t type, uint64_t value) { put(type, &value, sizeof(value)); }
  void put_text(uint16_t type, const char* text) { put(type, text, strlen(text) + 1); }

  // An attribute that holds those that are put before close().
  size_t open(uint16_t type) {
    const size_t nest = length_;
    const nlattr attribute = {NLA_HDRLEN, type};
    append(&attribute, sizeof(attribute));
    return nest;
  }
  void close(size_t nest) { set_length<uint16_t>(nest + offsetof(nlattr, nla_len), nest); }

  size_t length_bytes() const { return length_; }
  bool fits() const { return fits_; }
  // Goes back to where length_bytes() was that.
  void cut(size_t length_bytes) {
    length_ = length_bytes;
    fits_ = true;
  }

 private:
  template <typename Length>
  void set_length(size_t at, size_t from) {
    if (!fits_) return;
    const auto bytes = static_cast<Length>(length_ - from);
    memcpy(buffer_ + at, &bytes, sizeof(bytes));
  }

  char* buffer_;
  size_t capacity_bytes_;
  size_t length_ = 0;
  size_t message_ = 0;
  bool fits_ = true;
};

}  // namespace rocemu::netlink
