/* Control messages about what unreliable, shared and multicast services need: address handles,
 * shared receive queues, XRC domains, multicast groups. As control.h has it.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_SERVICES_H
#define ROCEMU_VERBS_SHIM_ABI_SERVICES_H

#include <stdint.h>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/abi/rings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- CREATE_AH ---- reply: rocemu_handle_message; the handle stands in the WQEs of the program's
 * UD QPs in the same PD. EINVAL as for MODIFY_QP's address vector, EHOSTUNREACH nobody has the
 * destination GID, ENOMEM. DESTROY_AH: rocemu_handle_message both ways. */
struct rocemu_create_ah {
  struct rocemu_header header;
  uint32_t pd;
  uint32_t reserved;
  struct rocemu_ah_attr attr;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_create_ah, 64);

/* ---- CREATE_SRQ ---- reply: rocemu_create_srq_reply with one descriptor, the SRQ's memfd
 * (rings.h). EINVAL a limit exceeded or max_wr 0; ENOMEM. */
enum { ROCEMU_SRQ_BASIC = 0, ROCEMU_SRQ_XRC = 1, ROCEMU_SRQ_TM = 2 }; /* enum ibv_srq_type */
struct rocemu_create_srq {
  struct rocemu_header header;
  uint32_t pd;
  uint32_t srq_type;
  uint32_t max_wr;
  uint32_t max_sge;
  uint32_t xrcd; /* XRC; else 0 */
  uint32_t cq;   /* XRC and TM; else 0 */
  uint64_t user_pointer;
  uint32_t max_tags; /* TM; else 0 */
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_create_srq, 64);

struct rocemu_create_srq_reply {
  struct rocemu_header header;
  uint32_t srq;
  uint32_t srq_num; /* XRC: what peers' work requests name; else 0 */
  uint32_t entries; /* as granted, at least max_wr; the ring has the next power of two of slots */
  uint32_t stride_bytes;
  uint32_t max_sge; /* as granted */
  uint32_t reserved;
  uint64_t offset_bytes; /* place of the ring in the memfd */
  uint64_t memory_bytes; /* size of the memfd */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_create_srq_reply, 64);

/* ---- MODIFY_SRQ ---- arms IBV_EVENT_SRQ_LIMIT_REACHED, or disarms it with 0. Reply:
 * rocemu_handle_message. QUERY_SRQ: the same request with limit 0; the reply bears the limit.
 * EINVAL it is more than max_wr. DESTROY_SRQ: rocemu_handle_message; reply:
 * rocemu_destroy_events_reply; EBUSY while a QP uses it. */
struct rocemu_srq_limit {
  struct rocemu_header header;
  uint32_t srq;
  uint32_t limit;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_srq_limit, 32);

/* ---- RESIZE_SRQ ---- reply: rocemu_create_srq_reply with one descriptor, the new memfd. It holds
 * the receives that were not taken, and both indices; the NIC uses the old one no more. The
 * program posts none meanwhile. EINVAL max_wr 0, over max_srq_wr, under the armed limit, or fewer
 * than there are receives. */
struct rocemu_resize_srq {
  struct rocemu_header header;
  uint32_t srq;
  uint32_t max_wr;
  uint32_t max_sge; /* as granted */
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_resize_srq, 40);

/* ---- CHANGE_TAGS ---- one of ibv_post_srq_ops. Reply: rocemu_handle_message with the handle of
 * what was added, else 0. EINVAL no tag-matching SRQ, unknown operation or flags, a buffer over
 * max_msg_size; ENOMEM the list is full. */
