// Functions that glibc has had only since releases that programs here may be older than.
#pragma once

#include <sys/stat.h>

namespace rocemu::exchange {

// fstat(2), a function of glibc since 2.33.
int file_status(int fd, struct stat* file);

// True while the program has certainly no thread but this one: __libc_single_threaded, which glibc
// has since 2.32, or else what the kernel counts. False when neither can be asked.
bool has_one_thread();

}  // namespace rocemu::exchange
