// A file of a FUSE server that opens it and answers nothing else.
#pragma once

#include <string>

namespace rocemu::e2e {

// The descriptor, or an exception that names `what`.
int must_fd(int fd, const char* what);

// Empty when this user may mount FUSE, otherwise what is missing.
std::string fuse_missing();
// A new file to mount on.
std::string mount_point();
// Mounts there, in a mount namespace that this process has from then on; an ordinary user gets a
// user namespace, too. The server's descriptor, or -1.
int mount_fuse(const char* where);
// READ, FLUSH and RELEASE among others wait for ever.
[[noreturn]] void serve_fuse(int fuse);

}  // namespace rocemu::e2e
