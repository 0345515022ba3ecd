// Descriptors that stand for a device in any process: verbs_shim/abi/import.h.
#pragma once

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "verbs_shim/abi/import.h"

namespace rocemu::preload {

// True when `fd`, which fstat() describes as `file`, is a ticket; it also says which device that
// stands for. Costs a system call for files without a name that are as long as a ticket.
template <typename File>
bool is_ticket(int fd, const File& file, dev_t& cdev) {
  rocemu_context_ticket ticket;
  if (!S_ISREG(file.st_mode) || file.st_nlink != 0 || file.st_size != sizeof(ticket)) return false;
  if (pread(fd, &ticket, sizeof(ticket), 0) != static_cast<ssize_t>(sizeof(ticket))) return false;
  if (memcmp(ticket.magic, ROCEMU_TICKET_MAGIC, sizeof(ticket.magic)) != 0) return false;
  cdev = makedev(ticket.device_major, ticket.device_minor);
  return true;
}

}  // namespace rocemu::preload
