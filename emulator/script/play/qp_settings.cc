#include "emulator/script/play/qp_settings.h"

#include <algorithm>
#include <type_traits>

#include "base/verbs/numbers.h"
#include "emulator/script/language/vocabulary.h"

namespace rocemu::script {

using namespace verbs::qp_attribute;

namespace {

constexpr uint32_t kResponder = kMaxDestRdAtomic | kMinRnrTimer;
constexpr uint32_t kRequester = kRetryCount | kRnrRetry | kMaxQpRdAtomic;
constexpr uint32_t kTimer = kTimeout;

// The attributes that a change needs (IBTA vol 1, table 91).
uint32_t needed(const std::string& type, const std::string& from, const std::string& to) {
  const bool ud = type == "ud";
  const bool responds = type == "rc" || type == "xrc_recv";
  const bool requests = type == "rc" || type == "xrc_send";
  if (from == "reset" && to == "init") return kPkeyIndex | kPort | (ud ? kQkey : kAccessFlags);
  if (from == "init" && to == "rtr" && !ud)
    return kAv | kPathMtu | kDestQpn | kRqPsn | (responds ? kResponder : 0);
  if (from == "rtr" && to == "rts")
    return kSqPsn | (requests || responds ? kTimer : 0) | (requests ? kRequester : 0);
  return 0;
}

struct Attribute {
  const char* key;
  uint32_t bit;
};
constexpr Attribute kAttributes[] = {
    {"access", kAccessFlags},   {"qkey", kQkey},
    {"mtu", kPathMtu},          {"rq_psn", kRqPsn},
    {"sq_psn", kSqPsn},         {"max_rd_atomic", kMaxQpRdAtomic},
    {"timeout", kTimeout},      {"max_dest_rd_atomic", kMaxDestRdAtomic},
    {"retry_cnt", kRetryCount}, {"min_rnr_timer", kMinRnrTimer},
    {"rnr_retry", kRnrRetry},   {"sqd_event", kEnSqdAsyncNotify}};

uint32_t mtu_number(uint64_t bytes) {
  uint32_t number = 1;
  while (verbs::mtu_bytes(number) < bytes) ++number;
  return number;
}

}  // namespace

uint32_t access_bits(const std::string& flags) {
  using namespace verbs::access;
  uint32_t bits = 0;
  for (size_t begin = 0; begin <= flags.size();) {
    const size_t end = std::min(flags.find('|', begin), flags.size());
    const std::string flag = flags.substr(begin, end - begin);
    bits |= flag == "local_write"     ? kLocalWrite
            : flag == "remote_write"  ? kRemoteWrite
            : flag == "remote_read"   ? kRemoteRead
            : flag == "remote_atomic" ? kRemoteAtomic
            : flag == "mw_bind"       ? kWindowBind
            : flag == "flush_global"  ? kFlushGlobal
                                      : 0;
    begin = end + 1;
  }
  return bits;
}

uint32_t index_of(std::string_view words, std::string_view word) {
  uint32_t index = 0;
  for (const char c : words.substr(0, words.find(word))) index += c == ' ';
  return index;
}

std::string_view word_at(std::string_view words, uint32_t index) {
  for (; index > 0; --index) words.remove_prefix(std::min(words.find(' ') + 1, words.size()));
  return words.substr(0, words.find(' '));
}

QpSettings settings_of(const Fields& arguments, const std::string& type, const std::string& state,
                       const std::string& from, wire::Qpn wire_qpn) {
  QpSettings settings;
  const bool whole = !from.empty();
  uint32_t given = 0;
  for (const Attribute& attribute : kAttributes)
    if (arguments.has(attribute.key)) given |= attribute.bit;
  // In a connection that is made in one call each step takes its own.
  settings.mask = whole ? needed(type, from, state) | (arguments.has("STATE") ? given : 0) : given;
  if (!state.empty()) {
    settings.mask |= kState;
    settings.state = index_of(kQpStates, state);
  }
  const auto set = [&](auto& member, const char* key) {
    member = static_cast<std::remove_reference_t<decltype(member)>>(arguments.number(key, member));
  };
  using namespace verbs::access;
  settings.access = arguments.has("access") ? access_bits(arguments.text("access"))
                                            : kRemoteWrite | kRemoteRead | kRemoteAtomic;
  set(settings.qkey, "qkey");
  if (arguments.has("mtu")) settings.path_mtu = mtu_number(arguments.number("mtu", 0));
  set(settings.rq_psn, "rq_psn");
  set(settings.sq_psn, "sq_psn");
  set(settings.max_rd_atomic, "max_rd_atomic");
  set(settings.max_dest_rd_atomic, "max_dest_rd_atomic");
  set(settings.min_rnr_timer, "min_rnr_timer");
  set(settings.timeout, "timeout");
  set(settings.retry_cnt, "retry_cnt");
  set(settings.rnr_retry, "rnr_retry");
  settings.sqd_event = arguments.has("sqd_event");
  settings.dest_qpn = wire_qpn.value;
  return settings;
}

}  // namespace rocemu::script
