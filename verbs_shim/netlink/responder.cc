#include "verbs_shim/netlink/responder.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

namespace rocemu::netlink {
namespace {

// Behind a name of another process: no text is longer than its field.
template <size_t kBytes>
const char* text(char (&field)[kBytes]) {
  field[kBytes - 1] = '\0';
  return field;
}

}  // namespace

int Responder::take(const void* datagram, size_t length_bytes) {
  if (dump_.active || acknowledgement_due_ || input_at_ < input_bytes_) return EBUSY;
  if (length_bytes > sizeof(input_)) return EMSGSIZE;
  memcpy(input_, datagram, length_bytes);
  input_bytes_ = length_bytes;
  input_at_ = 0;
  return 0;
}

size_t Responder::answer(char (&datagram)[kDatagramBytes]) {
  MessageWriter writer(datagram, sizeof(datagram));
  while (writer.length_bytes() == 0) {
    if (dump_.active) {
      const int error = dump(writer);
      if (dump_.active && error == 0) continue;
      dump_.active = false;
      writer.cut(0);
      writer.begin(NLMSG_DONE, NLM_F_MULTI, request_.header.nlmsg_seq, port_);
      const int status = -error;
      writer.append(&status, sizeof(status));
      writer.end();
    } else if (acknowledgement_due_) {
      acknowledgement_due_ = false;
      write_acknowledgement(writer);
    } else if (next_request()) {
      error_ = run(writer);
      if (error_ != 0) writer.cut(0);
      acknowledgement_due_ =
          error_ != 0 || (!dump_.active && (request_.header.nlmsg_flags & NLM_F_ACK) != 0);
    } else {
      return 0;
    }
  }
  return writer.length_bytes();
}

// Goes to the next message of the datagram.
bool Responder::next_request() {
  why_ = nullptr;
  error_ = 0;
  if (input_at_ >= input_bytes_) return false;
  const size_t left = input_bytes_ - input_at_;
  const size_t bytes = message_bytes(input_ + input_at_, left);
  if (bytes == 0) {  // one that is cut short ends the datagram, run() refuses it
    request_ = Request{};
    memcpy(&request_.header, input_ + input_at_,
           left < sizeof(request_.header) ? left : sizeof(request_.header));
    request_.header.nlmsg_len = 0;
    input_at_ = input_bytes_;
    return true;
  }
  error_ = parse_request(input_ + input_at_, request_);
  input_at_ += bytes;
  return true;
}

int Responder::refuse(int error, const char* why) {
  why_ = why;
  return error;
}

// Answers a request, or begins a dump: 0 or the errno that it is answered with.
int Responder::run(MessageWriter& writer) {
  if (request_.header.nlmsg_len == 0) return EINVAL;
  if (error_ != 0) return error_;
  const Objects* const objects = objects_of(request_.command);
  if (request_.dump) return start_dump(objects);
  if (objects != nullptr) return get_object(writer, *objects);
  switch (request_.command) {
    case RDMA_NLDEV_CMD_GET:
      return get_device(writer);
    case RDMA_NLDEV_CMD_PORT_GET:
      return get_port(writer);
    case RDMA_NLDEV_CMD_RES_GET:
      return get_summary(writer);
    case RDMA_NLDEV_CMD_GET_CHARDEV:
      return get_chardev(writer);
    case RDMA_NLDEV_CMD_SYS_GET:
      return get_system(writer);
    case RDMA_NLDEV_CMD_STAT_GET:
      return get_statistic(writer);
    case RDMA_NLDEV_CMD_SET:
    case RDMA_NLDEV_CMD_NEWLINK:
    case RDMA_NLDEV_CMD_DELLINK:
    case RDMA_NLDEV_CMD_SYS_SET:
      return refuse(EOPNOTSUPP, "rocemu: devices are as `rocemu up` made them");
    case RDMA_NLDEV_CMD_STAT_SET:
    case RDMA_NLDEV_CMD_STAT_DEL:
      return refuse(EOPNOTSUPP, "rocemu: each QP always has counters of its own");
    default:
      return EOPNOTSUPP;
  }
}

// Starts a dump of the devices, or of one device's port, `objects` or counters: 0 or an errno.
int Responder::start_dump(const Objects* objects) {
  const uint16_t command = request_.command;
  const bool of_all = command == RDMA_NLDEV_CMD_GET || command == RDMA_NLDEV_CMD_RES_GET;
  const bool of_statistics = command == RDMA_NLDEV_CMD_STAT_GET;
  if (!of_all && !of_statistics && objects == nullptr && command != RDMA_NLDEV_CMD_PORT_GET)
    return EINVAL;
  if (of_all) {
    dump_ = Dump{};
  } else {
    if (const int error = need_device()) return error;
    if (of_statistics && !request_.statistic.given) return EINVAL;
    if (of_statistics && request_.statistic.value != RDMA_NLDEV_ATTR_RES_QP) return EOPNOTSUPP;
    start_listing(objects == nullptr ? uint32_t{ROCEMU_RESOURCE_QP} : objects->kind);
  }
  dump_.active = true;
  return 0;
}

// struct nlmsgerr; of the request its header alone.
void Responder::write_acknowledgement(MessageWriter& writer) {
  const bool tells_why = extended_ack_ && error_ != 0 && why_ != nullptr;
  const auto flags = static_cast<uint16_t>(NLM_F_CAPPED | (tells_why ? NLM_F_ACK_TLVS : 0));
  writer.begin(NLMSG_ERROR, flags, request_.header.nlmsg_seq, port_);
  nlmsgerr acknowledgement = {};
  acknowledgement.error = -error_;
  acknowledgement.msg = request_.header;
  writer.append(&acknowledgement, sizeof(acknowledgement));
  if (tells_why) writer.put_text(NLMSGERR_ATTR_MSG, why_);
  writer.end();
}

void Responder::begin(MessageWriter& writer, bool part_of_dump) {
  writer.begin(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, request_.command), part_of_dump ? NLM_F_MULTI : 0,
               request_.header.nlmsg_seq, port_);
}

