// Compares the numbers of base/verbs/numbers.h with those of rdma-core's headers, which lack one in
// Debian 12: IB_UVERBS_DEVICE_ATOMIC_WRITE and all of FLUSH.
#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <catch2/catch.hpp>

#include "base/verbs/numbers.h"

using namespace rocemu::verbs;

#define SAME(own, theirs) \
  CHECK(static_cast<unsigned long long>(own) == static_cast<unsigned long long>(theirs))

TEST_CASE("numbers of QPs are those of verbs") {
  SAME(qp_type::kRc, IBV_QPT_RC);
  SAME(qp_type::kUc, IBV_QPT_UC);
  SAME(qp_type::kUd, IBV_QPT_UD);
  SAME(qp_type::kRawPacket, IBV_QPT_RAW_PACKET);
  SAME(qp_type::kXrcSend, IBV_QPT_XRC_SEND);
  SAME(qp_type::kXrcReceive, IBV_QPT_XRC_RECV);
  SAME(qp_type::kDriver, IBV_QPT_DRIVER);

  SAME(QpState::reset, IBV_QPS_RESET);
  SAME(QpState::init, IBV_QPS_INIT);
  SAME(QpState::ready_to_receive, IBV_QPS_RTR);
  SAME(QpState::ready_to_send, IBV_QPS_RTS);
  SAME(QpState::send_queue_drain, IBV_QPS_SQD);
  SAME(QpState::send_queue_error, IBV_QPS_SQE);
  SAME(QpState::error, IBV_QPS_ERR);

  SAME(MigrationState::migrated, IBV_MIG_MIGRATED);
  SAME(MigrationState::rearm, IBV_MIG_REARM);
  SAME(MigrationState::armed, IBV_MIG_ARMED);

  SAME(qp_attribute::kState, IBV_QP_STATE);
  SAME(qp_attribute::kCurState, IBV_QP_CUR_STATE);
  SAME(qp_attribute::kEnSqdAsyncNotify, IBV_QP_EN_SQD_ASYNC_NOTIFY);
  SAME(qp_attribute::kAccessFlags, IBV_QP_ACCESS_FLAGS);
  SAME(qp_attribute::kPkeyIndex, IBV_QP_PKEY_INDEX);
  SAME(qp_attribute::kPort, IBV_QP_PORT);
  SAME(qp_attribute::kQkey, IBV_QP_QKEY);
  SAME(qp_attribute::kAv, IBV_QP_AV);
  SAME(qp_attribute::kPathMtu, IBV_QP_PATH_MTU);
  SAME(qp_attribute::kTimeout, IBV_QP_TIMEOUT);
  SAME(qp_attribute::kRetryCount, IBV_QP_RETRY_CNT);
  SAME(qp_attribute::kRnrRetry, IBV_QP_RNR_RETRY);
  SAME(qp_attribute::kRqPsn, IBV_QP_RQ_PSN);
  SAME(qp_attribute::kMaxQpRdAtomic, IBV_QP_MAX_QP_RD_ATOMIC);
  SAME(qp_attribute::kAltPath, IBV_QP_ALT_PATH);
  SAME(qp_attribute::kMinRnrTimer, IBV_QP_MIN_RNR_TIMER);
  SAME(qp_attribute::kSqPsn, IBV_QP_SQ_PSN);
  SAME(qp_attribute::kMaxDestRdAtomic, IBV_QP_MAX_DEST_RD_ATOMIC);
  SAME(qp_attribute::kPathMigState, IBV_QP_PATH_MIG_STATE);
  SAME(qp_attribute::kCap, IBV_QP_CAP);
  SAME(qp_attribute::kDestQpn, IBV_QP_DEST_QPN);
  SAME(qp_attribute::kRateLimit, IBV_QP_RATE_LIMIT);
}

