/* The control protocol between a program (provider, preload library, command line) and rocemud.
 *
 * Transport: an AF_UNIX SOCK_SEQPACKET socket, one message a datagram, at most
 * ROCEMU_MESSAGE_MAX bytes, file descriptors by SCM_RIGHTS. Every request is answered by exactly
 * one reply with the same `op` and `cookie`, in the order of the requests. A reply's `status` is 0
 * or a positive errno; a reply with a status carries no body. The daemon closes the connection
 * after a message that is not well formed (short, unknown op, wrong size). Once a device or the
 * service is open, requests may also go by a page that came with the reply to HELLO (mailbox.h).
 *
 * The first request on a connection is ROCEMU_OP_HELLO. A HELLO with device_index
 * ROCEMU_NO_DEVICE makes a control connection (status, links, shutdown); any other opens that
 * device, and the connection then is the context: closing it, by whatever cause, destroys
 * everything it made.
 *
 * Handles (pd, cq, qp, mr, channel, …) belong to one connection, and no number is given out twice:
 * one that is not, or no more, an object of the connection and of the right kind is ENOENT.
 * Reserved fields are zero; a set one is EINVAL.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_CONTROL_H
#define ROCEMU_VERBS_SHIM_ABI_CONTROL_H

#include <stdint.h>

#ifdef __cplusplus
#define ROCEMU_ABI_ASSERT_SIZE(type, size) static_assert(sizeof(struct type) == (size), #type)
extern "C" {
#else
#define ROCEMU_ABI_ASSERT_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type)
#endif

enum {
  ROCEMU_ABI_MAGIC = 0x524f4345, /* "ROCE" */
  ROCEMU_ABI_VERSION = 9,
  ROCEMU_MESSAGE_MAX = 4096,  /* bytes of one message, header included */
  ROCEMU_MESSAGE_MAX_FDS = 4, /* descriptors with one message */
  ROCEMU_NAME_MAX = 64,       /* device, netdev and version names, NUL included */
  ROCEMU_LINK_TEXT_MAX = 512, /* an assignment of impairments, NUL included */
};

#define ROCEMU_NO_DEVICE 0xffffffffu

/* Environment of a program that is to see the NIC; `rocemu run` and `rocemu exec` set it. */
#define ROCEMU_ENV_DIR "ROCEMU_DIR" /* the NIC's state directory: holds nic.sock and sys */
#define ROCEMU_ENV_SHARE_MEMORY \
  "ROCEMU_SHARE_MEMORY" /* "1": registered memory may be made shared, for the NIC to map */
#define ROCEMU_SOCKET_NAME "nic.sock"
/* In the same directory, of a shaken NIC: what repeats it, as --shake takes it, and a newline. */
#define ROCEMU_SHAKE_NAME "shake"
#define ROCEMU_SYSFS_NAME \
  "sys" /* stands in for /sys: class/infiniband, class/infiniband_verbs, … */
#define ROCEMU_SYSFS_MARKER "rocemu" /* file in class/infiniband/DEV: holds the device_index */

