// Responder answers requests to the kernel's RDMA core (NETLINK_RDMA, its client RDMA_NL_NLDEV) in
// the place of the kernel, as drivers/infiniband/core/nldev.c does. Sans-IO: datagrams go in and
// are taken out.
//
// A request of one object is answered by a message, and by an acknowledgement where it asks for
// one or fails. A dump is answered by as many messages as it takes, each a datagram that fits a
// page, and NLMSG_DONE; it goes on as datagrams are taken, so that nothing is queued here, and the
// NIC is asked for a page of it at a time. What would change devices is refused (EOPNOTSUPP).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "verbs_shim/netlink/message_writer.h"
#include "verbs_shim/netlink/model.h"
#include "verbs_shim/netlink/objects.h"
#include "verbs_shim/netlink/request.h"

namespace rocemu::netlink {

// libmnl's programs, and the kernel where it can, stay below a page.
inline constexpr size_t kDatagramBytes = 4096;

class Responder {
 public:
  explicit Responder(const Model& model) : model_(model) {}

  // The program's, which its answers carry (nlmsg_pid).
  void set_port(uint32_t port) { port_ = port; }
  void set_extended_ack(bool on) { extended_ack_ = on; }
  // Forgets what it was asked.
  void start_anew() {
    dump_ = Dump{};
    acknowledgement_due_ = extended_ack_ = false;
    input_at_ = input_bytes_ = 0;
  }

  // Takes a datagram of requests: 0, EBUSY while answers to the last one are to be taken, or
  // EMSGSIZE.
  int take(const void* datagram, size_t length_bytes);
  // Writes the next datagram of the answer: its length, or 0 when that was all.
  size_t answer(char (&datagram)[kDatagramBytes]);

 private:
  // Dump says where a dump has come to.
  struct Dump {
    bool active = false;
    uint32_t device = 0;
    bool page_read = false;
    uint32_t next_in_page = 0;
    bool last_page = false;
    rocemu_list_resources from = {};
  };

  bool next_request();
  int run(MessageWriter& writer);
  int start_dump(const Objects* objects);
  int refuse(int error, const char* why);
  void write_acknowledgement(MessageWriter& writer);

  void begin(MessageWriter& writer, bool part_of_dump);
  void put_handle(MessageWriter& writer, uint32_t device);
  int need_device();
  bool need_port();

  int get_device(MessageWriter& writer);
  int get_port(MessageWriter& writer);
  int get_summary(MessageWriter& writer);
  int get_chardev(MessageWriter& writer);
  int get_system(MessageWriter& writer);
  int get_object(MessageWriter& writer, const Objects& objects);
  int get_statistic(MessageWriter& writer);

  void put_device(MessageWriter& writer, uint32_t device);
  void put_port(MessageWriter& writer, uint32_t device);
  void put_summary(MessageWriter& writer, uint32_t device);
  void put_counters(MessageWriter& writer);

  void start_listing(uint32_t kind);
  int read_page();
  int dump(MessageWriter& writer);
  int dump_devices(MessageWriter& writer);
  int dump_objects(MessageWriter& writer, const Objects& objects);
  int dump_statistics(MessageWriter& writer);
  bool put_statistic(MessageWriter& writer, const rocemu_resource& qp);
  bool is_wanted(const rocemu_resource& object, bool on_ports) const;

  const Model model_;
  uint32_t port_ = 0;
  bool extended_ack_ = false;

  char input_[kDatagramBytes];
  size_t input_bytes_ = 0;
  size_t input_at_ = 0;

  Request request_;
  Dump dump_;
  bool acknowledgement_due_ = false;
  int error_ = 0;
  const char* why_ = nullptr;  // told with the error, where the program wants to hear it

  rocemu_device_description description_;
  rocemu_resources page_;
  rocemu_named_counters counters_;
};

}  // namespace rocemu::netlink