TEST_CASE("numbers of memory are those of verbs") {
  SAME(access::kLocalWrite, IBV_ACCESS_LOCAL_WRITE);
  SAME(access::kRemoteWrite, IBV_ACCESS_REMOTE_WRITE);
  SAME(access::kRemoteRead, IBV_ACCESS_REMOTE_READ);
  SAME(access::kRemoteAtomic, IBV_ACCESS_REMOTE_ATOMIC);
  SAME(access::kWindowBind, IBV_ACCESS_MW_BIND);
  SAME(access::kZeroBased, IBV_ACCESS_ZERO_BASED);
  SAME(access::kOnDemand, IBV_ACCESS_ON_DEMAND);
  SAME(access::kHugePages, IBV_ACCESS_HUGETLB);
  SAME(access::kOptionalRange, IBV_ACCESS_OPTIONAL_RANGE);

  SAME(kChangeTranslation, IBV_REREG_MR_CHANGE_TRANSLATION);
  SAME(kChangePd, IBV_REREG_MR_CHANGE_PD);
  SAME(kChangeAccess, IBV_REREG_MR_CHANGE_ACCESS);

  SAME(WindowType::type_1, IBV_MW_TYPE_1);
  SAME(WindowType::type_2, IBV_MW_TYPE_2);

  SAME(odp::kSupport, IBV_ODP_SUPPORT);
  SAME(odp::kSupportImplicit, IBV_ODP_SUPPORT_IMPLICIT);
  SAME(odp::kSend, IBV_ODP_SUPPORT_SEND);
  SAME(odp::kReceive, IBV_ODP_SUPPORT_RECV);
  SAME(odp::kWrite, IBV_ODP_SUPPORT_WRITE);
  SAME(odp::kRead, IBV_ODP_SUPPORT_READ);
  SAME(odp::kAtomic, IBV_ODP_SUPPORT_ATOMIC);
  SAME(odp::kSrqReceive, IBV_ODP_SUPPORT_SRQ_RECV);
}

