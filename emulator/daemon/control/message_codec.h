// Between the messages of verbs_shim/abi/control.h and what the daemon works with. Pure functions
// of their arguments: sizes and reserved fields are checked here, meaning is checked by the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tl/expected.hpp>
#include <variant>

#include "emulator/device/hca.h"
#include "emulator/device/qp_attributes.h"
#include "verbs_shim/abi/control.h"
#include "verbs_shim/abi/import.h"
#include "verbs_shim/abi/memory.h"
#include "verbs_shim/abi/services.h"

namespace rocemu::daemon {

enum class Malformed {
  too_short,     // for a header
  wrong_length,  // for its op, or other than its header says
  unknown_op,
};
const char* to_string(Malformed why);

struct Request {
  rocemu_header header{};
  // A request that is a header alone holds monostate.
  std::variant<std::monostate, rocemu_hello, rocemu_query_port, rocemu_handle_message,
               rocemu_reg_mr, rocemu_reg_file_mr, rocemu_create_cq, rocemu_create_qp,
               rocemu_modify_qp, rocemu_link_set, rocemu_rereg_mr, rocemu_alloc_mw, rocemu_alloc_dm,
               rocemu_reg_dm_mr, rocemu_check_prefetch, rocemu_resize_cq, rocemu_join_context,
               rocemu_import_mr, rocemu_create_ah, rocemu_create_srq, rocemu_srq_limit,
               rocemu_open_xrcd, rocemu_open_qp, rocemu_mcast, rocemu_resize_srq,
               rocemu_moderate_cq>
      body;
  // 0, or what the request is refused with: EINVAL for a reserved field that is set, EPROTO for a
  // HELLO of another ABI (its length is not checked then).
  int error = 0;

  // Of a request that names one object; 0 otherwise.
  uint32_t handle() const {
    const auto* const named = std::get_if<rocemu_handle_message>(&body);
    return named != nullptr ? named->handle : 0;
  }
};

// A copy of the message, which is `bytes` as it came.
tl::expected<Request, Malformed> decode(std::span<const std::byte> bytes);

device::MrSpec to_mr_spec(const rocemu_reg_mr& message);
device::MrSpec to_mr_spec(const rocemu_reg_file_mr& message);  // without the file
device::MrSpec to_mr_spec(const rocemu_rereg_mr& message);
device::MrSpec to_mr_spec(const rocemu_reg_dm_mr& message);
device::CqSpec to_cq_spec(const rocemu_create_cq& message);
device::QpSpec to_qp_spec(const rocemu_create_qp& message);
device::AhAttr to_ah_attr(const rocemu_ah_attr& message);
device::SrqSpec to_srq_spec(const rocemu_create_srq& message);
device::QpAttr to_qp_attr(const rocemu_qp_attr& message);
rocemu_qp_attr from_qp_attr(const device::QpAttr& attr);

}  // namespace rocemu::daemon
