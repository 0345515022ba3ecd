// One line on standard error, for what a program's user could not guess from an errno.
#pragma once

namespace rocemu::provider {

// Adds "rocemu: " and a newline. Keeps errno.
__attribute__((format(printf, 1, 2))) void complain(const char* format, ...);

}  // namespace rocemu::provider
