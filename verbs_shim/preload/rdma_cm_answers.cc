#include "verbs_shim/preload/rdma_cm_answers.h"

#include <stdlib.h>

namespace rocemu::preload {
namespace {

// An answer stands at its id modulo that many, which is more than programs have under way at once;
// rocemud gives ids one after the other.
constexpr uint32_t kSlots = 2048;

rocemu_cm_answers* slots = nullptr;  // made when needed, and never freed

rocemu_cm_answers& slot_of(uint32_t id) { return slots[id % kSlots]; }

}  // namespace

void keep_answers(const rocemu_cm_answers& answers) {
  if (answers.given == 0) return forget_answers(answers.id);
  if (slots == nullptr) slots = static_cast<rocemu_cm_answers*>(calloc(kSlots, sizeof(*slots)));
  if (slots != nullptr) slot_of(answers.id) = answers;
}

const rocemu_cm_answers* find_answers(uint32_t id) {
  if (slots == nullptr || slot_of(id).given == 0 || slot_of(id).id != id) return nullptr;
  return &slot_of(id);
}

void forget_answers(uint32_t id) {
  if (find_answers(id) != nullptr) slot_of(id).given = 0;
}

void forget_all_answers() {
  for (uint32_t i = 0; slots != nullptr && i < kSlots; ++i) slots[i].given = 0;
}

}  // namespace rocemu::preload
