// Alternate paths and migration (IBTA vol 1, 17.2.8; ibv_modify_qp(3)): the alternate path of the
// rows leads from another GID of one device to another GID of the other.
#include <cstring>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

void require_migration(const Device& device) {
  ibv_device_attr attr{};
  must(ibv_query_device(device.context.get(), &attr), "ibv_query_device");
  if ((attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG) == 0)
    throw Skipped("the device does not migrate");
}

// The GIDs of both devices that stand at one index, which is not that of the path.
struct OtherGids {
  uint8_t index;
  ibv_gid a, b;
};

OtherGids other_gids(const Lab& lab) {
  for (uint8_t index = 0; index < lab.a().port.gid_tbl_len; ++index) {
    OtherGids gids{index, {}, {}};
    constexpr ibv_gid kNone{};
    if (index == lab.a().gid_index || index == lab.b().gid_index) continue;
    if (ibv_query_gid(lab.a().context.get(), kPort, index, &gids.a) != 0) continue;
    if (ibv_query_gid(lab.b().context.get(), kPort, index, &gids.b) != 0) continue;
    if (std::memcmp(&gids.a, &kNone, sizeof(kNone)) == 0 || is_ipv4(gids.a) != is_ipv4(gids.b))
      continue;
    return gids;
  }
  throw Skipped("the devices have no other GIDs");
}

QpChange alternate_path(uint8_t gid_index, const ibv_gid& to) {
  QpChange change;
  change.mask = IBV_QP_ALT_PATH;
  change.attr.alt_ah_attr.is_global = 1;
  change.attr.alt_ah_attr.grh.sgid_index = gid_index;
  change.attr.alt_ah_attr.grh.dgid = to;
  change.attr.alt_ah_attr.grh.hop_limit = 33;
  change.attr.alt_ah_attr.port_num = kPort;
  change.attr.alt_port_num = kPort;
  change.attr.alt_timeout = 15;
  return change;
}

QpChange rearming(QpChange change) {
  change.mask |= IBV_QP_PATH_MIG_STATE;
  change.attr.path_mig_state = IBV_MIG_REARM;
  return change;
}

int ask_for(const End& end, ibv_mig_state state) {
  QpChange change;
  change.mask = IBV_QP_PATH_MIG_STATE;
  change.attr.path_mig_state = state;
  return change.apply(end.qp.get());
}

ibv_qp_attr attributes_of(const End& end) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  must(ibv_query_qp(end.qp.get(), &attr, ~0, &init), "ibv_query_qp");
  return attr;
}

void expect_migration_state(const End& end, ibv_mig_state due) {
  expect_equal(attributes_of(end).path_mig_state, due, "path_mig_state");
}

void send_from(End& from, End& to, uint64_t wr_id) {
  post_recv_ok(to.qp.get(), wr_id, to.sge(0, 100));
  post(from, IBV_WR_SEND, wr_id, from.sge(0, 100), to);
  expect_completion(from.send_cq.get(), wr_id, {IBV_WC_SUCCESS});
  expect_completion(to.recv_cq.get(), wr_id, {IBV_WC_SUCCESS});
}

// Both ends know the other path and are armed.
Ends make_armed_ends(Lab& lab, const EndOptions& options) {
  require_migration(lab.a());
  const OtherGids gids = other_gids(lab);
  Ends ends = make_ends(lab, options);
  must(rearming(alternate_path(gids.index, gids.b)).apply(ends.a.qp.get()), "REARM");
  must(rearming(alternate_path(gids.index, gids.a)).apply(ends.b.qp.get()), "REARM");
  for (const End* end : {&ends.a, &ends.b}) expect_migration_state(*end, IBV_MIG_REARM);
  send_from(ends.a, ends.b, 1);
  send_from(ends.b, ends.a, 2);
  for (const End* end : {&ends.a, &ends.b}) expect_migration_state(*end, IBV_MIG_ARMED);
  return ends;
}

EndOptions options_of(ibv_qp_type type) {
  EndOptions options;
  options.type = type;
  options.rc.timeout = 12;  // 17 ms
  options.rc.retry_cnt = 2;
  return options;
}

// The path is what was the alternate one, and the alternate one is the same.
void expect_migrated(Lab& lab, const End& end) {
  expect_qp_event(*end.device, end.qp.get(), IBV_EVENT_PATH_MIG);
  const OtherGids gids = other_gids(lab);
  const ibv_qp_attr attr = attributes_of(end);
  const ibv_gid& peer = end.device == &lab.a() ? gids.b : gids.a;
  expect_equal(attr.path_mig_state, IBV_MIG_MIGRATED, "path_mig_state");
  for (const ibv_ah_attr& path : {attr.ah_attr, attr.alt_ah_attr}) {
    expect_equal(path.grh.sgid_index, gids.index, "sgid_index");
    expect_equal(path.grh.hop_limit, 33, "hop_limit");
    if (std::memcmp(&path.grh.dgid, &peer, sizeof(peer)) != 0) fail("dgid is another one");
  }
  expect_equal(attr.timeout, 15, "timeout");
}