enum rocemu_op {
  ROCEMU_OP_HELLO = 1,
  ROCEMU_OP_QUERY_DEVICE = 2,
  ROCEMU_OP_QUERY_PORT = 3,
  ROCEMU_OP_ALLOC_PD = 4,
  ROCEMU_OP_DEALLOC_PD = 5,
  ROCEMU_OP_REG_MR = 6,
  ROCEMU_OP_DEREG_MR = 7,
  ROCEMU_OP_CREATE_CHANNEL = 8,
  ROCEMU_OP_DESTROY_CHANNEL = 9,
  ROCEMU_OP_CREATE_CQ = 10,
  ROCEMU_OP_DESTROY_CQ = 11,
  ROCEMU_OP_CREATE_QP = 12,
  ROCEMU_OP_MODIFY_QP = 13,
  ROCEMU_OP_QUERY_QP = 14,
  ROCEMU_OP_DESTROY_QP = 15,
  /* 16 to 31: services.h */
  ROCEMU_OP_CREATE_AH = 16,
  ROCEMU_OP_DESTROY_AH = 17,
  ROCEMU_OP_CREATE_SRQ = 18,
  ROCEMU_OP_MODIFY_SRQ = 19,
  ROCEMU_OP_QUERY_SRQ = 20,
  ROCEMU_OP_DESTROY_SRQ = 21,
  ROCEMU_OP_OPEN_XRCD = 22,
  ROCEMU_OP_CLOSE_XRCD = 23,
  ROCEMU_OP_OPEN_QP = 24,
  ROCEMU_OP_ATTACH_MCAST = 25,
  ROCEMU_OP_DETACH_MCAST = 26,
  ROCEMU_OP_RESIZE_SRQ = 27,
  ROCEMU_OP_LIMIT_QP_RATE = 28,
  ROCEMU_OP_CREATE_FLOW = 29,
  ROCEMU_OP_DESTROY_FLOW = 30,
  ROCEMU_OP_CREATE_COUNTERS = 31,
  ROCEMU_OP_DESTROY_COUNTERS = 53,
  ROCEMU_OP_READ_COUNTERS = 54,
  ROCEMU_OP_CHANGE_TAGS = 55,
  ROCEMU_OP_STATUS = 64,    /* control connection: reply carries one memfd with JSON text */
  ROCEMU_OP_SHUTDOWN = 65,  /* control connection: the reply comes, then the daemon ends */
  ROCEMU_OP_LINK_SET = 66,  /* control connection: impairments of links, from now on */
  ROCEMU_OP_LINK_SHOW = 67, /* control connection: reply carries one memfd with JSON text */
  ROCEMU_OP_METRICS = 68,   /* control connection: reply carries one memfd with Prometheus' text */
  /* 84 to 86: resources.h */
  /* 72 to 75: fault.h */
  ROCEMU_OP_FAULT_ADD = 72,
  ROCEMU_OP_FAULT_CLEAR = 73,
  ROCEMU_OP_FAULT_LIST = 74,
  ROCEMU_OP_ASK_POST = 75,
  /* trace.h */
  ROCEMU_OP_TRACE_START = 76,
  ROCEMU_OP_TRACE_STOP = 77,
};

struct rocemu_header {
  uint32_t op;     /* enum rocemu_op */
  uint32_t length; /* bytes of the whole message, this header included */
  uint64_t cookie; /* chosen by the requester, handed back */
  int32_t status;  /* replies: 0 or a positive errno; requests: 0 */
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_header, 24);

/* The mode of the pipes whose write ends are handed to the daemon. The daemon opens them anew, for
 * file status flags of its own, and may be another user than the program, which is root then.
 * Nobody else gets at them: /proc/PID/fd wants the rights of a debugger. */
#define ROCEMU_EVENT_PIPE_MODE 0602

/* ---- HELLO ----
 * Request descriptors, in this order: [0] the write end of the program's async event pipe
 * (O_NONBLOCK set by the program on that end), [1] the program's own /proc/self/mem opened O_RDWR,
 * or absent when it can't be opened. A control connection sends none.
 * The daemon reads `probe_value` back from `probe_address` to learn how it can reach the program's
 * memory; when no way works the answer is EPERM.
 * Reply descriptors (device connections): [0] doorbell page memfd (rw), [1] engine page memfd
 * (read-only), [2] the wake eventfd, [3] the mailbox's page (mailbox.h).
 * Errors: EPROTO other magic or ABI version (the reply then does carry a body: the daemon's
 * version), ENODEV no such device, EPERM memory out of reach, ENOMEM table full. */
struct rocemu_hello {
  struct rocemu_header header;
  uint32_t magic;
  uint32_t abi_version;
  uint32_t device_index;
  uint32_t reserved;
  uint64_t probe_address;
  uint64_t probe_value;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_hello, 56);

