// gid-index: a GID of another type or scope than the peer's, or one that the peer does not expect.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/detectors/nic/connection_detector.h"
#include "verbs_shim/checker/detectors/nic/peer_text.h"

namespace rocemu::check {
namespace {

constexpr const char* kWhy =
    "Which address, type and version a GID index stands for differs from NIC to NIC and from host "
    "to host: index 0 is a link-local address here, of RoCE v1 there (ibv_query_gid(3); IBTA "
    "annex A17).";
constexpr const char* kAdvice =
    "Choose the index by its content, with ibv_query_gid_ex or ibv_query_gid_table: RoCE v2 and "
    "the "
    "address that the peer was told; and tell the peer that same GID.";

// Reads a GID of the context's device as /sys has it; false when there is none at the index.
bool read_gid(const Context& context, unsigned port, unsigned index, uint8_t (&gid)[16]) {
  const char* const directory = std::getenv(ROCEMU_ENV_DIR);
  if (directory == nullptr) return false;
  const std::string path = std::string(directory) + "/" ROCEMU_SYSFS_NAME "/class/infiniband/" +
                           context.device_name + "/ports/" + std::to_string(port) + "/gids/" +
                           std::to_string(index);
  FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return false;
  unsigned words[8];
  const bool whole = std::fscanf(file, "%x:%x:%x:%x:%x:%x:%x:%x", &words[0], &words[1], &words[2],
                                 &words[3], &words[4], &words[5], &words[6], &words[7]) == 8;
  std::fclose(file);
  for (size_t i = 0; whole && i < 8; ++i) {
    gid[2 * i] = static_cast<uint8_t>(words[i] >> 8);
    gid[2 * i + 1] = static_cast<uint8_t>(words[i]);
  }
  return whole && !is_zero(gid);
}

bool is_multicast(const uint8_t (&gid)[16]) { return gid[0] == 0xff; }

class GidIndex final : public ConnectionDetector {
 public:
  GidIndex() : ConnectionDetector("gid-index") {}

 private:
  std::optional<Finding> judge(QueuePair& qp, const rocemu_inspect_qp_reply& facts) override {
    const bool met = (facts.flags & ROCEMU_INSPECTED_MET) != 0;
    // A connection that may migrate has two addresses at each end.
    if (!met || !is_zero(facts.own.alt_ah.dgid) || !is_zero(facts.peer.alt_ah.dgid))
      return std::nullopt;
    Finding finding;
    if (!is_same(facts.own_gid, facts.peer.ah.dgid)) {
      finding.sentence = qp.name() + " sends from " + index_text(facts.own.ah, facts.own_gid) +
                         ", but its peer, " + peer_text(facts) + ", is connected to " +
                         gid_text(facts.peer.ah.dgid) + ".";
    } else if (!is_same(facts.peer_gid, facts.own.ah.dgid)) {
      finding.sentence = qp.name() + " is connected to " + gid_text(facts.own.ah.dgid) +
                         ", but its peer, " + peer_text(facts) + ", sends from " +
                         index_text(facts.peer.ah, facts.peer_gid) + ".";
    } else if (is_link_local(facts.own_gid) != is_link_local(facts.own.ah.dgid)) {
      finding.sentence = qp.name() + " sends from " + index_text(facts.own.ah, facts.own_gid) +
                         " to " + gid_text(facts.own.ah.dgid) +
                         ", and one of them is link-local: no router passes that on.";
    } else {
      return std::nullopt;
    }
    finding.why = std::string(
                      "A connection takes packets of its peer's address alone (IBTA vol 1, 9.6.1); "
                      "NICs that do not look at it let this work. ") +
                  kWhy;
    finding.advice = kAdvice;
    finding.objects = {qp.name()};
    return finding;
  }

  void on_modify_refused(const Call& call, QueuePair& qp, const ibv_qp_attr& attr, int mask,
                         int error) override {
    if ((mask & IBV_QP_AV) == 0 || (error != EINVAL && error != EHOSTUNREACH)) return;
    const std::string what = why_refused(qp, attr.ah_attr);
    if (what.empty() || !is_new(call)) return;
    Finding finding;
    finding.sentence = qp.name() + " cannot be connected: " + what + ".";
    finding.why = kWhy;
    finding.advice = kAdvice;
    finding.objects = {qp.name()};
    report(call, finding);
  }

  static std::string why_refused(const QueuePair& qp, const ibv_ah_attr& ah) {
    if (ah.is_global == 0)
      return "its address has no GRH (is_global is 0), without which RoCE knows no peer";
    uint8_t dgid[16];
    std::memcpy(dgid, ah.grh.dgid.raw, sizeof(dgid));
    uint8_t own[16] = {};
    if (!read_gid(*qp.context, ah.port_num, ah.grh.sgid_index, own))
      return "GID index " + std::to_string(ah.grh.sgid_index) + " of port " +
             std::to_string(ah.port_num) + " is empty";
    const std::string both = "GID index " + std::to_string(ah.grh.sgid_index) + " is " +
                             gid_text(own) + ", and the peer's is " + gid_text(dgid);
    if (is_ipv4(own) != is_ipv4(dgid)) return both + ", of another IP version";
    if (is_link_local(own) != is_link_local(dgid) && !is_multicast(dgid))
      return both + ", and one of them is link-local";
    return {};
  }

  static bool is_same(const uint8_t (&a)[16], const uint8_t (&b)[16]) {
    return std::equal(a, a + 16, b);
  }
  static std::string index_text(const rocemu_ah_attr& ah, const uint8_t (&gid)[16]) {
    return gid_text(gid) + " (GID index " + std::to_string(ah.sgid_index) + ")";
  }
};

}  // namespace

std::unique_ptr<Detector> make_gid_index() { return std::make_unique<GidIndex>(); }

}  // namespace rocemu::check
