// Before an object goes, each of its events has to be acknowledged or never to be read: whoever
// reads an event uses the pointer in it (ibv_get_cq_event(3), ibv_get_async_event(3)).
#pragma once

#include <pthread.h>

#include <cstdint>

#include "verbs_shim/provider/context/device_context.h"

namespace rocemu::provider {

// Takes the unread events about `object` out of `pipe`; how many. `written` is how many the NIC
// ever wrote, `acknowledged` how many of these the program is done with, under `mutex`.
inline uint32_t purge_unread(DeviceContext& context, EventPipe& pipe, size_t record_bytes,
                             uint64_t object, uint32_t written, const uint32_t& acknowledged,
                             pthread_mutex_t& mutex) {
  pthread_mutex_lock(&mutex);
  const bool all_done = acknowledged == written;
  pthread_mutex_unlock(&mutex);
  if (all_done) return 0;
  Lock lock(context.state.purge.lock);
  return pipe.purge(context.state.purge.passage, record_bytes, object);
}

template <typename Condition>
void await_acknowledgement(pthread_mutex_t& mutex, pthread_cond_t& changed, Condition done) {
  pthread_mutex_lock(&mutex);
  while (!done()) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

}  // namespace rocemu::provider
