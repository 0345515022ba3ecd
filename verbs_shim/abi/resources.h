/* Control messages about what a NIC has, for those who look at it from outside: a device as a
 * whole, the objects that programs hold, and counters by name. As control.h has it.
 *
 * All are of control connections, and tell of all programs, as STATUS does. Keys of regions are
 * among it: whoever may connect could read them in the programs' memory, too.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_RESOURCES_H
#define ROCEMU_VERBS_SHIM_ABI_RESOURCES_H

#include <stdint.h>

#include "verbs_shim/abi/control.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rocemu_resources_op {
  ROCEMU_OP_DESCRIBE_DEVICE = 84,
  ROCEMU_OP_LIST_RESOURCES = 85,
  ROCEMU_OP_NAMED_COUNTERS = 86,
};

enum rocemu_resource_kind {
  ROCEMU_RESOURCE_CONTEXT = 1,
  ROCEMU_RESOURCE_PD = 2,
  ROCEMU_RESOURCE_CQ = 3,
  ROCEMU_RESOURCE_QP = 4,
  ROCEMU_RESOURCE_MR = 5,
  ROCEMU_RESOURCE_SRQ = 6,
  ROCEMU_RESOURCE_CM_ID = 7,
  ROCEMU_RESOURCE_KINDS = 8, /* one more than there are */
};

/* ---- DESCRIBE_DEVICE ---- request: rocemu_handle_message with the device's index as the handle;
 * ENODEV there is none. */
struct rocemu_device_description {
  struct rocemu_header header;
  char name[ROCEMU_NAME_MAX];
  char fw_ver[ROCEMU_NAME_MAX];
  char netdev_name[ROCEMU_NAME_MAX]; /* sysfs's name of the interface behind the port */
  uint64_t node_guid;                /* host order */
  uint64_t device_cap_flags;         /* ibv_device_cap_flags */
  uint32_t netdev_index;             /* the kernel's number of the interface; 0: it has none */
  uint32_t port_state;               /* enum ibv_port_state */
  uint32_t phys_state;
  uint32_t uverbs_major; /* the device number of its node */
  uint32_t uverbs_minor;
  uint32_t reserved;
  uint32_t counts[ROCEMU_RESOURCE_KINDS]; /* objects, by enum rocemu_resource_kind */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_device_description, 288);

/* ---- LIST_RESOURCES ---- a part of the device's objects of one kind. `context` and `place` are
 * 0 at first, and then those that the last reply named. An object that is there all the while is
 * listed, and twice where its program makes many others meanwhile. ENODEV there is no such device;
 * EINVAL no such kind. */
struct rocemu_list_resources {
  struct rocemu_header header;
  uint32_t device_index;
  uint32_t kind; /* enum rocemu_resource_kind */
  uint32_t context;
  uint32_t place;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_list_resources, 40);

struct rocemu_socket_address {
  uint8_t ip[16];  /* IPv4 as ::ffff:a.b.c.d */
  uint16_t port;   /* host order */
  uint16_t family; /* AF_INET, AF_INET6; 0: there is no address */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_socket_address, 20);

/* What has no meaning for a kind is 0. */
struct rocemu_resource {
  uint32_t number;  /* the QP number of a QP; else one that no other object of the device has */
  uint32_t pid;     /* the process that holds it, as the NIC sees it; 0: it does not */
  uint32_t context; /* the number of the one that made it */
  uint32_t pd;      /* the number of its protection domain; 0: it has none */
  uint32_t users;   /* objects that refer to a PD or a CQ */
  uint32_t type;    /* enum ibv_qp_type, also of an id; enum ibv_srq_type */
  uint32_t state;   /* enum ibv_qp_state; of an id Linux' enum rdma_cm_state */
  uint32_t port;    /* 0: it is on none yet */
  union {
    struct {
      uint32_t remote_qpn;
      uint32_t rq_psn;
      uint32_t sq_psn;
      uint32_t path_mig_state; /* enum ibv_mig_state */
    } qp;
    struct {
      uint32_t entries;
    } cq;
    struct {
      uint64_t iova;
      uint64_t length_bytes;
      uint32_t lkey;
      uint32_t rkey;
    } mr;
    struct {
      uint32_t port_space; /* enum rdma_ucm_port_space */
      uint32_t local_qpn;  /* 0: none yet */
      struct rocemu_socket_address source;
      struct rocemu_socket_address destination;
    } cm_id;
    uint64_t words[8];
  };
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_resource, 96);

enum { ROCEMU_RESOURCES_MAX = 40 };
struct rocemu_resources {
  struct rocemu_header header;
  uint32_t count; /* may be 0 although there is more */
  uint32_t more;  /* 1: ask again with these, which are further on; 0: that was all */
  uint32_t next_context;
  uint32_t next_place;
  struct rocemu_resource resources[ROCEMU_RESOURCES_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_resources, 3880);

/* ---- NAMED_COUNTERS ---- of a port, or of a QP since it was made, by the names that sysfs has in
 * hw_counters. ENODEV there is no such device; ENOENT no such QP. */
struct rocemu_named_counters_of {
  struct rocemu_header header;
  uint32_t device_index;
  uint32_t qp_num; /* 0: the port's */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_named_counters_of, 32);

enum { ROCEMU_COUNTER_NAME_MAX = 32, ROCEMU_NAMED_COUNTERS_MAX = 100 };
struct rocemu_named_counter {
  char name[ROCEMU_COUNTER_NAME_MAX]; /* NUL included */
  uint64_t value;
};
struct rocemu_named_counters {
  struct rocemu_header header;
  uint32_t count;
  uint32_t reserved;
  struct rocemu_named_counter counters[ROCEMU_NAMED_COUNTERS_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_named_counters, 4032);

#ifdef __cplusplus
}
#endif
#endif