TEST_CASE("numbers of work and of completions are those of verbs") {
  SAME(wr_opcode::kRdmaWrite, IBV_WR_RDMA_WRITE);
  SAME(wr_opcode::kRdmaWriteWithImm, IBV_WR_RDMA_WRITE_WITH_IMM);
  SAME(wr_opcode::kSend, IBV_WR_SEND);
  SAME(wr_opcode::kSendWithImm, IBV_WR_SEND_WITH_IMM);
  SAME(wr_opcode::kRdmaRead, IBV_WR_RDMA_READ);
  SAME(wr_opcode::kAtomicCmpAndSwp, IBV_WR_ATOMIC_CMP_AND_SWP);
  SAME(wr_opcode::kAtomicFetchAndAdd, IBV_WR_ATOMIC_FETCH_AND_ADD);
  SAME(wr_opcode::kLocalInv, IBV_WR_LOCAL_INV);
  SAME(wr_opcode::kBindMw, IBV_WR_BIND_MW);
  SAME(wr_opcode::kSendWithInv, IBV_WR_SEND_WITH_INV);
  SAME(wr_opcode::kTso, IBV_WR_TSO);
  SAME(wr_opcode::kAtomicWrite, IBV_WR_ATOMIC_WRITE);

  SAME(WcStatus::success, IBV_WC_SUCCESS);
  SAME(WcStatus::local_length_error, IBV_WC_LOC_LEN_ERR);
  SAME(WcStatus::local_qp_operation_error, IBV_WC_LOC_QP_OP_ERR);
  SAME(WcStatus::local_protection_error, IBV_WC_LOC_PROT_ERR);
  SAME(WcStatus::flush_error, IBV_WC_WR_FLUSH_ERR);
  SAME(WcStatus::window_bind_error, IBV_WC_MW_BIND_ERR);
  SAME(WcStatus::bad_response_error, IBV_WC_BAD_RESP_ERR);
  SAME(WcStatus::local_access_error, IBV_WC_LOC_ACCESS_ERR);
  SAME(WcStatus::remote_invalid_request_error, IBV_WC_REM_INV_REQ_ERR);
  SAME(WcStatus::remote_access_error, IBV_WC_REM_ACCESS_ERR);
  SAME(WcStatus::remote_operation_error, IBV_WC_REM_OP_ERR);
  SAME(WcStatus::retry_exceeded_error, IBV_WC_RETRY_EXC_ERR);
  SAME(WcStatus::rnr_retry_exceeded_error, IBV_WC_RNR_RETRY_EXC_ERR);
  SAME(WcStatus::general_error, IBV_WC_GENERAL_ERR);

  SAME(WcOpcode::send, IBV_WC_SEND);
  SAME(WcOpcode::rdma_write, IBV_WC_RDMA_WRITE);
  SAME(WcOpcode::rdma_read, IBV_WC_RDMA_READ);
  SAME(WcOpcode::compare_swap, IBV_WC_COMP_SWAP);
  SAME(WcOpcode::fetch_add, IBV_WC_FETCH_ADD);
  SAME(WcOpcode::bind_window, IBV_WC_BIND_MW);
  SAME(WcOpcode::local_invalidate, IBV_WC_LOCAL_INV);
  SAME(WcOpcode::tso, IBV_WC_TSO);
  SAME(WcOpcode::atomic_write, IBV_WC_ATOMIC_WRITE);
  SAME(WcOpcode::receive, IBV_WC_RECV);
  SAME(WcOpcode::receive_rdma_with_imm, IBV_WC_RECV_RDMA_WITH_IMM);

  SAME(WcStatus::tm_error, IBV_WC_TM_ERR);
  SAME(WcStatus::tm_rendezvous_incomplete, IBV_WC_TM_RNDV_INCOMPLETE);
  SAME(WcOpcode::tm_add, IBV_WC_TM_ADD);
  SAME(WcOpcode::tm_delete, IBV_WC_TM_DEL);
  SAME(WcOpcode::tm_sync, IBV_WC_TM_SYNC);
  SAME(WcOpcode::tm_receive, IBV_WC_TM_RECV);
  SAME(WcOpcode::tm_no_tag, IBV_WC_TM_NO_TAG);
  SAME(wc_flag::kTmSyncRequest, IBV_WC_TM_SYNC_REQ);
  SAME(wc_flag::kTmMatch, IBV_WC_TM_MATCH);
  SAME(wc_flag::kTmDataValid, IBV_WC_TM_DATA_VALID);
  SAME(TagOperation::no_tag, IBV_TMH_NO_TAG);
  SAME(TagOperation::rendezvous, IBV_TMH_RNDV);
  SAME(TagOperation::finish, IBV_TMH_FIN);
  SAME(TagOperation::eager, IBV_TMH_EAGER);
  SAME(TagListOperation::add, IBV_WR_TAG_ADD);
  SAME(TagListOperation::remove, IBV_WR_TAG_DEL);
  SAME(TagListOperation::sync, IBV_WR_TAG_SYNC);
  SAME(tag_list_flag::kSignaled, IBV_OPS_SIGNALED);
  SAME(tag_list_flag::kSync, IBV_OPS_TM_SYNC);
  SAME(wc_flag::kGrh, IBV_WC_GRH);
  SAME(wc_flag::kWithImm, IBV_WC_WITH_IMM);
  SAME(wc_flag::kWithInv, IBV_WC_WITH_INV);
}

