#include "verbs_shim/provider/common/shared_turn.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

namespace rocemu::provider {

struct SharedTurn::Page {
  pthread_mutex_t mutex;
  uint64_t cookie;
};

int SharedTurn::open() {
  void* memory =
      mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  page_ = static_cast<Page*>(memory);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  const int error = pthread_mutex_init(&page_->mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return error;
}

void SharedTurn::close() {
  if (page_ != nullptr) munmap(page_, sizeof(Page));
  page_ = nullptr;
}

void SharedTurn::begin() {
  if (pthread_mutex_lock(&page_->mutex) == EOWNERDEAD) pthread_mutex_consistent(&page_->mutex);
}

void SharedTurn::end() { pthread_mutex_unlock(&page_->mutex); }

uint64_t SharedTurn::next_cookie() { return ++page_->cookie; }

}  // namespace rocemu::provider