struct rocemu_hello_reply {
  struct rocemu_header header;
  uint32_t abi_version;
  uint32_t max_doorbells; /* doorbell slots of this context, a multiple of 64 */
  uint32_t num_comp_vectors;
  uint32_t daemon_pid; /* as the daemon sees itself; for PR_SET_PTRACER use SO_PEERCRED */
  char daemon_version[ROCEMU_NAME_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_hello_reply, 104);

/* ---- QUERY_DEVICE ---- request: header alone. Values as in struct ibv_device_attr(_ex). */
struct rocemu_device_attr {
  struct rocemu_header header;
  char fw_ver[ROCEMU_NAME_MAX];
  uint64_t node_guid;      /* network order, as verbs has it */
  uint64_t sys_image_guid; /* network order */
  uint64_t max_mr_size;
  uint64_t page_size_cap;
  uint64_t device_cap_flags; /* ibv_device_cap_flags; ex flags in the upper half */
  uint64_t hca_core_clock_khz;
  uint64_t completion_timestamp_mask;
  uint32_t vendor_id;
  uint32_t vendor_part_id;
  uint32_t hw_ver;
  uint32_t max_qp;
  uint32_t max_qp_wr;
  uint32_t max_sge;
  uint32_t max_sge_rd;
  uint32_t max_cq;
  uint32_t max_cqe;
  uint32_t max_mr;
  uint32_t max_pd;
  uint32_t max_qp_rd_atom;
  uint32_t max_res_rd_atom;
  uint32_t max_qp_init_rd_atom;
  uint32_t atomic_cap; /* enum ibv_atomic_cap */
  uint32_t max_mw;
  uint32_t max_mcast_grp;
  uint32_t max_mcast_qp_attach;
  uint32_t max_total_mcast_qp_attach;
  uint32_t max_ah;
  uint32_t max_srq;
  uint32_t max_srq_wr;
  uint32_t max_srq_sge;
  uint32_t max_pkeys;
  uint32_t local_ca_ack_delay;
  uint32_t phys_port_cnt;
  uint32_t max_inline_data;
  uint32_t max_raw_qp; /* 0: the port carries no raw packets */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_device_attr, 256);

/* ---- QUERY_PORT ---- request: rocemu_query_port; EINVAL when there is no such port. */
struct rocemu_query_port {
  struct rocemu_header header;
  uint32_t port_num; /* from 1 */
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_query_port, 32);

struct rocemu_port_attr {
  struct rocemu_header header;
  uint32_t state;      /* enum ibv_port_state */
  uint32_t max_mtu;    /* enum ibv_mtu */
  uint32_t active_mtu; /* enum ibv_mtu */
  uint32_t gid_tbl_len;
  uint32_t port_cap_flags;
  uint32_t max_msg_sz;
  uint32_t pkey_tbl_len;
  uint32_t active_width;
  uint32_t active_speed;
  uint32_t phys_state;
  uint32_t max_vl_num;
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_port_attr, 72);

/* ---- ALLOC_PD, DEALLOC_PD, DEREG_MR, DESTROY_CHANNEL, DESTROY_QP ----
 * Request and reply of these, and the reply where only a handle comes back. DEALLOC_PD and
 * DESTROY_CHANNEL answer EBUSY while something uses the object. */
struct rocemu_handle_message {
  struct rocemu_header header;
  uint32_t handle;
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_handle_message, 32);

/* ---- REG_MR ---- reply: rocemu_reg_mr_reply. EINVAL bad access flags or length over max_mr_size.
 */
struct rocemu_reg_mr {
  struct rocemu_header header;
  uint32_t pd;
  uint32_t access;  /* enum ibv_access_flags */
  uint64_t address; /* in the program */
  uint64_t length_bytes;
  uint64_t iova; /* the address that work requests and peers use */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_reg_mr, 56);

struct rocemu_reg_mr_reply {
  struct rocemu_header header;
  uint32_t mr;
  uint32_t lkey;
  uint32_t rkey;
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_reg_mr_reply, 40);

/* ---- CREATE_CHANNEL ---- one descriptor: the write end of a pipe whose read end is the program's
 * ibv_comp_channel fd (O_NONBLOCK set on the write end by the program). Each completion event is
 * the 8 bytes of the CQ's `user_pointer`. Reply: rocemu_handle_message. */
struct rocemu_create_channel {
  struct rocemu_header header;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_create_channel, 24);

/* ---- CREATE_CQ ---- with a descriptor as of CREATE_CHANNEL the CQ gets a channel of its own,
 * which the reply names. reply: rocemu_create_cq_reply with one descriptor, the CQ's memfd
 * (rings.h). EINVAL cqe 0 or over max_cqe, comp_vector out of range, both a channel and a
 * descriptor; ENOMEM. */
enum { ROCEMU_CQ_IGNORES_OVERRUN = 1 }; /* completions are just lost when it is full */
struct rocemu_create_cq {
  struct rocemu_header header;
  uint32_t cqe;     /* completions it must hold */
  uint32_t channel; /* handle, or 0 for none */
  uint32_t comp_vector;
  uint32_t flags;
  uint64_t user_pointer; /* carried by completion and async events about this CQ */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_create_cq, 48);

struct rocemu_create_cq_reply {
  struct rocemu_header header;
  uint32_t cq;
  uint32_t entries;      /* as granted, at least cqe; the ring has the next power of two of slots */
  uint64_t memory_bytes; /* size of the memfd */
  uint32_t channel;      /* the CQ's, or 0 */
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_create_cq_reply, 48);

/* ---- DESTROY_CQ ---- request: rocemu_handle_message; EBUSY while a QP uses it. The reply says how
 * many events about this CQ were ever written to its channel and to the async pipe, so that the
 * provider can purge those the program has not read and wait for the acknowledgement of the rest.
 */
struct rocemu_destroy_events_reply {
  struct rocemu_header header;
  uint32_t comp_events;
  uint32_t async_events;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_destroy_events_reply, 32);

/* ---- CREATE_QP ---- reply: rocemu_create_qp_reply with one descriptor, the QP's memfd (rings.h).
 * Members that the service has no use for are not looked at: the receive queue with an SRQ and of
 * XRC_SEND; PD, CQs and both queues of XRC_RECV.
 * EINVAL a limit exceeded; EOPNOTSUPP another type than the device has; ENOMEM. */
struct rocemu_create_qp {
  struct rocemu_header header;
  uint32_t pd;
  uint32_t send_cq;
  uint32_t recv_cq;
  uint32_t qp_type; /* enum ibv_qp_type */
  uint32_t max_send_wr;
  uint32_t max_recv_wr;
  uint32_t max_send_sge;
  uint32_t max_recv_sge;
  uint32_t max_inline_data;
  uint32_t sq_sig_all;   /* 0 or 1 */
  uint64_t user_pointer; /* carried by async events about this QP */
  uint32_t srq;          /* handle, or 0: a receive queue of its own */
  uint32_t xrcd;         /* XRC_RECV: handle; else 0 */
  /* RAW_PACKET: the most headers of a request for TCP segmentation; 0: there are none. */
  uint32_t max_tso_header;
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_create_qp, 88);

struct rocemu_create_qp_reply {
  struct rocemu_header header;
  uint32_t qp;
  uint32_t qp_num;
  uint32_t doorbell; /* slot in the doorbell page */
  /* As granted, at least what was asked; 0 for none. The ring has the next power of two of slots.
   */
  uint32_t sq_entries;
  uint32_t sq_stride_bytes; /* multiples of 64 */
  uint32_t rq_entries;
  uint32_t rq_stride_bytes;
  uint32_t max_send_sge; /* as granted, at least what was asked */
  uint32_t max_recv_sge;
  uint32_t max_inline_data;
  uint64_t sq_offset_bytes; /* in the memfd */
  uint64_t rq_offset_bytes;
  uint64_t memory_bytes; /* size of the memfd */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_create_qp_reply, 88);

/* ---- DESTROY_QP ---- request: rocemu_handle_message; reply: rocemu_destroy_events_reply. After
 * the reply the NIC writes nothing more about this QP; completions already in the CQ stay there and
 * the provider removes them. */

/* Address vector: struct ibv_ah_attr with its GRH. */
struct rocemu_ah_attr {
  uint8_t dgid[16];
  uint32_t flow_label;
  uint8_t sgid_index;
  uint8_t hop_limit;
  uint8_t traffic_class;
  uint8_t is_global;
  uint16_t dlid;
  uint8_t sl;
  uint8_t src_path_bits;
  uint8_t static_rate;
  uint8_t port_num;
  uint8_t reserved[2];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_ah_attr, 32);

/* struct ibv_qp_attr. */
struct rocemu_qp_attr {
  uint32_t qp_state;     /* enum ibv_qp_state */
  uint32_t cur_qp_state; /* enum ibv_qp_state */
  uint32_t path_mtu;     /* enum ibv_mtu */
  uint32_t path_mig_state;
  uint32_t qkey;
  uint32_t rq_psn;
  uint32_t sq_psn;
  uint32_t dest_qp_num;
  uint32_t qp_access_flags;
  struct rocemu_ah_attr ah;
  struct rocemu_ah_attr alt_ah;
  uint16_t pkey_index;
  uint16_t alt_pkey_index;
  uint8_t en_sqd_async_notify;
  uint8_t sq_draining;
  uint8_t max_rd_atomic;
  uint8_t max_dest_rd_atomic;
  uint8_t min_rnr_timer;
  uint8_t port_num;
  uint8_t timeout;
  uint8_t retry_cnt;
  uint8_t rnr_retry;
  uint8_t alt_port_num;
  uint8_t alt_timeout;
  uint8_t reserved[1];
  uint32_t rate_limit;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_qp_attr, 120);

/* ---- MODIFY_QP ---- reply: rocemu_handle_message with handle = the QP's state afterwards.
 * EINVAL for an illegal transition, missing or forbidden attributes, values over the limits;
 * EHOSTUNREACH when nobody has the destination GID. */
struct rocemu_modify_qp {
  struct rocemu_header header;
  uint32_t qp;
  uint32_t attr_mask; /* enum ibv_qp_attr_mask */
  struct rocemu_qp_attr attr;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_modify_qp, 152);

/* ---- QUERY_QP ---- request: rocemu_handle_message. */
struct rocemu_query_qp_reply {
  struct rocemu_header header;
  struct rocemu_qp_attr attr;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_query_qp_reply, 144);

/* ---- LINK_SET ---- reply: a header alone. The text is DEVICE[.tx|.rx|.both]:SPEC or SPEC as in
 * docs/impairments.md, with a NUL behind it and up to the end. EINVAL it is none of these; ENODEV
 * no such device; EOPNOTSUPP the NIC's ports are of no in-process switch. */
struct rocemu_link_set {
  struct rocemu_header header;
  char assignment[ROCEMU_LINK_TEXT_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_link_set, 536);

/* ---- LINK_SHOW ---- request: header alone; EOPNOTSUPP as above. The text is an array with an
 * object for each direction of each device's link: strings "device", "direction" ("tx", "rx") and
 * "spec", and counts since the spec was set. */

/* An event that the daemon writes to the async pipe, in struct ib_uverbs_async_event_desc's layout.
 */
struct rocemu_async_event {
  uint64_t element;    /* the object's user_pointer; the port number for port events */
  uint32_t event_type; /* enum ibv_event_type */
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_async_event, 16);

#ifdef __cplusplus
}
#endif
#endif
