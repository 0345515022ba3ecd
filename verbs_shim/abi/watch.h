/* The provider asks this of the preload library: to see the read(), write() and close() calls on a
 * few file descriptors of its own. libibverbs makes a completion channel by writing a command to
 * the device's descriptor and gives it up by closing it; neither call reaches a provider otherwise.
 *
 * The provider finds these functions with dlsym(RTLD_DEFAULT, …): the preload library is loaded
 * with the program, or the program doesn't see the device at all. The suffix is the interface's
 * version.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_WATCH_H
#define ROCEMU_VERBS_SHIM_ABI_WATCH_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rocemu_fd_watch {
  /* Called instead of write(2), and answers as that does: bytes taken, or -1 with errno. May be
   * null: then the write goes through. */
  ssize_t (*on_write)(void* context, const void* data, size_t bytes);
  /* Called before the descriptor is closed, in the thread that closes it. May be null. Not called
   * in a child process. */
  void (*on_close)(void* context);
  /* Called instead of ioctl(2), and answers as that does. May be null: then the call goes through.
   */
  int (*on_ioctl)(void* context, unsigned long request, void* argument);
  /* Called when read(2) says that there is nothing more to come, and answers in its place: bytes
   * put into `data`, or -1 with errno. May be null: then the end is the end. */
  ssize_t (*on_end)(void* context, void* data, size_t bytes);
  /* Called before each read(2) of the descriptor, in the thread that reads. May be null. Not called
   * in a child process. */
  void (*before_read)(void* context, int fd);
};

/* Watches `fd` until it is closed or unwatched. `watch` is kept by reference. 0, or a positive
 * errno: EBADF not an open descriptor or a number over the table's bound, ENOMEM. */
int rocemu_preload_watch_fd_v4(int fd, const struct rocemu_fd_watch* watch, void* context);

void rocemu_preload_unwatch_fd_v4(int fd);

#define ROCEMU_PRELOAD_WATCH_FD "rocemu_preload_watch_fd_v4"
#define ROCEMU_PRELOAD_UNWATCH_FD "rocemu_preload_unwatch_fd_v4"

#ifdef __cplusplus
}
#endif
#endif
