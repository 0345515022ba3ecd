#include "emulator/daemon/control/operation_table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "emulator/daemon/control/conversions.h"
#include "verbs_shim/abi/cm.h"
#include "verbs_shim/abi/fault.h"

namespace rocemu::daemon {
namespace {

using Bytes = std::vector<std::byte>;

Bytes message(uint32_t op, size_t size_bytes) {
  Bytes bytes(size_bytes);
  rocemu_header header{};
  header.op = op;
  header.length = static_cast<uint32_t>(size_bytes);
  header.cookie = 99;
  std::memcpy(bytes.data(), &header, std::min(sizeof(header), size_bytes));
  return bytes;
}

template <class Message>
Bytes bytes_of(Message message, uint32_t op) {
  message.header.op = op;
  message.header.length = sizeof(message);
  Bytes bytes(sizeof(message));
  std::memcpy(bytes.data(), &message, sizeof(message));
  return bytes;
}

tl::expected<Request, Malformed> check_in_context(std::span<const std::byte> bytes) {
  return check_request(bytes, ConnectionKind::context);
}

constexpr struct {
  uint32_t op;
  size_t size_bytes;
} kOps[] = {
    {ROCEMU_OP_QUERY_DEVICE, sizeof(rocemu_header)},
    {ROCEMU_OP_QUERY_PORT, sizeof(rocemu_query_port)},
    {ROCEMU_OP_ALLOC_PD, sizeof(rocemu_handle_message)},
    {ROCEMU_OP_DEALLOC_PD, sizeof(rocemu_handle_message)},
    {ROCEMU_OP_REG_MR, sizeof(rocemu_reg_mr)},
    {ROCEMU_OP_DEREG_MR, sizeof(rocemu_handle_message)},
    {ROCEMU_OP_CREATE_CHANNEL, sizeof(rocemu_create_channel)},
    {ROCEMU_OP_DESTROY_CHANNEL, sizeof(rocemu_handle_message)},
    {ROCEMU_OP_CREATE_CQ, sizeof(rocemu_create_cq)},
    {ROCEMU_OP_DESTROY_CQ, sizeof(rocemu_handle_message)},
    {ROCEMU_OP_CREATE_QP, sizeof(rocemu_create_qp)},
    {ROCEMU_OP_MODIFY_QP, sizeof(rocemu_modify_qp)},
    {ROCEMU_OP_QUERY_QP, sizeof(rocemu_handle_message)},
    {ROCEMU_OP_DESTROY_QP, sizeof(rocemu_handle_message)},
    {ROCEMU_OP_STATUS, sizeof(rocemu_header)},
    {ROCEMU_OP_SHUTDOWN, sizeof(rocemu_header)},
    {ROCEMU_OP_LINK_SET, sizeof(rocemu_link_set)},
    {ROCEMU_OP_LINK_SHOW, sizeof(rocemu_header)},
    {ROCEMU_OP_METRICS, sizeof(rocemu_header)},
    {ROCEMU_OP_FAULT_ADD, sizeof(rocemu_fault_add)},
    {ROCEMU_OP_FAULT_CLEAR, sizeof(rocemu_handle_message)},
    {ROCEMU_OP_FAULT_LIST, sizeof(rocemu_header)},
    {ROCEMU_OP_ASK_POST, sizeof(rocemu_ask_post)},
};

rocemu_hello hello() {
  rocemu_hello message{};
  message.magic = ROCEMU_ABI_MAGIC;
  message.abi_version = ROCEMU_ABI_VERSION;
  return message;
}

}  // namespace

TEST_CASE("each request has one length") {
  for (const auto& [op, size_bytes] : kOps) {
    CAPTURE(op);
    const auto request = check_in_context(message(op, size_bytes));
    REQUIRE(request);
    CHECK(request->error == 0);
    CHECK(request->header.op == op);
    CHECK(request->header.cookie == 99);
    CHECK(check_in_context(message(op, size_bytes + 8)).error() == Malformed::wrong_length);
    if (size_bytes > sizeof(rocemu_header))
      CHECK(check_in_context(message(op, size_bytes - 8)).error() == Malformed::wrong_length);
  }
}

TEST_CASE("each operation of the table has one number, and takes no message of another length") {
  std::set<uint32_t> numbers;
  for (const Operation& operation : operations()) {
    CAPTURE(operation.number);
    CHECK(numbers.insert(operation.number).second);
    Bytes bytes = message(operation.number, operation.message_bytes + 8);
    if (operation.number == ROCEMU_OP_HELLO) {
      const Bytes valid = bytes_of(hello(), ROCEMU_OP_HELLO);
      std::copy(valid.begin() + sizeof(rocemu_header), valid.end(),
                bytes.begin() + sizeof(rocemu_header));
    }
    for (const size_t size_bytes :
         {size_t{operation.message_bytes} - 4, size_t{operation.message_bytes} + 8,
          size_t{operation.message_bytes}}) {
      bytes.resize(size_bytes);
      const auto length = static_cast<uint32_t>(size_bytes);
      if (size_bytes < sizeof(rocemu_header)) continue;
      std::memcpy(bytes.data() + offsetof(rocemu_header, length), &length, sizeof(length));
      const auto request = check_request(bytes, operation.connection);
      if (size_bytes == operation.message_bytes) {
        REQUIRE(request);
        CHECK(&request->operation == &operation);
      } else {
        CHECK(request.error() == Malformed::wrong_length);
      }
    }
  }
}

TEST_CASE("each operation refuses what is reserved in its header") {
  for (const Operation& operation : operations()) {
    CAPTURE(operation.number);
    const bool is_hello = operation.number == ROCEMU_OP_HELLO;
    const Bytes plain = is_hello ? bytes_of(hello(), ROCEMU_OP_HELLO)
                                 : message(operation.number, operation.message_bytes);
    CHECK(check_request(plain, operation.connection)->error == 0);
    for (const size_t at : {offsetof(rocemu_header, status), offsetof(rocemu_header, reserved)}) {
      Bytes set = plain;
      set[at] = std::byte{1};
      CHECK(check_request(set, operation.connection)->error == EINVAL);
    }
  }
}

TEST_CASE("each operation refuses what is reserved in its message") {
  struct Reserved {
    uint32_t op;
    size_t offset;
    uint8_t value = 1;
  };
  const Reserved fields[] = {
      {ROCEMU_OP_HELLO, offsetof(rocemu_hello, reserved)},
      {ROCEMU_OP_QUERY_PORT, offsetof(rocemu_query_port, reserved)},
      {ROCEMU_OP_ALLOC_DM, offsetof(rocemu_alloc_dm, reserved)},
      {ROCEMU_OP_REG_DM_MR, offsetof(rocemu_reg_dm_mr, reserved)},
      {ROCEMU_OP_CHECK_PREFETCH, offsetof(rocemu_check_prefetch, reserved)},
      {ROCEMU_OP_CHECK_PREFETCH, offsetof(rocemu_check_prefetch, for_writing), 2},
      {ROCEMU_OP_RESIZE_SRQ, offsetof(rocemu_resize_srq, reserved)},
      {ROCEMU_OP_CREATE_CQ, offsetof(rocemu_create_cq, flags), 2},
      {ROCEMU_OP_LIMIT_QP_RATE, offsetof(rocemu_limit_qp_rate, reserved)},
      {ROCEMU_OP_CREATE_QP, offsetof(rocemu_create_qp, sq_sig_all), 2},
      {ROCEMU_OP_MODIFY_QP, offsetof(rocemu_modify_qp, attr.reserved)},
      {ROCEMU_OP_MODIFY_QP, offsetof(rocemu_modify_qp, attr.ah.reserved)},
      {ROCEMU_OP_MODIFY_QP, offsetof(rocemu_modify_qp, attr.alt_ah.reserved) + 1},
      {ROCEMU_OP_CREATE_AH, offsetof(rocemu_create_ah, reserved)},
      {ROCEMU_OP_CREATE_AH, offsetof(rocemu_create_ah, attr.reserved) + 1},
      {ROCEMU_OP_CREATE_SRQ, offsetof(rocemu_create_srq, srq_type), 3},
      {ROCEMU_OP_CREATE_SRQ, offsetof(rocemu_create_srq, reserved)},
      {ROCEMU_OP_CHANGE_TAGS, offsetof(rocemu_change_tags, num_sge), 17},
      {ROCEMU_OP_QUERY_SRQ, offsetof(rocemu_srq_limit, limit)},
      {ROCEMU_OP_OPEN_XRCD, offsetof(rocemu_open_xrcd, reserved)},
      {ROCEMU_OP_OPEN_XRCD, offsetof(rocemu_open_xrcd, flags), 4},
      {ROCEMU_OP_ATTACH_MCAST, offsetof(rocemu_mcast, reserved)},
      {ROCEMU_OP_DETACH_MCAST, offsetof(rocemu_mcast, reserved)},
  };
  const auto refuses = [](const Operation& operation, size_t offset, uint8_t value) {
    Bytes bytes = operation.number == ROCEMU_OP_HELLO
                      ? bytes_of(hello(), ROCEMU_OP_HELLO)
                      : message(operation.number, operation.message_bytes);
    bytes[offset] = std::byte{value};
    return check_request(bytes, operation.connection)->error == EINVAL;
  };
  for (const Operation& operation : operations()) {
    CAPTURE(operation.number);
    for (const Reserved& field : fields)
      if (field.op == operation.number) CHECK(refuses(operation, field.offset, field.value));
  }
  const uint32_t about_handles[] = {
      ROCEMU_OP_ALLOC_PD,   ROCEMU_OP_DEALLOC_PD,      ROCEMU_OP_DEREG_MR,
      ROCEMU_OP_DEALLOC_MW, ROCEMU_OP_DESTROY_CHANNEL, ROCEMU_OP_DESTROY_CQ,
      ROCEMU_OP_QUERY_QP,   ROCEMU_OP_DESTROY_QP,      ROCEMU_OP_ALLOC_NULL_MR,
      ROCEMU_OP_FREE_DM,    ROCEMU_OP_CONTEXT_TICKET,  ROCEMU_OP_IMPORT_PD,
      ROCEMU_OP_IMPORT_DM,  ROCEMU_OP_DESTROY_AH,      ROCEMU_OP_DESTROY_SRQ,
      ROCEMU_OP_CLOSE_XRCD};
  for (const uint32_t op : about_handles) {
    CAPTURE(op);
    rocemu_handle_message set{};
    set.reserved = 1;
    CHECK(check_in_context(bytes_of(set, op))->error == EINVAL);
  }
}

TEST_CASE("connection management and the rest do not know each other's operations") {
  for (const Operation& operation : operations()) {
    CAPTURE(operation.number);
    const Bytes bytes = message(operation.number, operation.message_bytes);
    const bool of_cm = operation.connection == ConnectionKind::cm;
    const auto other = of_cm ? ConnectionKind::context : ConnectionKind::cm;
    CHECK(check_request(bytes, other).error() == Malformed::unknown_op);
  }
}

TEST_CASE("what is no message is told apart") {
  CHECK(check_in_context({}).error() == Malformed::too_short);
  CHECK(check_in_context(Bytes(23)).error() == Malformed::too_short);
  for (const uint32_t op : {0u, 71u, 78u, 0xffffffffu})
    CHECK(check_in_context(message(op, 24)).error() == Malformed::unknown_op);
  Bytes lies = message(ROCEMU_OP_STATUS, 24);
  const uint32_t length = GENERATE(0u, 23u, 25u, 0xffffffffu);
  std::memcpy(lies.data() + offsetof(rocemu_header, length), &length, sizeof(length));
  CHECK(check_in_context(lies).error() == Malformed::wrong_length);
}

TEST_CASE("a link's text ends in its message, with nothing behind the end") {
  rocemu_link_set set{};
  std::memcpy(set.assignment, "loss=1%", 7);
  CHECK(check_in_context(bytes_of(set, ROCEMU_OP_LINK_SET))->error == 0);
  set.assignment[sizeof(set.assignment) - 1] = 'x';
  CHECK(check_in_context(bytes_of(set, ROCEMU_OP_LINK_SET))->error == EINVAL);
  std::memset(set.assignment, 'x', sizeof(set.assignment));
  CHECK(check_in_context(bytes_of(set, ROCEMU_OP_LINK_SET))->error == EINVAL);
}

TEST_CASE("a hello of another ABI is understood as far as that, whatever its length") {
  CHECK(check_in_context(bytes_of(hello(), ROCEMU_OP_HELLO))->error == 0);
  rocemu_hello other = hello();
  other.abi_version = ROCEMU_ABI_VERSION + 1;
  Bytes bytes = bytes_of(other, ROCEMU_OP_HELLO);
  CHECK(check_in_context(bytes)->error == EPROTO);
  bytes.resize(200);
  const uint32_t length = 200;
  std::memcpy(bytes.data() + offsetof(rocemu_header, length), &length, sizeof(length));
  CHECK(check_in_context(bytes)->error == EPROTO);
  other = hello();
  other.magic = 1;
  CHECK(check_in_context(bytes_of(other, ROCEMU_OP_HELLO))->error == EPROTO);
  CHECK(check_in_context(message(ROCEMU_OP_HELLO, 28)).error() == Malformed::wrong_length);
}

TEST_CASE("reserved fields that are set are refused") {
  rocemu_hello with_reserved = hello();
  with_reserved.reserved = 1;
  CHECK(check_in_context(bytes_of(with_reserved, ROCEMU_OP_HELLO))->error == EINVAL);
  rocemu_handle_message handle{};
  handle.header.status = 1;
  CHECK(check_in_context(bytes_of(handle, ROCEMU_OP_DEREG_MR))->error == EINVAL);
  handle = {};
  handle.header.reserved = 1;
  CHECK(check_in_context(bytes_of(handle, ROCEMU_OP_DEREG_MR))->error == EINVAL);
  handle = {};
  handle.reserved = 1;
  CHECK(check_in_context(bytes_of(handle, ROCEMU_OP_DEREG_MR))->error == EINVAL);
  rocemu_create_qp qp{};
  qp.sq_sig_all = 2;
  CHECK(check_in_context(bytes_of(qp, ROCEMU_OP_CREATE_QP))->error == EINVAL);
  rocemu_modify_qp modify{};
  modify.attr.alt_ah.reserved[1] = 1;
  CHECK(check_in_context(bytes_of(modify, ROCEMU_OP_MODIFY_QP))->error == EINVAL);
}

TEST_CASE("QP attributes survive both ways") {
  std::mt19937 random(1);
  rocemu_qp_attr original;
  auto* bytes = reinterpret_cast<unsigned char*>(&original);
  for (size_t i = 0; i < sizeof(original); ++i) bytes[i] = static_cast<unsigned char>(random());
  original.en_sqd_async_notify = original.ah.is_global = 1;
  original.sq_draining = original.alt_ah.is_global = 0;
  for (uint8_t* reserved : {original.ah.reserved, original.alt_ah.reserved})
    reserved[0] = reserved[1] = 0;
  original.reserved[0] = 0;
  const rocemu_qp_attr again = from_qp_attr(to_qp_attr(original));
  CHECK(std::memcmp(&again, &original, sizeof(again)) == 0);
}

TEST_CASE("random bytes are decoded or refused, never more") {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes(random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (bytes.size() >= sizeof(rocemu_header)) {
      const uint32_t op = random() % 70;
      const auto length = static_cast<uint32_t>(bytes.size());
      std::memcpy(bytes.data(), &op, sizeof(op));
      std::memcpy(bytes.data() + offsetof(rocemu_header, length), &length, sizeof(length));
    }
    const auto request = check_in_context(bytes);
    if (request) CHECK(request->header.length == bytes.size());
  }
}

}  // namespace rocemu::daemon
