#include "verbs_shim/provider/context/gid_query.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace rocemu::provider {
namespace {

constexpr uint32_t kPort = 1;

// The first line of a file below the port's directory, which the preload library finds in the NIC's
// state directory. False when there is none.
bool read_line(const ibv_device& device, const char* kind, uint32_t index, char* text,
               size_t bytes) {
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/ports/%u/%s/%u", device.ibdev_path, kPort, kind, index);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, text, bytes - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = '\0';
  text[strcspn(text, "\n")] = '\0';
  return true;
}

int read_entry(const ibv_device& device, uint32_t index, ib_uverbs_gid_entry& entry) {
  char text[64];
  unsigned words[8];
  if (!read_line(device, "gids", index, text, sizeof(text)) ||
      sscanf(text, "%4x:%4x:%4x:%4x:%4x:%4x:%4x:%4x", &words[0], &words[1], &words[2], &words[3],
             &words[4], &words[5], &words[6], &words[7]) != 8) {
    return EINVAL;
  }
  uint8_t gid[16];
  for (int i = 0; i < 8; ++i) {
    gid[2 * i] = static_cast<uint8_t>(words[i] >> 8);
    gid[2 * i + 1] = static_cast<uint8_t>(words[i]);
  }
  memcpy(entry.gid, gid, sizeof(gid));
  if (entry.gid[0] == 0 && entry.gid[1] == 0) return ENODATA;
  entry.gid_index = index;
  entry.port_num = kPort;
  entry.gid_type = IBV_GID_TYPE_ROCE_V2;
  const bool has_interface =
      read_line(device, "gid_attrs/ndevs", index, text, sizeof(text)) && text[0] != '\0';
  entry.netdev_ifindex = has_interface ? if_nametoindex(text) : 0;
  return 0;
}

ib_uverbs_attr* find(ib_uverbs_ioctl_hdr& header, uint16_t id) {
  ib_uverbs_attr* const end = header.attrs + header.num_attrs;
  ib_uverbs_attr* const found =
      std::find_if(header.attrs, end, [id](const auto& attr) { return attr.attr_id == id; });
  return found == end ? nullptr : found;
}

void* memory_of(const ib_uverbs_attr& attr) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(attr.data));
}

// The program's header may know of less than the entry has, or of more.
void put(const ib_uverbs_gid_entry& entry, void* into, size_t bytes) {
  memset(into, 0, bytes);
  memcpy(into, &entry, std::min(bytes, sizeof(entry)));
}

int answer_entry(const ibv_device& device, ib_uverbs_ioctl_hdr& header) {
  const auto* port = find(header, UVERBS_ATTR_QUERY_GID_ENTRY_PORT);
  const auto* index = find(header, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
  const auto* flags = find(header, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS);
  const auto* answer = find(header, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY);
  if (port == nullptr || index == nullptr || answer == nullptr || port->data != kPort ||
      index->data > UINT32_MAX || (flags != nullptr && flags->data != 0)) {
    return EINVAL;
  }
  ib_uverbs_gid_entry entry = {};
  const int error = read_entry(device, static_cast<uint32_t>(index->data), entry);
  if (error == 0) put(entry, memory_of(*answer), answer->len);
  return error;
}

// Empty places are left out.
int answer_table(const ibv_device& device, ib_uverbs_ioctl_hdr& header) {
  const auto* size = find(header, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
  const auto* flags = find(header, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS);
  const auto* entries = find(header, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
  const auto* count = find(header, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES);
  if (size == nullptr || entries == nullptr || count == nullptr || size->data == 0 ||
      count->len < sizeof(uint64_t) || (flags != nullptr && flags->data != 0)) {
    return EINVAL;
  }
  const uint64_t room = entries->len / size->data;
  uint64_t filled = 0;
  for (uint32_t index = 0;; ++index) {
    ib_uverbs_gid_entry entry = {};
    const int error = read_entry(device, index, entry);
    if (error == EINVAL) break;  // the end of the table
    if (error == ENODATA) continue;
    if (filled == room) return EINVAL;
    put(entry, static_cast<uint8_t*>(memory_of(*entries)) + filled++ * size->data, size->data);
  }
  memcpy(memory_of(*count), &filled, sizeof(filled));
  return 0;
}

}  // namespace

bool is_gid_query(const ib_uverbs_ioctl_hdr& header) {
  return header.object_id == UVERBS_OBJECT_DEVICE &&
         (header.method_id == UVERBS_METHOD_QUERY_GID_ENTRY ||
          header.method_id == UVERBS_METHOD_QUERY_GID_TABLE);
}

int answer_gid_query(const ibv_device& device, ib_uverbs_ioctl_hdr& header) {
  const int errno_before = errno;
  const int error = header.method_id == UVERBS_METHOD_QUERY_GID_ENTRY
                        ? answer_entry(device, header)
                        : answer_table(device, header);
  errno = errno_before;
  return error;
}

}  // namespace rocemu::provider
