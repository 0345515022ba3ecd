// The ioctls by which libibverbs asks the kernel about GIDs. Answered here, they leave no ENOTTY in
// errno, and libibverbs needs no second way.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

namespace rocemu::provider {

// True for UVERBS_METHOD_QUERY_GID_ENTRY and UVERBS_METHOD_QUERY_GID_TABLE.
bool is_gid_query(const ib_uverbs_ioctl_hdr& header);

// 0, or EINVAL: no such port or index, flags, a malformed request; ENODATA: that place in the table
// is empty.
int answer_gid_query(const ibv_device& device, ib_uverbs_ioctl_hdr& header);

}  // namespace rocemu::provider
