// Send requests built by the functions of ibv_qp_ex, as the list of ibv_send_wr that the checker
// wants. Used by a thread between wr_start and wr_complete, and by the hooks that follow it: two
// lists take turns, as the next wr_start may come while those still read the last one.
#pragma once

#include <infiniband/verbs.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>

namespace rocemu::provider::checked {

// An array on the C heap that grows; false without memory.
template <typename T>
struct Growing {
  T* items = nullptr;
  size_t count = 0;
  size_t room = 0;

  bool make_room(size_t more) {
    if (count + more <= room) return true;
    const size_t larger = (count + more) * 2;
    T* moved = static_cast<T*>(realloc(items, larger * sizeof(T)));
    if (moved == nullptr) return false;
    items = moved;
    room = larger;
    return true;
  }
};

struct StagedList {
  Growing<ibv_send_wr> requests;
  Growing<ibv_sge> sges;

  void clear() { requests.count = sges.count = 0; }

  // The request that is being built; null when there was no memory for it.
  ibv_send_wr* last() {
    return requests.count == 0 ? nullptr : &requests.items[requests.count - 1];
  }

  ibv_send_wr* add() {
    if (!requests.make_room(1)) return nullptr;
    ibv_send_wr& request = requests.items[requests.count++];
    request = {};
    return &request;
  }

  // SGEs of the last request, which had none.
  void add_sges(const ibv_sge* list, size_t count) {
    ibv_send_wr* request = last();
    if (request == nullptr || !sges.make_room(count)) return;
    for (size_t i = 0; i < count; ++i) sges.items[sges.count++] = list[i];
    request->num_sge = static_cast<int>(count);
  }

  // The whole list, linked up; null for none.
  ibv_send_wr* link() {
    ibv_sge* next_sge = sges.items;
    for (size_t i = 0; i < requests.count; ++i) {
      ibv_send_wr& request = requests.items[i];
      request.next = i + 1 < requests.count ? &requests.items[i + 1] : nullptr;
      request.sg_list = next_sge;
      next_sge += request.num_sge;
    }
    return requests.count == 0 ? nullptr : requests.items;
  }
};

// The part of a QP that only checked verbs use.
struct QueuePairRecord {
  void* shadow = nullptr;
  StagedList lists[2];
  unsigned current = 0;

  StagedList& staged() { return lists[current]; }

  ~QueuePairRecord() {
    for (StagedList& list : lists) {
      free(list.requests.items);
      free(list.sges.items);
    }
  }
};

}  // namespace rocemu::provider::checked
