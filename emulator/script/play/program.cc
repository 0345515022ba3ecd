#include "emulator/script/play/program.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/byte_order.h"
#include "base/verbs/numbers.h"
#include "emulator/script/language/vocabulary.h"

namespace rocemu::script {

namespace {

using verbs::WcOpcode;
using verbs::WcStatus;

std::string status_name(uint32_t status) {
  switch (static_cast<WcStatus>(status)) {
    case WcStatus::success:
      return "success";
    case WcStatus::local_length_error:
      return "loc_len_err";
    case WcStatus::local_qp_operation_error:
      return "loc_qp_op_err";
    case WcStatus::local_protection_error:
      return "loc_prot_err";
    case WcStatus::flush_error:
      return "wr_flush_err";
    case WcStatus::window_bind_error:
      return "mw_bind_err";
    case WcStatus::bad_response_error:
      return "bad_resp_err";
    case WcStatus::local_access_error:
      return "loc_access_err";
    case WcStatus::remote_invalid_request_error:
      return "rem_inv_req_err";
    case WcStatus::remote_access_error:
      return "rem_access_err";
    case WcStatus::remote_operation_error:
      return "rem_op_err";
    case WcStatus::retry_exceeded_error:
      return "retry_exc_err";
    case WcStatus::rnr_retry_exceeded_error:
      return "rnr_retry_exc_err";
    default:
      return "general_err";
  }
}

std::string opcode_word(uint32_t opcode) {
  switch (static_cast<WcOpcode>(opcode)) {
    case WcOpcode::send:
      return "send";
    case WcOpcode::rdma_write:
      return "write";
    case WcOpcode::rdma_read:
      return "read";
    case WcOpcode::compare_swap:
      return "cas";
    case WcOpcode::fetch_add:
      return "fadd";
    case WcOpcode::bind_window:
      return "bind_mw";
    case WcOpcode::local_invalidate:
      return "local_inv";
    case WcOpcode::atomic_write:
      return "atomic_write";
    case WcOpcode::receive_rdma_with_imm:
      return "recv_imm";
    default:
      return "recv";
  }
}

std::string event_name(uint32_t type) {
  using namespace verbs::async_event;
  switch (type) {
    case kCqError:
      return "cq_err";
    case kQpFatal:
      return "qp_fatal";
    case kQpRequestError:
      return "qp_req_err";
    case kQpAccessError:
      return "qp_access_err";
    case kCommunicationEstablished:
      return "comm_est";
    case kSendQueueDrained:
      return "sq_drained";
    case kPathMigrated:
      return "path_mig";
    case kPathMigrationError:
      return "path_mig_err";
    case kSrqLimitReached:
      return "srq_limit_reached";
    case kQpLastWqeReached:
      return "qp_last_wqe_reached";
    default:
      return "event_" + std::to_string(type);
  }
}

}  // namespace

Fields result_word(const std::string& word) {
  Fields fields;
  fields.add_word("result", word);
  return fields;
}

Fields result_of(int error) {
  const char* const name = error == 0 ? "ok" : strerrorname_np(error);
  return result_word(name == nullptr ? "EIO" : name);
}

Fields nothing() { return result_word("nothing"); }

Fields result_bytes(std::vector<std::byte> bytes) {
  if (std::ranges::adjacent_find(bytes, std::not_equal_to()) == bytes.end() && !bytes.empty()) {
    const auto byte = static_cast<uint64_t>(bytes.front());
    Fields alike;
    alike.list.push_back({"result",
                          {.kind = Value::Kind::filled,
                           .number = bytes.size(),
                           .last = byte,
                           .text = {},
                           .bytes = std::move(bytes)},
                          {}});
    return alike;
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  Fields fields;
  fields.list.push_back(
      {"result", {.kind = Value::Kind::literal, .text = text, .bytes = std::move(bytes)}, {}});
  return fields;
}

Fields result_completion(const CompletionText& completion) {
  Fields fields = result_word(status_name(completion.status));
  const bool success = completion.status == 0;
  const std::string opcode = opcode_word(completion.opcode);
  if (success) fields.add_word("opcode", opcode);
  fields.add("wr_id", completion.wr_id);
  if (!completion.qp.empty()) fields.add_word("qp", completion.qp);
  if (!success) return fields;
  // The rest describes what was received (ibv_poll_cq(3)).
  if (!opcode.starts_with("recv")) return fields;
  fields.add("byte_len", completion.byte_length);
  if (completion.has_immediate) fields.add("imm", completion.immediate);
  if (completion.has_invalidated) fields.add("inv", completion.immediate);
  if (completion.has_grh) fields.add_flag("grh");
  if (completion.has_grh) fields.add("src_qp", completion.source_qp);
  return fields;
}

Fields result_event(uint32_t type, const std::string& object, const std::string& name) {
  Fields fields = result_word(event_name(type));
  if (!object.empty() && !name.empty()) fields.add_word(object, name);
  return fields;
}

uint32_t network_order(uint32_t number) {
  return load_be32(reinterpret_cast<const std::byte*>(&number));
}

}  // namespace rocemu::script
