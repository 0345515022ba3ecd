#include "emulator/fault/kinds.h"

#include <algorithm>
#include <iterator>

namespace rocemu::fault {
namespace {

using enum Nature;

constexpr std::string_view kDevice = "";
constexpr std::string_view kQueues = " qp pid program peer ";
constexpr std::string_view kPosts = " qp pid program ";
constexpr std::string_view kPrograms = " pid program ";

constexpr KindRow kKinds[] = {
    {Kind::qp_error, "qp-error", moment, kQueues, " status ", "", "qp-error status=retry-exc-err",
     "QPs go to ERROR, the oldest request with that status"},
    {Kind::cq_error, "cq-error", moment, kQueues, "", "", "cq-error",
     "CQs go into error, as after an overrun, and their QPs with them"},
    {Kind::device_fatal, "device-fatal", state, kDevice, "", "", "device-fatal for=2s",
     "the device is lost to all programs; new ones can open it again afterwards"},
    {Kind::port_down, "port-down", state, kDevice, "", "", "port-down for=200ms",
     "the port is down; with every= it flaps"},
    {Kind::no_traffic, "no-traffic", state, kDevice, " direction ", "", "no-traffic direction=rx",
     "the port is up, and all frames are lost"},
    {Kind::no_answer, "no-answer", state, kQueues, "", "", "no-answer qp=17",
     "QPs do not hear their peers, while the NIC is alive"},
    {Kind::pause, "pause", state, kDevice, " direction ", "", "pause for=50ms",
     "a storm of pause frames: nothing passes the port, and nothing is lost"},
    {Kind::slow, "slow", state, kQueues, " rate ", " rate ", "slow rate=100mbit",
     "the device, or QPs of it, send no faster than that"},
    {Kind::gid_removed, "gid-removed", state, kDevice, " index ", " index ", "gid-removed index=1",
     "an address goes from the port"},
    {Kind::gid_changed, "gid-changed", state, kDevice, " index to ", " index to ",
     "gid-changed index=1 to=10.77.9.9", "an address of the port becomes another one"},
    {Kind::call_fails, "call-fails", filter, kPrograms, " call errno ", " call ",
     "call-fails call=create-qp errno=ENOMEM", "a call fails with that errno"},
    {Kind::call_slow, "call-slow", filter, kPrograms, " call delay ", " call delay ",
     "call-slow call=reg-mr delay=5ms", "a call takes so much longer"},
    {Kind::post_fails, "post-fails", filter, kPosts, " queue errno ", "",
     "post-fails queue=send errno=ENOMEM", "posting fails with that errno"},
    {Kind::completion_late, "completion-late", filter, kQueues, " delay ", " delay ",
     "completion-late delay=1ms", "completions are shown so much later"},
    {Kind::completion_status, "completion-status", filter, kQueues, " status from ", " status ",
     "completion-status status=rem-access-err nth=5",
     "completions have another status than they should"},
    {Kind::event_late, "event-late", filter, kPrograms, " event delay ", " delay ",
     "event-late event=last-wqe delay=1s", "asynchronous events come so much later"},
    {Kind::event_lost, "event-lost", filter, kPrograms, " event ", "", "event-lost event=srq-limit",
     "asynchronous events never come"},
    {Kind::kill, "kill", moment, kDevice, "", "", "kill after=2s",
     "the NIC's process is killed with SIGKILL, and all its devices with it"},
};

constexpr std::string_view kCalls[] = {
    "open",      "alloc-pd",     "reg-mr",      "alloc-mw",        "alloc-dm",   "create-cq",
    "resize-cq", "create-qp",    "modify-qp",   "create-srq",      "modify-srq", "create-ah",
    "open-xrcd", "attach-mcast", "create-flow", "create-counters", kAny};

constexpr StatusName kStatuses[] = {{"success", 0},
                                    {"loc-len-err", 1},
                                    {"loc-qp-op-err", 2},
                                    {"loc-prot-err", 4},
                                    {"wr-flush-err", 5},
                                    {"mw-bind-err", 6},
                                    {"bad-resp-err", 7},
                                    {"loc-access-err", 8},
                                    {"rem-inv-req-err", 9},
                                    {"rem-access-err", 10},
                                    {"rem-op-err", 11},
                                    {"retry-exc-err", 12},
                                    {"rnr-retry-exc-err", 13},
                                    {"rem-abort-err", 16},
                                    {"fatal-err", 19},
                                    {"resp-timeout-err", 20},
                                    {"general-err", 21}};

}  // namespace

std::span<const KindRow> kinds() { return kKinds; }

const KindRow& row_of(Kind kind) { return *std::ranges::find(kKinds, kind, &KindRow::kind); }

const KindRow* find_kind(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &KindRow::name);
  return found == std::end(kKinds) ? nullptr : found;
}

std::span<const std::string_view> call_names() { return kCalls; }

std::span<const StatusName> status_names() { return kStatuses; }

std::string status_text(uint8_t status) {
  const auto* const found = std::ranges::find(kStatuses, status, &StatusName::status);
  return found == std::end(kStatuses) ? std::to_string(status) : std::string(found->name);
}

}  // namespace rocemu::fault
