#include "emulator/daemon/control/operation_table.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "emulator/daemon/control/handlers.h"

namespace rocemu::daemon {
namespace {

template <class Message>
Message copy_as(std::span<const std::byte> bytes) {
  Message message{};
  std::memcpy(&message, bytes.data(), std::min(bytes.size(), sizeof(message)));
  return message;
}

// Adapter says how a handler of each signature is called, and which message it takes.
template <auto kHandler>
struct Adapter;
template <void (*kHandler)(SessionCore&)>
struct Adapter<kHandler> {
  using Message = rocemu_header;
  static void call(SessionCore& session, ReceivedMessage&) { kHandler(session); }
};
template <void (*kHandler)(SessionCore&, ReceivedMessage&)>
struct Adapter<kHandler> {
  using Message = rocemu_header;
  static void call(SessionCore& session, ReceivedMessage& received) { kHandler(session, received); }
};
template <void (*kHandler)(SessionCore&, uint32_t)>
struct Adapter<kHandler> {
  using Message = rocemu_handle_message;
  static void call(SessionCore& session, ReceivedMessage& received) {
    kHandler(session, copy_as<Message>(received.bytes()).handle);
  }
};
template <class Body, void (*kHandler)(SessionCore&, const Body&)>
struct Adapter<kHandler> {
  using Message = Body;
  static void call(SessionCore& session, ReceivedMessage& received) {
    kHandler(session, copy_as<Message>(received.bytes()));
  }
};
template <class Body, void (*kHandler)(SessionCore&, const Body&, ReceivedMessage&)>
struct Adapter<kHandler> {
  using Message = Body;
  static void call(SessionCore& session, ReceivedMessage& received) {
    kHandler(session, copy_as<Message>(received.bytes()), received);
  }
};

struct Fds {
  uint8_t min;
  uint8_t max;
};
constexpr Fds kNoFd{0, 0};
constexpr Fds kOneFd{1, 1};
constexpr Fds kMaybeFd{0, 1};

template <auto kHandler, auto kReservedSet>
constexpr Operation row(ConnectionKind connection, uint32_t number, Fds fds) {
  using Message = typename Adapter<kHandler>::Message;
  return {number,
          connection,
          sizeof(Message),
          fds.min,
          fds.max,
          [](std::span<const std::byte> bytes) { return kReservedSet(copy_as<Message>(bytes)); },
          &Adapter<kHandler>::call};
}

// The checks of the table's rows. Those of the header are the same for all.
constexpr auto nothing = [](const auto&) { return false; };
template <auto kField>
constexpr auto field = [](const auto& message) { return message.*kField != 0; };
constexpr auto reserved = [](const auto& message) { return message.reserved != 0; };

constexpr auto reserved_in_ah = [](const rocemu_ah_attr& m) {
  return m.reserved[0] != 0 || m.reserved[1] != 0;
};
constexpr auto in_modify_qp = [](const rocemu_modify_qp& m) {
  return m.attr.reserved[0] != 0 || reserved_in_ah(m.attr.ah) || reserved_in_ah(m.attr.alt_ah);
};
constexpr auto in_create_ah = [](const rocemu_create_ah& m) {
  return m.reserved != 0 || reserved_in_ah(m.attr);
};
constexpr auto in_create_cq = [](const rocemu_create_cq& m) {
  return (m.flags & ~uint32_t{ROCEMU_CQ_IGNORES_OVERRUN}) != 0;
};
constexpr auto in_create_qp = [](const rocemu_create_qp& m) { return m.sq_sig_all > 1; };
constexpr auto in_create_srq = [](const rocemu_create_srq& m) {
  return m.srq_type > ROCEMU_SRQ_TM || m.reserved != 0;
};
constexpr auto in_change_tags = [](const rocemu_change_tags& m) {
  return m.num_sge > ROCEMU_TAG_SGE_MAX;
};
constexpr auto in_check_prefetch = [](const rocemu_check_prefetch& m) {
  return m.reserved != 0 || m.for_writing > 1;
};
constexpr auto in_create_flow = [](const rocemu_create_flow& m) {
  return (m.flags & ~uint32_t{ROCEMU_FLOW_DROPS | ROCEMU_FLOW_HAS_TAG}) != 0 ||
         m.qp_count > ROCEMU_FLOW_RECEIVERS_MAX;
};
constexpr auto in_open_xrcd = [](const rocemu_open_xrcd& m) {
  return m.reserved != 0 || (m.flags & ~uint32_t{ROCEMU_XRCD_CREATE | ROCEMU_XRCD_EXCLUSIVE}) != 0;
};
// The text ends within the field, and nothing hides behind its end.
template <size_t kBytes>
bool is_no_text(const char (&field)[kBytes]) {
  const auto* const end = std::find(std::begin(field), std::end(field), '\0');
  return end == std::end(field) ||
         std::any_of(end, std::end(field), [](char c) { return c != '\0'; });
}
constexpr auto in_link_set = [](const rocemu_link_set& m) { return is_no_text(m.assignment); };
constexpr auto in_fault_add = [](const rocemu_fault_add& m) { return is_no_text(m.text); };
constexpr auto in_trace_start = [](const rocemu_trace_start& m) { return is_no_text(m.filter); };
constexpr auto in_ask_post = [](const rocemu_ask_post& m) { return m.receives > 1; };

template <auto kHandler, auto kReservedSet = nothing>
constexpr Operation control(uint32_t number) {
  return row<kHandler, kReservedSet>(ConnectionKind::control, number, kNoFd);
}
template <auto kHandler, auto kReservedSet = nothing>
constexpr Operation context(uint32_t number, Fds fds = kNoFd) {
  return row<kHandler, kReservedSet>(ConnectionKind::context, number, fds);
}
// An operation whose message names one object of the context and has no other content.
template <auto kHandler>
constexpr Operation about(uint32_t number) {
  return row<kHandler, reserved>(ConnectionKind::context, number, kNoFd);
}
template <auto kHandler>
constexpr Operation cm(uint32_t number, Fds fds = kNoFd) {
  return row<kHandler, nothing>(ConnectionKind::cm, number, fds);
}

using namespace handlers;
using device::Hca;

constexpr Operation kOperations[] = {
    row<hello, reserved>(ConnectionKind::fresh, ROCEMU_OP_HELLO, {0, 2}),

    control<status>(ROCEMU_OP_STATUS),
    control<metrics>(ROCEMU_OP_METRICS),
    control<shut_down>(ROCEMU_OP_SHUTDOWN),
    control<link_set, in_link_set>(ROCEMU_OP_LINK_SET),
    control<link_show>(ROCEMU_OP_LINK_SHOW),
    control<fault_add, in_fault_add>(ROCEMU_OP_FAULT_ADD),
    control<fault_clear, reserved>(ROCEMU_OP_FAULT_CLEAR),
    control<fault_list>(ROCEMU_OP_FAULT_LIST),
    row<trace_start, in_trace_start>(ConnectionKind::control, ROCEMU_OP_TRACE_START, kOneFd),
    control<trace_stop>(ROCEMU_OP_TRACE_STOP),
    control<show_device, reserved>(ROCEMU_OP_DESCRIBE_DEVICE),
    control<list_resources>(ROCEMU_OP_LIST_RESOURCES),
    control<named_counters>(ROCEMU_OP_NAMED_COUNTERS),

    context<query_device>(ROCEMU_OP_QUERY_DEVICE),
    context<query_device_ex>(ROCEMU_OP_QUERY_DEVICE_EX),
    context<query_port, reserved>(ROCEMU_OP_QUERY_PORT),
    about<alloc_pd>(ROCEMU_OP_ALLOC_PD),
    about<destroy<&Hca::dealloc_pd>>(ROCEMU_OP_DEALLOC_PD),

    context<reg_mr>(ROCEMU_OP_REG_MR),
    context<reg_file_mr>(ROCEMU_OP_REG_FILE_MR, kOneFd),
    about<alloc_null_mr>(ROCEMU_OP_ALLOC_NULL_MR),
    context<reg_dm_mr, reserved>(ROCEMU_OP_REG_DM_MR),
    context<rereg_mr>(ROCEMU_OP_REREG_MR),
    about<dereg_mr>(ROCEMU_OP_DEREG_MR),
    context<check_prefetch, in_check_prefetch>(ROCEMU_OP_CHECK_PREFETCH),
    context<alloc_mw>(ROCEMU_OP_ALLOC_MW),
    about<destroy<&Hca::dealloc_mw>>(ROCEMU_OP_DEALLOC_MW),
    context<alloc_dm, reserved>(ROCEMU_OP_ALLOC_DM),
    about<destroy<&Hca::free_dm>>(ROCEMU_OP_FREE_DM),

    context<create_channel>(ROCEMU_OP_CREATE_CHANNEL, kOneFd),
    about<destroy<&Hca::destroy_channel>>(ROCEMU_OP_DESTROY_CHANNEL),
    context<create_cq, in_create_cq>(ROCEMU_OP_CREATE_CQ, kMaybeFd),
    context<resize_cq>(ROCEMU_OP_RESIZE_CQ),
    context<moderate_cq>(ROCEMU_OP_MODERATE_CQ),
    about<destroy_counting_events<&Hca::destroy_cq>>(ROCEMU_OP_DESTROY_CQ),

    context<create_qp, in_create_qp>(ROCEMU_OP_CREATE_QP),
    context<modify_qp, in_modify_qp>(ROCEMU_OP_MODIFY_QP),
    context<limit_qp_rate, reserved>(ROCEMU_OP_LIMIT_QP_RATE),
    about<query_qp>(ROCEMU_OP_QUERY_QP),
    about<destroy_qp>(ROCEMU_OP_DESTROY_QP),

    context<create_ah, in_create_ah>(ROCEMU_OP_CREATE_AH),
    about<destroy<&Hca::destroy_ah>>(ROCEMU_OP_DESTROY_AH),
    context<create_srq, in_create_srq>(ROCEMU_OP_CREATE_SRQ),
    context<modify_srq>(ROCEMU_OP_MODIFY_SRQ),
    context<change_tags, in_change_tags>(ROCEMU_OP_CHANGE_TAGS),
    context<resize_srq, reserved>(ROCEMU_OP_RESIZE_SRQ),
    context<query_srq, field<&rocemu_srq_limit::limit>>(ROCEMU_OP_QUERY_SRQ),
    about<destroy_counting_events<&Hca::destroy_srq>>(ROCEMU_OP_DESTROY_SRQ),
    context<open_xrcd, in_open_xrcd>(ROCEMU_OP_OPEN_XRCD, kMaybeFd),
    about<destroy<&Hca::close_xrcd>>(ROCEMU_OP_CLOSE_XRCD),
    context<open_qp>(ROCEMU_OP_OPEN_QP),
    context<attach_mcast, reserved>(ROCEMU_OP_ATTACH_MCAST),
    context<detach_mcast, reserved>(ROCEMU_OP_DETACH_MCAST),

    context<create_flow, in_create_flow>(ROCEMU_OP_CREATE_FLOW),
    about<destroy<&Hca::destroy_flow>>(ROCEMU_OP_DESTROY_FLOW),
    about<create_counters>(ROCEMU_OP_CREATE_COUNTERS),
    about<destroy<&Hca::destroy_counters>>(ROCEMU_OP_DESTROY_COUNTERS),
    about<read_counters>(ROCEMU_OP_READ_COUNTERS),

    context<ask_post, in_ask_post>(ROCEMU_OP_ASK_POST),

    about<context_ticket>(ROCEMU_OP_CONTEXT_TICKET),
    context<join_context>(ROCEMU_OP_JOIN_CONTEXT),
    about<import_pd>(ROCEMU_OP_IMPORT_PD),
    context<import_mr>(ROCEMU_OP_IMPORT_MR),
    about<import_dm>(ROCEMU_OP_IMPORT_DM),

    about<inspect_qp>(ROCEMU_OP_INSPECT_QP),
    context<take_findings>(ROCEMU_OP_TAKE_FINDINGS),
    context<was_written>(ROCEMU_OP_WAS_WRITTEN),

    cm<cm_open_channel>(ROCEMU_OP_CM_OPEN_CHANNEL, kOneFd),
    cm<cm_close_channel>(ROCEMU_OP_CM_CLOSE_CHANNEL),
    cm<cm_command>(ROCEMU_OP_CM_COMMAND),
    cm<cm_next_event>(ROCEMU_OP_CM_NEXT_EVENT),
};

constexpr uint32_t kNumbers = ROCEMU_OP_NAMED_COUNTERS + 1;

// The operation's place in the table plus 1, by its number; 0: there is none.
constexpr auto kPlaces = [] {
  std::array<uint8_t, kNumbers> places{};
  for (size_t i = 0; i < std::size(kOperations); ++i)
    places[kOperations[i].number] = static_cast<uint8_t>(i + 1);
  return places;
}();

const Operation* find_operation(uint32_t number, ConnectionKind connection) {
  if (number >= kNumbers || kPlaces[number] == 0) return nullptr;
  const Operation& found = kOperations[kPlaces[number] - 1];
  const bool of_cm = found.connection == ConnectionKind::cm;
  return of_cm == (connection == ConnectionKind::cm) ? &found : nullptr;
}

// Another ABI may have a HELLO of another length; magic and version stand where they are for ever.
bool is_hello_of_another_abi(const Operation& operation, std::span<const std::byte> bytes) {
  if (operation.number != ROCEMU_OP_HELLO || bytes.size() < offsetof(rocemu_hello, device_index))
    return false;
  const auto message = copy_as<rocemu_hello>(bytes);
  return message.magic != ROCEMU_ABI_MAGIC || message.abi_version != ROCEMU_ABI_VERSION;
}

}  // namespace

std::span<const Operation> operations() { return kOperations; }

const char* to_string(Malformed why) {
  switch (why) {
    case Malformed::too_short:
      return "message too short for a header";
    case Malformed::wrong_length:
      return "message of the wrong length";
    case Malformed::unknown_op:
      return "unknown operation";
  }
  return "malformed message";
}

tl::expected<Request, Malformed> check_request(std::span<const std::byte> bytes,
                                               ConnectionKind connection) {
  if (bytes.size() < sizeof(rocemu_header)) return tl::unexpected(Malformed::too_short);
  const auto header = copy_as<rocemu_header>(bytes);
  if (header.length != bytes.size()) return tl::unexpected(Malformed::wrong_length);
  const Operation* const operation = find_operation(header.op, connection);
  if (operation == nullptr) return tl::unexpected(Malformed::unknown_op);
  if (is_hello_of_another_abi(*operation, bytes)) return Request{header, *operation, EPROTO};
  if (bytes.size() != operation->message_bytes) return tl::unexpected(Malformed::wrong_length);
  const bool refused = header.status != 0 || header.reserved != 0 || operation->reserved_set(bytes);
  return Request{header, *operation, refused ? EINVAL : 0};
}

}  // namespace rocemu::daemon
