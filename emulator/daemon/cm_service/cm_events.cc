#include "emulator/daemon/cm_service/cm_events.h"

#include <cstring>

#include "emulator/daemon/cm_service/cm_structures.h"

namespace rocemu::daemon {
namespace {

template <class From, size_t n>
void store(const From& from, uint8_t (&to)[n]) {
  static_assert(sizeof(From) == n);
  std::memcpy(to, &from, n);
}

// After the other events a program asks for nothing, or no sooner than much later.
bool is_followed_by_questions(cm::EventType type) {
  switch (type) {
    case cm::EventType::address_resolved:
    case cm::EventType::route_resolved:
    case cm::EventType::connect_request:
    case cm::EventType::connect_response:
      return true;
    default:
      return false;
  }
}

void answer_in_advance(const cm::RdmaCm& cm, cm::OwnerId owner, rocemu_cm_answers& answers) {
  const auto id = cm.query(owner, answers.id);
  if (!id) return;
  store(describe_route(cm, **id), answers.route);
  answers.given = 1;
  for (uint32_t state = 1; state <= ROCEMU_CM_SETUPS; ++state) {
    const auto setup = cm.qp_setup(owner, answers.id, state);
    if (!setup) continue;
    store(describe_setup(*setup), answers.setups[state - 1]);
    answers.given |= 1u << state;
  }
}

}  // namespace

int take_event(cm::RdmaCm& cm, cm::OwnerId owner, cm::ChannelId channel, rocemu_cm_event& reply) {
  const auto event = cm.next_event(owner, channel);
  if (!event) return event.error();
  store(describe_event(*event), reply.event);
  reply.answers.id = event->id;
  if (is_followed_by_questions(event->type)) answer_in_advance(cm, owner, reply.answers);
  return 0;
}

}  // namespace rocemu::daemon
