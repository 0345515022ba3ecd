// Functions that tell the checker of connection management (abi/cm_watch.h), as long as there is a
// checker.
#pragma once

#include <stdint.h>
#include <sys/types.h>

namespace rocemu::preload {

// read(2) of an event's byte, which may block. A thread that is cancelled there has waited, too.
ssize_t read_token(int channel_fd, char& byte);

void tell_closing(int channel_fd);
void tell_listening(uint32_t refused);

}  // namespace rocemu::preload
