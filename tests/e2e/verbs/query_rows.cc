// What a device says of itself by the extended queries, and what it answers to wrong ones
// (ibv_query_device_ex(3), ibv_query_gid_ex(3), ibv_query_gid_table(3), ibv_query_rt_values_ex(3),
// ibv_query_ece(3)).
#include <arpa/inet.h>

#include <cstdio>
#include <cstring>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

void device_extended(Lab& lab) {
  ibv_context* context = lab.a().context.get();
  ibv_device_attr_ex extended{};
  must(ibv_query_device_ex(context, nullptr, &extended), "ibv_query_device_ex");
  const ibv_device_attr& plain = lab.a().attr;
  expect_equal(extended.orig_attr.node_guid, plain.node_guid, "node_guid");
  expect_equal(static_cast<uint64_t>(extended.orig_attr.max_qp),
               static_cast<uint64_t>(plain.max_qp), "max_qp");
  expect_equal(extended.orig_attr.max_mr_size, plain.max_mr_size, "max_mr_size");
  expect_equal(extended.phys_port_cnt_ex, plain.phys_port_cnt, "phys_port_cnt_ex");
  if (extended.orig_attr.device_cap_flags != static_cast<uint32_t>(extended.device_cap_flags_ex))
    fail("device_cap_flags_ex does not begin with device_cap_flags");
  ibv_query_device_ex_input input{};
  input.comp_mask = 1u << 30;
  expect_errno(ibv_query_device_ex(context, &input, &extended), {EINVAL},
               "ibv_query_device_ex with an unknown comp_mask");
}

void port_numbers(Lab& lab) {
  ibv_port_attr attr{};
  must(ibv_query_port(lab.a().context.get(), kPort, &attr), "ibv_query_port");
  expect_equal(attr.state, IBV_PORT_ACTIVE, "state");
  for (const int port : {0, lab.a().attr.phys_port_cnt + 1, 255}) {
    expect_errno(ibv_query_port(lab.a().context.get(), static_cast<uint8_t>(port), &attr), {EINVAL},
                 "ibv_query_port of a port that is not there");
  }
}

void gids(Lab& lab) {
  ibv_context* context = lab.a().context.get();
  std::vector<ibv_gid_entry> table(static_cast<size_t>(lab.a().port.gid_tbl_len));
  const ssize_t entries = ibv_query_gid_table(context, table.data(), table.size(), 0);
  if (entries <= 0) fail("ibv_query_gid_table gives %zd entries", entries);
  for (ssize_t i = 0; i < entries; ++i) {
    const ibv_gid_entry& listed = table[static_cast<size_t>(i)];
    ibv_gid_entry entry{};
    must(ibv_query_gid_ex(context, kPort, listed.gid_index, &entry, 0), "ibv_query_gid_ex");
    ibv_gid gid;
    must(ibv_query_gid(context, kPort, static_cast<int>(listed.gid_index), &gid), "ibv_query_gid");
    if (std::memcmp(&entry.gid, &listed.gid, sizeof gid) != 0 ||
        std::memcmp(&gid, &listed.gid, sizeof gid) != 0)
      fail("GID %u differs between the queries", listed.gid_index);
    expect_equal(entry.gid_type, listed.gid_type, "gid_type");
    expect_equal(entry.port_num, kPort, "port_num");
  }
}

// Of rocemuN on the switch of a NIC (docs/configuration.md). On an interface or on sockets the GIDs
// are the machine's, and the GUID another.
void gids_on_the_switch(Lab& lab) {
  for (const Device* device : {&lab.a(), &lab.b()}) {
    unsigned number = 0;
    if (std::sscanf(device->name(), "rocemu%u", &number) != 1)
      throw Skipped("the device is none of rocemu's");
    const auto last = static_cast<uint8_t>(++number);
    const uint8_t guid[] = {0x00, 0x52, 0x4f, 0xff, 0xfe, 0x43, 0, last};
    if (std::memcmp(&device->attr.node_guid, guid, sizeof guid) != 0)
      throw Skipped("the device is not on the switch of its NIC");
    const ibv_gid known[] = {
        {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x52, 0x4f, 0xff, 0xfe, 0x43, 0, last}},
        {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, last}},
        {{0xfd, 0x52, 0x4f, 0x43, 0x45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}}};
    ibv_gid_entry table[4];
    const ssize_t entries = ibv_query_gid_table(device->context.get(), table, 4, 0);
    if (entries != 3) fail("%s has %zd GIDs, must have 3", device->name(), entries);
    for (uint32_t i = 0; i < 3; ++i) {
      expect_equal(table[i].gid_index, i, "gid_index");
      expect_equal(table[i].gid_type, IBV_GID_TYPE_ROCE_V2, "gid_type");
      if (std::memcmp(&table[i].gid, &known[i], sizeof known[i]) != 0)
        fail("GID %u of %s is another", i, device->name());
    }
  }
}