void Responder::put_handle(MessageWriter& writer, uint32_t device) {
  writer.put_u32(RDMA_NLDEV_ATTR_DEV_INDEX, device);
  writer.put_text(RDMA_NLDEV_ATTR_DEV_NAME, text(description_.name));
}

// Reads the description of the device that the request names.
int Responder::need_device() {
  if (!request_.device.given) return EINVAL;
  return model_.describe(model_.nic, request_.device.value, description_);
}

// Devices have one port, the first.
bool Responder::need_port() { return request_.port.given && request_.port.value == 1; }

void Responder::put_device(MessageWriter& writer, uint32_t device) {
  put_handle(writer, device);
  writer.put_u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  writer.put_u64(RDMA_NLDEV_ATTR_CAP_FLAGS, description_.device_cap_flags);
  writer.put_text(RDMA_NLDEV_ATTR_FW_VERSION, text(description_.fw_ver));
  writer.put_u64(RDMA_NLDEV_ATTR_NODE_GUID, description_.node_guid);
  writer.put_u64(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, description_.node_guid);
  writer.put_u8(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, RDMA_NODE_IB_CA);
  writer.put_text(RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
}

// Without what InfiniBand's ports have alone: LIDs, a subnet prefix.
void Responder::put_port(MessageWriter& writer, uint32_t device) {
  put_handle(writer, device);
  writer.put_u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  writer.put_u8(RDMA_NLDEV_ATTR_PORT_STATE, static_cast<uint8_t>(description_.port_state));
  writer.put_u8(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, static_cast<uint8_t>(description_.phys_state));
  if (description_.netdev_index == 0) return;
  writer.put_u32(RDMA_NLDEV_ATTR_NDEV_INDEX, description_.netdev_index);
  writer.put_text(RDMA_NLDEV_ATTR_NDEV_NAME, text(description_.netdev_name));
}

void Responder::put_summary(MessageWriter& writer, uint32_t device) {
  put_handle(writer, device);
  const size_t table = writer.open(RDMA_NLDEV_ATTR_RES_SUMMARY);
  for (const Objects& objects : kObjects) {
    const size_t entry = writer.open(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
    writer.put_text(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, objects.name);
    writer.put_u64(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, description_.counts[objects.kind]);
    writer.close(entry);
  }
  writer.close(table);
}

int Responder::get_device(MessageWriter& writer) {
  if (const int error = need_device()) return error;
  begin(writer, false);
  put_device(writer, request_.device.value);
  writer.end();
  return 0;
}

int Responder::get_port(MessageWriter& writer) {
  if (const int error = need_device()) return error;
  if (!need_port()) return EINVAL;
  begin(writer, false);
  put_port(writer, request_.device.value);
  writer.end();
  return 0;
}

int Responder::get_summary(MessageWriter& writer) {
  if (const int error = need_device()) return error;
  begin(writer, false);
  put_summary(writer, request_.device.value);
  writer.end();
  return 0;
}

// libibverbs asks so for the node of a device. Its driver is not named, so that it is found by the
// device's modalias.
int Responder::get_chardev(MessageWriter& writer) {
  constexpr uint64_t kUverbsAbi = 1;  // what sysfs has, and what rocemu answers there
  constexpr uint64_t kMinorBits = 0xff;
  if (strcmp(request_.chardev_type, "uverbs") != 0) return ENOENT;
  if (const int error = need_device()) return error;
  const uint64_t minor = description_.uverbs_minor;
  const uint64_t number = (minor & kMinorBits) | uint64_t{description_.uverbs_major} << 8 |
                          (minor & ~kMinorBits) << 12;  // the kernel's huge_encode_dev()
  char name[] = "uverbs\0\0\0\0\0\0\0\0\0\0\0";
  char digits[12];
  size_t count = 0;
  for (uint32_t rest = request_.device.value; count == 0 || rest > 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  for (size_t i = 0; i < count; ++i) name[sizeof("uverbs") - 1 + i] = digits[count - 1 - i];
  begin(writer, false);
  writer.put_u64(RDMA_NLDEV_ATTR_CHARDEV, number);
  writer.put_u64(RDMA_NLDEV_ATTR_CHARDEV_ABI, kUverbsAbi);
  writer.put_text(RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
  writer.end();
  return 0;
}

// Of what a fork leaves to the child nothing is said, so that libibverbs goes on to protect
// registered memory from it (ibv_fork_init(3)).
int Responder::get_system(MessageWriter& writer) {
  constexpr uint8_t kSharedByNamespaces = 1;
  begin(writer, false);
  writer.put_u8(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, kSharedByNamespaces);
  writer.end();
  return 0;
}

int Responder::get_object(MessageWriter& writer, const Objects& objects) {
  if (const int error = need_device()) return error;
  if (!request_.object.given) return EINVAL;
  start_listing(objects.kind);
  dump_.device = request_.device.value;
  while (!dump_.page_read || !dump_.last_page) {
    if (const int error = read_page()) return error;
    for (uint32_t i = 0; i < page_.count; ++i) {
      if (page_.resources[i].number != request_.object.value) continue;
      begin(writer, false);
      put_handle(writer, request_.device.value);
      put_object(writer, objects.kind, page_.resources[i]);
      writer.end();
      return 0;
    }
  }
  return ENOENT;
}

// Those of the port, or how the counters of QPs are bound to them: each has its own, always, which
// is what the kernel calls manual.
int Responder::get_statistic(MessageWriter& writer) {
  if (const int error = need_device()) return error;
  if (!need_port()) return EINVAL;
  const bool of_qps =
      request_.statistic.given && request_.statistic.value == RDMA_NLDEV_ATTR_RES_QP;
  if (request_.statistic.given && (!of_qps || !request_.stat_mode.given)) return EOPNOTSUPP;
  if (!of_qps) {
    rocemu_named_counters_of asked = {};
    asked.device_index = request_.device.value;
    if (const int error = model_.counters(model_.nic, asked, counters_)) return error;
  }
  begin(writer, false);
  put_handle(writer, request_.device.value);
  writer.put_u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  if (of_qps) {
    writer.put_u32(RDMA_NLDEV_ATTR_STAT_MODE, RDMA_COUNTER_MODE_MANUAL);
  } else {
    put_counters(writer);
  }
  writer.end();
  return 0;
}

// Those that fit the datagram: there is room for twice as many as there are.
void Responder::put_counters(MessageWriter& writer) {
  const size_t table = writer.open(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
  for (uint32_t i = 0; i < counters_.count && i < ROCEMU_NAMED_COUNTERS_MAX; ++i) {
    const size_t before = writer.length_bytes();
    const size_t entry = writer.open(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
    writer.put_text(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, text(counters_.counters[i].name));
    writer.put_u64(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, counters_.counters[i].value);
    writer.close(entry);
    if (!writer.fits()) {
      writer.cut(before);
      break;
    }
  }
  writer.close(table);
}

void Responder::start_listing(uint32_t kind) {
  dump_ = Dump{};
  dump_.device = request_.device.value;
  dump_.from.kind = kind;
}

// Reads the next page. A NIC that says the same place again would never come to an end: EIO.
int Responder::read_page() {
  dump_.from.device_index = dump_.device;
  if (const int error = model_.list(model_.nic, dump_.from, page_)) return error;
  if (page_.count > ROCEMU_RESOURCES_MAX) return EIO;
  const bool further =
      page_.next_context > dump_.from.context ||
      (page_.next_context == dump_.from.context && page_.next_place > dump_.from.place);
  if (page_.more != 0 && !further) return EIO;
  dump_.page_read = true;
  dump_.next_in_page = 0;
  dump_.last_page = page_.more == 0;
  dump_.from.context = page_.next_context;
  dump_.from.place = page_.next_place;
  return 0;
}

// Writes the next message of a dump, or nothing where a page had nothing. Ends the dump, or answers
// the errno that it ends with.
int Responder::dump(MessageWriter& writer) {
  if (const Objects* const objects = objects_of(request_.command))
    return dump_objects(writer, *objects);
  if (request_.command == RDMA_NLDEV_CMD_STAT_GET) return dump_statistics(writer);
  return dump_devices(writer);
}

// Devices, ports (of the one device that was named) or summaries, one a message.
int Responder::dump_devices(MessageWriter& writer) {
  const bool ports = request_.command == RDMA_NLDEV_CMD_PORT_GET;
  const int error = model_.describe(model_.nic, dump_.device, description_);
  const bool over = error == ENODEV || (ports && dump_.device != request_.device.value);
  if (over || error != 0) {
    dump_.active = false;
    return over ? 0 : error;
  }
  begin(writer, true);
  if (ports) {
    put_port(writer, dump_.device);
  } else if (request_.command == RDMA_NLDEV_CMD_GET) {
    put_device(writer, dump_.device);
  } else {
    put_summary(writer, dump_.device);
  }
  writer.end();
  ++dump_.device;
  return 0;
}

bool Responder::is_wanted(const rocemu_resource& object, bool on_ports) const {
  return !on_ports || !request_.port.given || request_.port.value == 0 ||
         object.port == request_.port.value;
}

int Responder::dump_objects(MessageWriter& writer, const Objects& objects) {
  if (!dump_.page_read || dump_.next_in_page >= page_.count) {
    if (dump_.page_read && dump_.last_page) {
      dump_.active = false;
      return 0;
    }
    if (const int error = read_page()) return error;
  }
  begin(writer, true);
  put_handle(writer, dump_.device);
  const size_t table = writer.open(objects.table_attribute);
  bool any = false;
  for (; dump_.next_in_page < page_.count; ++dump_.next_in_page) {
    const rocemu_resource& object = page_.resources[dump_.next_in_page];
    if (!is_wanted(object, objects.on_ports)) continue;
    const size_t before = writer.length_bytes();
    const size_t entry = writer.open(objects.entry_attribute);
    put_object(writer, objects.kind, object);
    writer.close(entry);
    if (!writer.fits()) {
      writer.cut(before);
      break;
    }
    any = true;
  }
  writer.close(table);
  writer.end();
  if (!any) writer.cut(0);
  return 0;
}

// Puts a counter as the kernel has them, with the QPs that are bound to it: here this one. False
// when the QP has gone.
bool Responder::put_statistic(MessageWriter& writer, const rocemu_resource& qp) {
  rocemu_named_counters_of asked = {};
  asked.device_index = dump_.device;
  asked.qp_num = qp.number;
  if (model_.counters(model_.nic, asked, counters_) != 0) return false;
  begin(writer, true);
  put_handle(writer, dump_.device);
  const size_t table = writer.open(RDMA_NLDEV_ATTR_STAT_COUNTER);
  const size_t entry = writer.open(RDMA_NLDEV_ATTR_STAT_COUNTER_ENTRY);
  writer.put_u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  writer.put_u32(RDMA_NLDEV_ATTR_STAT_COUNTER_ID, qp.number);
  writer.put_u8(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<uint8_t>(qp.type));
  put_process(writer, qp);
  const size_t qps = writer.open(RDMA_NLDEV_ATTR_RES_QP);
  const size_t bound = writer.open(RDMA_NLDEV_ATTR_RES_QP_ENTRY);
  writer.put_u32(RDMA_NLDEV_ATTR_RES_LQPN, qp.number);
  writer.close(bound);
  writer.close(qps);
  put_counters(writer);
  writer.close(entry);
  writer.close(table);
  writer.end();
  return true;
}

int Responder::dump_statistics(MessageWriter& writer) {
  if (!dump_.page_read || dump_.next_in_page >= page_.count) {
    if (dump_.page_read && dump_.last_page) {
      dump_.active = false;
      return 0;
    }
    return read_page();
  }
  const rocemu_resource& qp = page_.resources[dump_.next_in_page++];
  if (is_wanted(qp, true)) put_statistic(writer, qp);
  return 0;
}

}  // namespace rocemu::netlink
