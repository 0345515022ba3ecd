// Conversions of the messages of verbs_shim/abi to what the device takes, and back. They are pure
// functions of their arguments and check nothing: the operation table checks the message's form,
// the device its meaning.
#pragma once

#include "emulator/device/attributes/qp_attributes.h"
#include "emulator/device/hca.h"
#include "verbs_shim/abi/control.h"
#include "verbs_shim/abi/import.h"
#include "verbs_shim/abi/memory.h"
#include "verbs_shim/abi/services.h"

namespace rocemu::daemon {

device::MrSpec to_mr_spec(const rocemu_reg_mr& message);
device::MrSpec to_mr_spec(const rocemu_reg_file_mr& message);  // without the file
device::MrSpec to_mr_spec(const rocemu_rereg_mr& message);
device::MrSpec to_mr_spec(const rocemu_reg_dm_mr& message);
device::CqSpec to_cq_spec(const rocemu_create_cq& message);
device::QpSpec to_qp_spec(const rocemu_create_qp& message);
device::AhAttr to_ah_attr(const rocemu_ah_attr& message);
device::SrqSpec to_srq_spec(const rocemu_create_srq& message);
// Precondition: num_sge is at most ROCEMU_TAG_SGE_MAX.
device::TagOp to_tag_op(const rocemu_change_tags& message);
device::QpAttr to_qp_attr(const rocemu_qp_attr& message);
rocemu_qp_attr from_qp_attr(const device::QpAttr& attr);

}  // namespace rocemu::daemon
