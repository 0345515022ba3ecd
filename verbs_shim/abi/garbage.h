/* Contents of those fields of a failed completion that have no meaning: all but wr_id, status,
 * qp_num and vendor_err (ibv_poll_cq(3)). No NIC gives these values by chance, so that they are
 * known again when a program hands them back. */
#ifndef ROCEMU_VERBS_SHIM_ABI_GARBAGE_H
#define ROCEMU_VERBS_SHIM_ABI_GARBAGE_H

#define ROCEMU_GARBAGE_OPCODE 0x0bad0bad
#define ROCEMU_GARBAGE_BYTE_LEN 0xbad1e4e0u
#define ROCEMU_GARBAGE_IMM_DATA 0xbad1dadau
#define ROCEMU_GARBAGE_SRC_QP 0xbad05bc9u
#define ROCEMU_GARBAGE_WC_FLAGS 0xbadf1a65u
#define ROCEMU_GARBAGE_PKEY_INDEX 0xbad0u
#define ROCEMU_GARBAGE_SLID 0xbad1u
#define ROCEMU_GARBAGE_SL 0xbau
#define ROCEMU_GARBAGE_DLID_PATH_BITS 0xbdu

#endif
