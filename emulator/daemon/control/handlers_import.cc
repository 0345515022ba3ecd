// Contexts that others join, and what they import: verbs_shim/abi/import.h.
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "emulator/daemon/control/handlers.h"
#include "emulator/daemon/rings/shared_memory.h"

namespace rocemu::daemon::handlers {

void context_ticket(SessionCore& session, uint32_t) {
  device::ContextToken token{};
  if (::getrandom(token.data(), sizeof(token), 0) != sizeof(token)) return session.refuse(EAGAIN);
  session.on_context(
      [token](EngineContext& context) -> device::Result<device::ContextToken> {
        context.hca().set_token(context.id(), token);
        return *context.hca().token(context.id());
      },
      [&session](const device::ContextToken& kept) {
        rocemu_context_ticket ticket{};
        std::memcpy(ticket.magic, ROCEMU_TICKET_MAGIC, sizeof(ticket.magic));
        ticket.abi_version = ROCEMU_ABI_VERSION;
        ticket.device_index = session.device_index();
        ticket.device_major = device::kUverbsMajor;
        ticket.device_minor = device::kUverbsFirstMinor + session.device_index();
        std::copy(kept.begin(), kept.end(), ticket.token);
        const std::string_view content(reinterpret_cast<const char*>(&ticket), sizeof(ticket));
        const UniqueFd fd = make_text_memfd("rocemu-context", content);
        session.answer(rocemu_handle_message{}, std::array{fd.get()});
      });
}

void join_context(SessionCore& session, const rocemu_join_context& message) {
  session.on_context(
      [token = device::ContextToken{message.token[0], message.token[1]}](EngineContext& context) {
        return context.hca().join_context(context.id(), token);
      },
      [&session] { session.answer_handle(0); });
}

void import_pd(SessionCore& session, uint32_t pd) {
  session.on_context(
      [pd](EngineContext& context) { return context.hca().import_pd(context.id(), pd); },
      [&session](device::Handle imported) { session.answer_handle(imported); });
}

void import_mr(SessionCore& session, const rocemu_import_mr& message) {
  session.on_context(
      [pd = message.pd, mr = message.mr](EngineContext& context) {
        return context.hca().import_mr(context.id(), pd, mr);
      },
      [&session](const device::ImportedMr& imported) {
        rocemu_import_mr_reply body{};
        body.lkey = imported.lkey.value;
        body.rkey = imported.rkey.value;
        body.length_bytes = imported.length_bytes;
        session.answer(body);
      });
}

void import_dm(SessionCore& session, uint32_t dm) {
  session.on_context(
      [dm](EngineContext& context) { return context.hca().import_dm(context.id(), dm); },
      [&session](const device::ImportedDm& imported) {
        rocemu_import_dm_reply body{};
        body.dm = imported.dm;
        body.length_bytes = imported.length_bytes;
        session.answer(body, std::array{imported.descriptor});
      });
}

}  // namespace rocemu::daemon::handlers