TEST_CASE("numbers of devices, ports and their events are those of verbs") {
  SAME(async_event::kCqError, IBV_EVENT_CQ_ERR);
  SAME(async_event::kQpFatal, IBV_EVENT_QP_FATAL);
  SAME(async_event::kQpRequestError, IBV_EVENT_QP_REQ_ERR);
  SAME(async_event::kQpAccessError, IBV_EVENT_QP_ACCESS_ERR);
  SAME(async_event::kCommunicationEstablished, IBV_EVENT_COMM_EST);
  SAME(async_event::kSendQueueDrained, IBV_EVENT_SQ_DRAINED);
  SAME(async_event::kPathMigrated, IBV_EVENT_PATH_MIG);
  SAME(async_event::kPathMigrationError, IBV_EVENT_PATH_MIG_ERR);
  SAME(async_event::kDeviceFatal, IBV_EVENT_DEVICE_FATAL);
  SAME(async_event::kPortActive, IBV_EVENT_PORT_ACTIVE);
  SAME(async_event::kPortError, IBV_EVENT_PORT_ERR);
  SAME(async_event::kSrqLimitReached, IBV_EVENT_SRQ_LIMIT_REACHED);
  SAME(async_event::kQpLastWqeReached, IBV_EVENT_QP_LAST_WQE_REACHED);
  SAME(async_event::kGidChange, IBV_EVENT_GID_CHANGE);

  SAME(device_cap::kAutomaticPathMigration, IBV_DEVICE_AUTO_PATH_MIG);
  SAME(device_cap::kCurrQpStateMod, IBV_DEVICE_CURR_QP_STATE_MOD);
  SAME(device_cap::kSysImageGuid, IBV_DEVICE_SYS_IMAGE_GUID);
  SAME(device_cap::kRcRnrNakGen, IBV_DEVICE_RC_RNR_NAK_GEN);
  SAME(device_cap::kSrqResize, IBV_DEVICE_SRQ_RESIZE);
  SAME(device_cap::kMemoryWindow, IBV_DEVICE_MEM_WINDOW);
  SAME(device_cap::kXrc, IBV_DEVICE_XRC);
  SAME(device_cap::kMemoryManagement, IBV_DEVICE_MEM_MGT_EXTENSIONS);
  SAME(device_cap::kMemoryWindowType2b, IBV_DEVICE_MEM_WINDOW_TYPE_2B);
  SAME(device_cap::kManagedFlowSteering, IBV_DEVICE_MANAGED_FLOW_STEERING);
  SAME(kAtomicHca, IBV_ATOMIC_HCA);

  SAME(kPortDown, IBV_PORT_DOWN);
  SAME(kPortActive, IBV_PORT_ACTIVE);
  SAME(kPortCmSup, IBV_PORT_CM_SUP);
  SAME(kPortIpBasedGids, IBV_PORT_IP_BASED_GIDS);
  SAME(kMtu4096, IBV_MTU_4096);
  SAME(mtu_bytes(IBV_MTU_256), 256);
  SAME(mtu_bytes(kMtu4096), 4096);
}

TEST_CASE("numbers of connection management are those of librdmacm") {
  SAME(port_space::kIpoib, RDMA_PS_IPOIB);
  SAME(port_space::kTcp, RDMA_PS_TCP);
  SAME(port_space::kUdp, RDMA_PS_UDP);
  SAME(port_space::kIb, RDMA_PS_IB);
  SAME(kRdmaUdpQkey, RDMA_UDP_QKEY);

  SAME(CmEventType::address_resolved, RDMA_CM_EVENT_ADDR_RESOLVED);
  SAME(CmEventType::address_error, RDMA_CM_EVENT_ADDR_ERROR);
  SAME(CmEventType::route_resolved, RDMA_CM_EVENT_ROUTE_RESOLVED);
  SAME(CmEventType::route_error, RDMA_CM_EVENT_ROUTE_ERROR);
  SAME(CmEventType::connect_request, RDMA_CM_EVENT_CONNECT_REQUEST);
  SAME(CmEventType::connect_response, RDMA_CM_EVENT_CONNECT_RESPONSE);
  SAME(CmEventType::connect_error, RDMA_CM_EVENT_CONNECT_ERROR);
  SAME(CmEventType::unreachable, RDMA_CM_EVENT_UNREACHABLE);
  SAME(CmEventType::rejected, RDMA_CM_EVENT_REJECTED);
  SAME(CmEventType::established, RDMA_CM_EVENT_ESTABLISHED);
  SAME(CmEventType::disconnected, RDMA_CM_EVENT_DISCONNECTED);
  SAME(CmEventType::device_removal, RDMA_CM_EVENT_DEVICE_REMOVAL);
  SAME(CmEventType::multicast_join, RDMA_CM_EVENT_MULTICAST_JOIN);
  SAME(CmEventType::multicast_error, RDMA_CM_EVENT_MULTICAST_ERROR);
  SAME(CmEventType::address_change, RDMA_CM_EVENT_ADDR_CHANGE);
  SAME(CmEventType::timewait_exit, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}
