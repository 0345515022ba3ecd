#include "verbs_shim/provider/op_list.h"

#include "verbs_shim/provider/checked/checked_ops.h"
#include "verbs_shim/provider/common/leaves_errno.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/layouts.h"

namespace rocemu::provider {
namespace {

struct Row {
  const char* name;
  Op ordinary;
  Op checked;
};

template <typename Function>
Op as_op(Function* function) {
  return reinterpret_cast<Op>(function);
}

}  // namespace

OpList list_ops(int release, bool checked) {
  const Row rows[] = {
#define ROCEMU_OP(name) \
  {#name, as_op(LeavesErrno<&provider::name>::call), as_op(LeavesErrno<&checked::name>::call)},
#define ROCEMU_DATA_OP(name) {#name, as_op(provider::name), as_op(checked::name)},
#define ROCEMU_EVENT_OP(name) {#name, nullptr, as_op(checked::name)},
#define ROCEMU_NO_OP(name) {#name, nullptr, nullptr},
#include "verbs_shim/provider/op_table.inc"
#undef ROCEMU_OP
#undef ROCEMU_DATA_OP
#undef ROCEMU_EVENT_OP
#undef ROCEMU_NO_OP
  };
  static_assert(sizeof(rows) / sizeof(Row) <= kMaxOps);
  OpList list;
  size_t count = 0;
  for (const Row& row : rows) {
    if (has_op(release, row.name)) list.ops[count++] = checked ? row.checked : row.ordinary;
  }
  return list;
}

}  // namespace rocemu::provider
