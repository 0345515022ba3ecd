// Handlers for connections beside contexts: the NIC's state and links, and connection management.
#include <array>
#include <cerrno>

#include "emulator/daemon/control/handlers.h"
#include "emulator/daemon/rings/event_writer.h"
#include "emulator/daemon/rings/shared_memory.h"

namespace rocemu::daemon::handlers {

namespace {

void show(SessionCore& session, const char* name,
          NicAdministration::Report (NicAdministration::*take)()) {
  session.on_engine([&nic = session.host().administration, take] { return (nic.*take)(); },
                    [&session, name](const NicAdministration::Report& report) {
                      const UniqueFd text = make_text_memfd(name, report());
                      session.answer_empty(std::array{text.get()});
                    });
}

}  // namespace

void status(SessionCore& session) {
  show(session, "rocemu-status", &NicAdministration::take_status);
}

void metrics(SessionCore& session) {
  show(session, "rocemu-metrics", &NicAdministration::take_metrics);
}

void shut_down(SessionCore& session) {
  session.shut_down_after_reply();
  session.answer_empty();
}

void link_set(SessionCore& session, const rocemu_link_set& message) {
  auto change = session.host().administration.set_links(session.peer().pid(), message.assignment);
  if (!change) return session.refuse(change.error());
  session.on_engine(
      [change = std::move(*change)] {
        change();
        return true;
      },
      [&session](bool) { session.answer_empty(); });
}

void link_show(SessionCore& session) {
  if (!session.host().administration.has_links()) return session.refuse(EOPNOTSUPP);
  show(session, "rocemu-links", &NicAdministration::take_links);
}

void fault_add(SessionCore& session, const rocemu_fault_add& message) {
  const auto added = session.host().administration.add_faults(session.peer().pid(), message.text);
  if (!added) return session.refuse(added.error());
  rocemu_fault_reply body{};
  body.first_id = added->first_id;
  body.count = added->count;
  session.answer(body);
}

void fault_clear(SessionCore& session, uint32_t id) {
  const int error = session.host().administration.clear_fault(id);
  error == 0 ? session.answer_handle(id) : session.refuse(error);
}

void fault_list(SessionCore& session) {
  const auto faults = session.host().administration.faults();
  if (!faults) return session.refuse(faults.error());
  const UniqueFd text = make_text_memfd("rocemu-faults", *faults);
  session.answer_empty(std::array{text.get()});
}

void trace_start(SessionCore& session, const rocemu_trace_start& message,
                 ReceivedMessage& received) {
  const int error = session.host().administration.start_trace(
      session.peer().pid(), std::move(received.fds[0]), message.filter, message.max_bytes);
  error == 0 ? session.answer_empty() : session.refuse(error);
}

void trace_stop(SessionCore& session) {
  using End = NicAdministration::TraceEnd;
  session.on_later<End>([&nic = session.host().administration](
                            auto ended) { return nic.stop_trace(std::move(ended)); },
                        [&session](const End& end) {
                          rocemu_trace_reply body{};
                          body.written_bytes = end.written_bytes;
                          body.lost_records = end.lost_records;
                          body.write_error = static_cast<uint32_t>(end.write_error);
                          session.answer(body);
                        });
}

void cm_open_channel(SessionCore& session, ReceivedMessage& received) {
  auto pipe = session.open_pipe(received.fds[0]);
  if (!pipe) return session.refuse(pipe.error());
  const auto channel = session.cm().open_channel(std::move(*pipe));
  if (!channel) return session.refuse(channel.error());
  rocemu_cm_channel body{};
  body.channel = *channel;
  session.answer(body);
}

void cm_close_channel(SessionCore& session, const rocemu_cm_channel& message) {
  const int error = session.cm().close_channel(message.channel);
  error == 0 ? session.answer_empty() : session.refuse(error);
  session.cm().flush();
}

void cm_command(SessionCore& session, const rocemu_cm_command& message) {
  if (message.in_bytes > sizeof(message.in) || message.option_bytes > sizeof(message.option))
    return session.peer().close("a command longer than its message");
  rocemu_cm_reply body{};
  const int error = session.cm().command(message, body);
  error == 0 ? session.answer(body) : session.refuse(error);
  session.cm().flush();
}

void cm_next_event(SessionCore& session, const rocemu_cm_channel& message) {
  rocemu_cm_event body{};
  const int error = session.cm().next_event(message.channel, body);
  error == 0 ? session.answer(body) : session.refuse(error);
}

}  // namespace rocemu::daemon::handlers
