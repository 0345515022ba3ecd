// The handlers of the operations, grouped by the objects that they are about. A handler has a
// message of the right form, from the right kind of connection, with as many descriptors as its row
// in operation_table.cc says, and answers it by exactly one reply, now or later. The content is
// hostile: what the device does not check, the handler does.
#pragma once

#include "emulator/daemon/control/session_core.h"
#include "verbs_shim/abi/cm.h"
#include "verbs_shim/abi/control.h"
#include "verbs_shim/abi/fault.h"
#include "verbs_shim/abi/import.h"
#include "verbs_shim/abi/inspect.h"
#include "verbs_shim/abi/memory.h"
#include "verbs_shim/abi/resources.h"
#include "verbs_shim/abi/services.h"
#include "verbs_shim/abi/trace.h"

namespace rocemu::daemon::handlers {

// Destroys an object of any kind whose call of the device answers 0 or an errno.
template <int (device::Hca::*kCall)(device::ContextId, device::Handle)>
void destroy(SessionCore& session, uint32_t handle) {
  session.on_context(
      [handle](EngineContext& context) { return (context.hca().*kCall)(context.id(), handle); },
      [&session, handle] { session.answer_handle(handle); });
}

inline void answer_events(SessionCore& session, const device::EventCounts& counts) {
  rocemu_destroy_events_reply body{};
  body.comp_events = counts.completion;
  body.async_events = counts.async;
  session.answer(body);
}

// Destroys an object about which there may have been events.
template <device::Result<device::EventCounts> (device::Hca::*kCall)(device::ContextId,
                                                                    device::Handle)>
void destroy_counting_events(SessionCore& session, uint32_t handle) {
  session.on_context(
      [handle](EngineContext& context) { return (context.hca().*kCall)(context.id(), handle); },
      [&session](const device::EventCounts& counts) { answer_events(session, counts); });
}

// handlers_hello.cc: what a connection becomes.
void hello(SessionCore& session, const rocemu_hello& message, ReceivedMessage& received);
void answer_hello(SessionCore& session, int status, std::span<const int> fds = {});

// handlers_administration.cc: control connections, and those for connection management.
void status(SessionCore& session);
void metrics(SessionCore& session);
void shut_down(SessionCore& session);
void link_set(SessionCore& session, const rocemu_link_set& message);
void link_show(SessionCore& session);
void fault_add(SessionCore& session, const rocemu_fault_add& message);
void fault_clear(SessionCore& session, uint32_t id);
void fault_list(SessionCore& session);
void trace_start(SessionCore& session, const rocemu_trace_start& message,
                 ReceivedMessage& received);
void trace_stop(SessionCore& session);
void cm_open_channel(SessionCore& session, ReceivedMessage& received);
void cm_close_channel(SessionCore& session, const rocemu_cm_channel& message);
void cm_command(SessionCore& session, const rocemu_cm_command& message);
void cm_next_event(SessionCore& session, const rocemu_cm_channel& message);

// handlers_resources.cc: what there is, for those who look at the NIC from outside.
void show_device(SessionCore& session, uint32_t device_index);
void list_resources(SessionCore& session, const rocemu_list_resources& message);
void named_counters(SessionCore& session, const rocemu_named_counters_of& message);

// handlers_queues.cc: the device itself, channels, CQs and QPs.
void query_device(SessionCore& session);
void query_device_ex(SessionCore& session);
void query_port(SessionCore& session, const rocemu_query_port& message);
void create_channel(SessionCore& session, ReceivedMessage& received);
void create_cq(SessionCore& session, const rocemu_create_cq& message, ReceivedMessage& received);
void resize_cq(SessionCore& session, const rocemu_resize_cq& message);
void moderate_cq(SessionCore& session, const rocemu_moderate_cq& message);
void create_qp(SessionCore& session, const rocemu_create_qp& message);
void modify_qp(SessionCore& session, const rocemu_modify_qp& message);
void limit_qp_rate(SessionCore& session, const rocemu_limit_qp_rate& message);
void query_qp(SessionCore& session, uint32_t qp);
void destroy_qp(SessionCore& session, uint32_t qp);
void ask_post(SessionCore& session, const rocemu_ask_post& message);

// handlers_memory.cc: PDs, regions, windows and device memory.
void alloc_pd(SessionCore& session, uint32_t handle);
void reg_mr(SessionCore& session, const rocemu_reg_mr& message);
void reg_file_mr(SessionCore& session, const rocemu_reg_file_mr& message,
                 ReceivedMessage& received);
void alloc_null_mr(SessionCore& session, uint32_t pd);
void reg_dm_mr(SessionCore& session, const rocemu_reg_dm_mr& message);
void rereg_mr(SessionCore& session, const rocemu_rereg_mr& message);
void dereg_mr(SessionCore& session, uint32_t mr);
void check_prefetch(SessionCore& session, const rocemu_check_prefetch& message);
void alloc_mw(SessionCore& session, const rocemu_alloc_mw& message);
void alloc_dm(SessionCore& session, const rocemu_alloc_dm& message);

// handlers_services.cc: address handles, SRQs, XRC domains and multicast groups.
void create_ah(SessionCore& session, const rocemu_create_ah& message);
void create_srq(SessionCore& session, const rocemu_create_srq& message);
void modify_srq(SessionCore& session, const rocemu_srq_limit& message);
void change_tags(SessionCore& session, const rocemu_change_tags& message);
void resize_srq(SessionCore& session, const rocemu_resize_srq& message);
void query_srq(SessionCore& session, const rocemu_srq_limit& message);
void open_xrcd(SessionCore& session, const rocemu_open_xrcd& message, ReceivedMessage& received);
void open_qp(SessionCore& session, const rocemu_open_qp& message);
void attach_mcast(SessionCore& session, const rocemu_mcast& message);
void detach_mcast(SessionCore& session, const rocemu_mcast& message);

// handlers_flows.cc: flows and counters.
void create_flow(SessionCore& session, const rocemu_create_flow& message);
void create_counters(SessionCore& session, uint32_t handle);
void read_counters(SessionCore& session, uint32_t counters);

// handlers_import.cc: contexts that others join, and what they import.
void context_ticket(SessionCore& session, uint32_t handle);
void join_context(SessionCore& session, const rocemu_join_context& message);
void import_pd(SessionCore& session, uint32_t pd);
void import_mr(SessionCore& session, const rocemu_import_mr& message);
void import_dm(SessionCore& session, uint32_t dm);

// handlers_inspection.cc: what the NIC tells a program's checker.
void inspect_qp(SessionCore& session, uint32_t qp);
void take_findings(SessionCore& session);
void was_written(SessionCore& session, const rocemu_was_written& message);

}  // namespace rocemu::daemon::handlers