enum { ROCEMU_TAGS_MAX = 256, ROCEMU_TAG_SGE_MAX = 16, ROCEMU_RENDEZVOUS_BYTES_MAX = 64 };
struct rocemu_change_tags {
  struct rocemu_header header;
  uint32_t srq;
  uint32_t operation; /* enum ibv_ops_wr_opcode */
  uint32_t flags;     /* enum ibv_ops_flags */
  uint32_t unexpected;
  uint64_t wr_id;
  uint64_t receive_wr_id;
  uint64_t tag;
  uint64_t mask;
  uint32_t handle;
  uint32_t num_sge;
  struct rocemu_sge sges[ROCEMU_TAG_SGE_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_change_tags, 336);

/* ---- OPEN_XRCD ---- with the descriptor of the file that stands for the domain, or with none for
 * one of the context's own. Reply: rocemu_handle_message. Without a file EINVAL unless CREATE; with
 * one EAGAIN when the domain is not there and not to be made, EINVAL when it is there and
 * EXCLUSIVE. CLOSE_XRCD: rocemu_handle_message both ways; EBUSY while a QP or SRQ of this opening
 * exists. */
enum { ROCEMU_XRCD_CREATE = 1, ROCEMU_XRCD_EXCLUSIVE = 2 };
struct rocemu_open_xrcd {
  struct rocemu_header header;
  uint32_t flags;
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_open_xrcd, 32);

/* ---- OPEN_QP ---- another handle for an XRC_RECV QP of the domain. Reply: rocemu_handle_message;
 * such a handle has no queue memory. It is destroyed by DESTROY_QP; the QP goes with the last one.
 * EINVAL the domain has no such QP. */
struct rocemu_open_qp {
  struct rocemu_header header;
  uint32_t xrcd;
  uint32_t qp_num;
  uint64_t user_pointer;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_open_qp, 40);

/* ---- ATTACH_MCAST, DETACH_MCAST ---- reply: rocemu_handle_message. EINVAL no UD QP, no multicast
 * GID, or not attached; ENOMEM a limit reached. */
struct rocemu_mcast {
  struct rocemu_header header;
  uint32_t qp;
  uint32_t reserved;
  uint8_t gid[16];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_mcast, 48);

/* ---- LIMIT_QP_RATE ---- reply: rocemu_handle_message. A rate of 0 ends it, as RESET does; a burst
 * of 0 is the NIC's choice. EINVAL the QP has no send queue or is in RESET or ERROR; a rate over
 * the device's. */
struct rocemu_limit_qp_rate {
  struct rocemu_header header;
  uint32_t qp;
  uint32_t rate_kbps;
  uint32_t max_burst_bytes;
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_limit_qp_rate, 40);

/* TCP segmentation over RAW_PACKET: the most payload of a request, and of headers. */
enum { ROCEMU_TSO_BYTES_MAX = 256 * 1024, ROCEMU_TSO_HEADER_MAX = 1024 };

/* ---- CREATE_FLOW ---- reply: rocemu_handle_message. Frames that have `value` wherever `mask` has
 * ones go to the raw packet QPs `qps`: to one, or to one of a power of two of them, by the Toeplitz
 * hash with `hash_key` over `hash_fields` (enum ibv_rx_hash_fields). EINVAL another kind, field or
 * number of QPs, or a QP of another type; ENOMEM. DESTROY_FLOW: rocemu_handle_message both ways. A
 * QP that a flow leads to cannot be destroyed (EBUSY). */
enum { ROCEMU_FLOW_RECEIVERS_MAX = 128, ROCEMU_HASH_KEY_BYTES = 40 };
enum rocemu_flow_flags { ROCEMU_FLOW_DROPS = 1, ROCEMU_FLOW_HAS_TAG = 2 };

/* The headers of a frame, each in network order; what it does not have is 0. An IPv4 address is the
 * first four bytes of its place. */
struct rocemu_frame_fields {
  uint8_t destination_mac[6];
  uint8_t source_mac[6];
  uint8_t ether_type[2]; /* behind a VLAN tag */
  uint8_t vlan_tci[2];
  uint8_t source_ip[16];
  uint8_t destination_ip[16];
  uint8_t flow_label[4];
  uint8_t protocol; /* or IPv6's next header */
  uint8_t traffic_class;
  uint8_t hop_limit;
  uint8_t ip_flags; /* the three bits of IPv4 */
  uint8_t source_port[2];
  uint8_t destination_port[2];
  uint8_t ip_version;
  uint8_t tagged; /* 1: with a VLAN tag */
  uint8_t reserved[2];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_frame_fields, 64);

struct rocemu_create_flow {
  struct rocemu_header header;
  uint32_t kind;  /* enum ibv_flow_attr_type */
  uint32_t flags; /* enum rocemu_flow_flags */
  uint32_t tag;
  uint32_t counters; /* handle, or 0 */
  uint32_t hash_fields;
  uint16_t priority;
  uint16_t qp_count;
  struct rocemu_frame_fields value;
  struct rocemu_frame_fields mask;
  uint8_t hash_key[ROCEMU_HASH_KEY_BYTES];
  uint32_t qps[ROCEMU_FLOW_RECEIVERS_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_create_flow, 728);

/* ---- CREATE_COUNTERS ---- request: rocemu_handle_message with 0, and so the reply. ENOMEM.
 * DESTROY_COUNTERS: rocemu_handle_message both ways; EBUSY while a flow counts with them.
 * ---- READ_COUNTERS ---- request: rocemu_handle_message; reply: this. */
struct rocemu_counters_reply {
  struct rocemu_header header;
  uint64_t packets;
  uint64_t bytes;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_counters_reply, 40);

#ifdef __cplusplus
}
#endif
#endif
