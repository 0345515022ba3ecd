/* librocemu-memory-watch.so tells the checker of memory that goes. It is loaded with LD_PRELOAD
 * into programs that are checked, as a library that is loaded later can't stand before free(3) and
 * munmap(2). It knows the ranges that the checker names, and calls it when a part of one goes.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_MEMORY_WATCH_H
#define ROCEMU_VERBS_SHIM_ABI_MEMORY_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "verbs_shim/abi/check.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ROCEMU_MEMORY_WATCH_LIBRARY "librocemu-memory-watch.so"

/* As in rocemu_check_hooks. Called in the thread that lets the memory go, before it is gone (with
 * "realloc", after it); not from within itself. With "mprotect" the memory stays, but can't be read
 * any more. */
typedef void (*rocemu_memory_going)(rocemu_check_at at, const void* address, size_t bytes,
                                    const char* how);

struct rocemu_memory_watch {
  /* Sets the function to call; null for none. */
  void (*tell)(rocemu_memory_going going);
  /* Ranges may overlap, and be there several times. `remove` takes one out that was added with the
   * same values. A range for which there is no memory left is not watched. */
  void (*add)(const void* address, size_t bytes);
  void (*remove)(const void* address, size_t bytes);
};

const struct rocemu_memory_watch* rocemu_memory_watch_v1(void);
#define ROCEMU_MEMORY_WATCH "rocemu_memory_watch_v1"

#ifdef __cplusplus
}
#endif
#endif