void given_back(Lab& lab) {
  require_migration(lab.a());
  const OtherGids gids = other_gids(lab);
  Ends ends = make_ends(lab, IBV_QPT_RC);
  QpChange change = alternate_path(gids.index, gids.b);
  change.attr.alt_ah_attr.grh.flow_label = 0x12345;
  change.attr.alt_ah_attr.grh.traffic_class = 0x20;
  change.attr.alt_ah_attr.sl = 2;
  must(change.apply(ends.a.qp.get()), "ibv_modify_qp");
  const ibv_qp_attr attr = attributes_of(ends.a);
  expect_equal(attr.alt_ah_attr.is_global, 1, "is_global");
  expect_equal(attr.alt_ah_attr.grh.sgid_index, gids.index, "sgid_index");
  expect_equal(attr.alt_ah_attr.grh.hop_limit, 33, "hop_limit");
  expect_equal(attr.alt_ah_attr.grh.flow_label, 0x12345, "flow_label");
  expect_equal(attr.alt_ah_attr.grh.traffic_class, 0x20, "traffic_class");
  expect_equal(attr.alt_ah_attr.sl, 2, "sl");
  if (std::memcmp(&attr.alt_ah_attr.grh.dgid, &gids.b, sizeof(ibv_gid)) != 0)
    fail("dgid is another one");
  expect_equal(attr.alt_port_num, kPort, "alt_port_num");
  expect_equal(attr.alt_pkey_index, 0, "alt_pkey_index");
  expect_equal(attr.alt_timeout, 15, "alt_timeout");
  expect_equal(attr.path_mig_state, IBV_MIG_MIGRATED, "path_mig_state");
  expect_equal(attr.ah_attr.grh.sgid_index, lab.a().gid_index, "sgid_index of the path");
  send_from(ends.a, ends.b, 1);
}

void by_the_program(Lab& lab, ibv_qp_type type) {
  Ends ends = make_armed_ends(lab, options_of(type));
  must(ask_for(ends.a, IBV_MIG_MIGRATED), "MIGRATED");
  expect_migrated(lab, ends.a);
  expect_migration_state(ends.b, IBV_MIG_ARMED);
  send_from(ends.a, ends.b, 3);
  expect_migrated(lab, ends.b);
  send_from(ends.b, ends.a, 4);
  // And back, over a path that is loaded anew.
  must(rearming(alternate_path(lab.a().gid_index, lab.b().gid)).apply(ends.a.qp.get()), "REARM");
  must(rearming(alternate_path(lab.b().gid_index, lab.a().gid)).apply(ends.b.qp.get()), "REARM");
  send_from(ends.a, ends.b, 5);
  send_from(ends.b, ends.a, 6);
  must(ask_for(ends.b, IBV_MIG_MIGRATED), "MIGRATED");
  send_from(ends.b, ends.a, 7);
  for (const End* end : {&ends.a, &ends.b}) {
    expect_qp_event(*end->device, end->qp.get(), IBV_EVENT_PATH_MIG);
    expect_equal(attributes_of(*end).ah_attr.grh.sgid_index, end->device->gid_index, "sgid_index");
  }
}

void rc_by_the_program(Lab& lab) { by_the_program(lab, IBV_QPT_RC); }
void uc_by_the_program(Lab& lab) { by_the_program(lab, IBV_QPT_UC); }