// A place in the table that holds none.
void no_gid(Lab& lab) {
  ibv_context* context = lab.a().context.get();
  const auto places = static_cast<uint32_t>(lab.a().port.gid_tbl_len);
  for (uint32_t i = 0; i < places; ++i) {
    ibv_gid_entry entry{};
    const int error = ibv_query_gid_ex(context, kPort, i, &entry, 0);
    if (error == 0) continue;
    expect_errno(error, {ENODATA}, "ibv_query_gid_ex of an empty place");
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.grh.dgid = lab.b().gid;
    attr.grh.sgid_index = static_cast<uint8_t>(i);
    attr.port_num = kPort;
    if (i <= 255)
      expect_refused(AhPtr(ibv_create_ah(lab.a().pd.get(), &attr)), {EINVAL},
                     "ibv_create_ah from an empty place");
    return;
  }
  throw Skipped("the table of GIDs is full");
}

void gids_refused(Lab& lab) {
  ibv_context* context = lab.a().context.get();
  const auto beyond = static_cast<uint32_t>(lab.a().port.gid_tbl_len);
  ibv_gid_entry entry{};
  expect_errno(ibv_query_gid_ex(context, kPort, beyond, &entry, 0), {EINVAL},
               "ibv_query_gid_ex beyond the table");
  expect_errno(ibv_query_gid_ex(context, kPort, 0, &entry, 1), {EINVAL, EOPNOTSUPP},
               "ibv_query_gid_ex with a flag");
  expect_errno(ibv_query_gid_ex(context, 99, 0, &entry, 0), {EINVAL},
               "ibv_query_gid_ex of a port that is not there");
  if (ibv_query_gid_table(context, &entry, 1, 1) >= 0)
    fail("ibv_query_gid_table takes an unknown flag");
  if (ibv_query_gid_table(context, &entry, 0, 0) >= 0)
    fail("ibv_query_gid_table puts its entries where there is no room");
  ibv_gid gid;
  if (ibv_query_gid(context, kPort, static_cast<int>(beyond), &gid) == 0)
    fail("ibv_query_gid gives a GID beyond the table");
}

void pkeys(Lab& lab) {
  ibv_context* context = lab.a().context.get();
  __be16 pkey = 0;
  must(ibv_query_pkey(context, kPort, 0, &pkey), "ibv_query_pkey");
  expect_equal(ibv_get_pkey_index(context, kPort, pkey) == 0, 1, "the index of the P_Key");
  expect_equal(ntohs(pkey), 0xffff, "the default P_Key");
  if (ibv_query_pkey(context, kPort, lab.a().port.pkey_tbl_len, &pkey) == 0)
    fail("ibv_query_pkey gives a P_Key beyond the table");
  if (ibv_get_pkey_index(context, kPort, htons(0x1234)) >= 0)
    fail("ibv_get_pkey_index finds a P_Key that is not there");
}

void clock(Lab& lab) {
  ibv_values_ex first{}, second{};
  first.comp_mask = second.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  const int error = ibv_query_rt_values_ex(lab.a().context.get(), &first);
  if (error == EOPNOTSUPP) throw Skipped("the device does not tell its clock");
  must(error, "ibv_query_rt_values_ex");
  must(ibv_query_rt_values_ex(lab.a().context.get(), &second), "ibv_query_rt_values_ex");
  expect_equal(first.comp_mask, IBV_VALUES_MASK_RAW_CLOCK, "comp_mask");
  if (first.raw_clock.tv_nsec > second.raw_clock.tv_nsec) fail("the device's clock runs backwards");
  first.comp_mask = 1u << 20;
  expect_errno(ibv_query_rt_values_ex(lab.a().context.get(), &first), {EINVAL, EOPNOTSUPP},
               "ibv_query_rt_values_ex of an unknown value");
}

// Enhanced connection establishment: a device may say that it has none, or that it has no options.
void ece(Lab& lab) {
  const End end = make_end(lab.a(), {});
  ibv_ece options{};
  expect_errno(ibv_query_ece(end.qp.get(), &options), {0, EOPNOTSUPP}, "ibv_query_ece");
  const bool offered = ibv_query_ece(end.qp.get(), &options) == 0;
  if (offered) expect_equal(options.comp_mask, 0, "comp_mask");
  options.comp_mask = 1;
  expect_errno(ibv_set_ece(end.qp.get(), &options), {EINVAL, EOPNOTSUPP},
               "ibv_set_ece with an unknown comp_mask");
  options = {};
  options.vendor_id = lab.a().attr.vendor_id ^ 1;
  options.options = 1;
  expect_errno(ibv_set_ece(end.qp.get(), &options), {EINVAL, EOPNOTSUPP},
               "ibv_set_ece of another vendor");
}

}  // namespace

std::span<const Row> query_rows() {
  static constexpr Row kRows[] = {
      {"query: the device, extended", device_extended},
      {"query: ports that are there, and that are not", port_numbers},
      {"query: a GID is the same in each query", gids},
      {"query: the GIDs of rocemu's devices on the switch", gids_on_the_switch},
      {"query: a place in the table of GIDs that holds none", no_gid},
      {"query: GIDs, ports and flags that are not there", gids_refused},
      {"query: P_Keys", pkeys},
      {"query: the device's clock", clock},
      {"query: ECE", ece},
  };
  return kRows;
}

}  // namespace rocemu::e2e
