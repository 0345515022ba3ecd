#include "verbs_shim/checker/model/object.h"

#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {

Object::Object(const Call& call, rocemu_check_kind of_kind, Context* of_context, void* at,
               uint32_t known_by)
    : kind(of_kind),
      context(of_context),
      handle(at),
      number(known_by),
      made_at(call.place()),
      made_by(call.thread()),
      made_with(call.verb()) {}

Object::~Object() {
  for (const auto& note : notes) delete note.load();
}

std::string Object::name() const {
  return std::string(name_of(kind)) + " " + hex(reinterpret_cast<uintptr_t>(handle));
}

const char* name_of(rocemu_check_kind kind) {
  switch (kind) {
    case ROCEMU_CHECK_CONTEXT:
      return "device";
    case ROCEMU_CHECK_PD:
      return "PD";
    case ROCEMU_CHECK_MR:
      return "MR";
    case ROCEMU_CHECK_MW:
      return "MW";
    case ROCEMU_CHECK_DM:
      return "device memory";
    case ROCEMU_CHECK_AH:
      return "AH";
    case ROCEMU_CHECK_CHANNEL:
      return "completion channel";
    case ROCEMU_CHECK_CQ:
      return "CQ";
    case ROCEMU_CHECK_QP:
      return "QP";
    case ROCEMU_CHECK_SRQ:
      return "SRQ";
    case ROCEMU_CHECK_WQ:
      return "WQ";
    case ROCEMU_CHECK_XRCD:
      return "XRC domain";
    case ROCEMU_CHECK_TD:
      return "thread domain";
    case ROCEMU_CHECK_FLOW:
      return "flow";
    case ROCEMU_CHECK_COUNTERS:
      return "counters";
    case ROCEMU_CHECK_IND_TABLE:
      return "indirection table";
    case ROCEMU_CHECK_KINDS:
      break;
  }
  return "object";
}

}  // namespace rocemu::check