// The peer's end of the path is taken away: it takes the packets of another address instead.
void by_the_device(Lab& lab) {
  Ends ends = make_armed_ends(lab, options_of(IBV_QPT_RC));
  const OtherGids gids = other_gids(lab);
  must(change_to(IBV_QPS_SQD).apply(ends.b.qp.get()), "ibv_modify_qp to SQD");
  QpChange elsewhere = change_to(IBV_QPS_SQD);
  elsewhere.mask |= IBV_QP_AV;
  elsewhere.attr.ah_attr = alternate_path(gids.index, gids.b).attr.alt_ah_attr;
  must(elsewhere.apply(ends.b.qp.get()), "ibv_modify_qp with another path");
  must(change_to(IBV_QPS_RTS).apply(ends.b.qp.get()), "ibv_modify_qp to RTS");

  ends.a.fill(std::byte{5});
  post(ends.a, IBV_WR_RDMA_WRITE, 10, ends.a.sge(0, 30000), ends.b, 32768);
  post(ends.a, IBV_WR_RDMA_READ, 11, ends.a.sge(30000, 100), ends.b, 32768);
  for (const uint64_t id : {10, 11}) expect_completion(ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
  expect_bytes({ends.b.memory.data() + 32768, 30000}, std::byte{5}, "what was written");
  expect_migrated(lab, ends.a);
  expect_migrated(lab, ends.b);
  send_from(ends.b, ends.a, 12);
}

void refused_by_the_peer(Lab& lab) {
  require_migration(lab.a());
  const OtherGids gids = other_gids(lab);
  Ends ends = make_ends(lab, options_of(IBV_QPT_RC));
  must(rearming(alternate_path(gids.index, gids.b)).apply(ends.a.qp.get()), "REARM");
  // The peer knows the path alone that there is.
  must(rearming(alternate_path(lab.b().gid_index, lab.a().gid)).apply(ends.b.qp.get()), "REARM");
  send_from(ends.a, ends.b, 1);
  send_from(ends.b, ends.a, 2);
  must(ask_for(ends.a, IBV_MIG_MIGRATED), "MIGRATED");
  expect_qp_event(lab.a(), ends.a.qp.get(), IBV_EVENT_PATH_MIG);
  post(ends.a, IBV_WR_SEND, 3, ends.a.sge(0, 8), ends.b);
  expect_qp_event(lab.b(), ends.b.qp.get(), IBV_EVENT_PATH_MIG_ERR);
  expect_migration_state(ends.b, IBV_MIG_ARMED);
  expect_state(ends.b.qp.get(), IBV_QPS_RTS);
  must(change_to(IBV_QPS_RESET).apply(ends.a.qp.get()), "ibv_modify_qp to RESET");
  expect_migration_state(ends.a, IBV_MIG_MIGRATED);
}

void wrong_attributes(Lab& lab) {
  require_migration(lab.a());
  const OtherGids gids = other_gids(lab);
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const auto expect_invalid = [&](const char* what, auto spoil) {
    QpChange change = alternate_path(gids.index, gids.b);
    spoil(change.attr);
    expect_errno(change.apply(ends.a.qp.get()), {EINVAL}, what);
  };
  expect_invalid("port 0", [](ibv_qp_attr& attr) { attr.alt_port_num = 0; });
  expect_invalid("port 2", [](ibv_qp_attr& attr) { attr.alt_port_num = 2; });
  expect_invalid("port 2", [](ibv_qp_attr& attr) { attr.alt_ah_attr.port_num = 2; });
  expect_invalid("a P_Key", [](ibv_qp_attr& attr) { attr.alt_pkey_index = 77; });
  expect_invalid("a timeout", [](ibv_qp_attr& attr) { attr.alt_timeout = 32; });
  expect_invalid("no GRH", [](ibv_qp_attr& attr) { attr.alt_ah_attr.is_global = 0; });
  expect_invalid("a GID", [](ibv_qp_attr& attr) { attr.alt_ah_attr.grh.sgid_index = 255; });
  expect_errno(ask_for(ends.a, IBV_MIG_ARMED), {EINVAL}, "ARMED");
  expect_errno(ask_for(ends.a, static_cast<ibv_mig_state>(77)), {EINVAL}, "state 77");
  must(ask_for(ends.a, IBV_MIG_MIGRATED), "MIGRATED, as it is");
  must(rearming(alternate_path(gids.index, gids.b)).apply(ends.a.qp.get()), "REARM");
  expect_errno(ask_for(ends.a, IBV_MIG_MIGRATED), {EINVAL}, "MIGRATED in REARM");
  expect_equal(attributes_of(ends.a).alt_timeout, 15, "alt_timeout");
  Ends datagrams = make_ends(lab, IBV_QPT_UD);
  expect_errno(alternate_path(gids.index, gids.b).apply(datagrams.a.qp.get()), {EINVAL}, "UD");
  send_from(ends.a, ends.b, 1);
}

}  // namespace

std::span<const Row> migration_rows() {
  static constexpr Row kRows[] = {
      {"APM: ibv_query_qp gives the alternate path back", given_back},
      {"APM: RC migrates when the program asks, there and back", rc_by_the_program},
      {"APM: UC migrates when the program asks, there and back", uc_by_the_program},
      {"APM: RC goes on over the other path when retries are used up", by_the_device},
      {"APM: a path that the peer does not know is refused", refused_by_the_peer},
      {"APM: wrong attributes are refused", wrong_attributes},
  };
  return kRows;
}

}  // namespace rocemu::e2e
