// Contexts that others join, and what they import: verbs_shim/abi/import.h.
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "emulator/daemon/control/session.h"
#include "emulator/daemon/rings/shared_memory.h"
#include "verbs_shim/abi/import.h"

namespace rocemu::daemon {

void Session::context_ticket() {
  device::ContextToken token{};
  if (::getrandom(token.data(), sizeof(token), 0) != sizeof(token)) return refuse(EAGAIN);
  on_context(
      [token](EngineContext& context) {
        context.hca().set_token(context.id(), token);
        return *context.hca().token(context.id());
      },
      [this](const device::ContextToken& kept) {
        rocemu_context_ticket ticket{};
        std::memcpy(ticket.magic, ROCEMU_TICKET_MAGIC, sizeof(ticket.magic));
        ticket.abi_version = ROCEMU_ABI_VERSION;
        ticket.device_index = device_index_;
        ticket.device_major = device::kUverbsMajor;
        ticket.device_minor = device::kUverbsFirstMinor + device_index_;
        std::copy(kept.begin(), kept.end(), ticket.token);
        const std::string_view content(reinterpret_cast<const char*>(&ticket), sizeof(ticket));
        const UniqueFd fd = make_text_memfd("rocemu-context", content);
        answer(rocemu_handle_message{}, std::array{fd.get()});
      });
}

void Session::join_context(const rocemu_join_context& message) {
  on_context(
      [token = device::ContextToken{message.token[0], message.token[1]}](EngineContext& context) {
        return context.hca().join_context(context.id(), token);
      },
      [this](int error) { answer_outcome(error, 0); });
}

void Session::import_pd(uint32_t pd) {
  on_context([pd](EngineContext& context) { return context.hca().import_pd(context.id(), pd); },
             [this](const device::Result<device::Handle>& imported) {
               if (!imported) return refuse(imported.error());
               answer_handle(*imported);
             });
}

void Session::import_mr(const rocemu_import_mr& message) {
  on_context([pd = message.pd, mr = message.mr](
                 EngineContext& context) { return context.hca().import_mr(context.id(), pd, mr); },
             [this](const device::Result<device::ImportedMr>& imported) {
               if (!imported) return refuse(imported.error());
               rocemu_import_mr_reply body{};
               body.lkey = imported->lkey.value;
               body.rkey = imported->rkey.value;
               body.length_bytes = imported->length_bytes;
               answer(body);
             });
}

void Session::import_dm(uint32_t dm) {
  on_context([dm](EngineContext& context) { return context.hca().import_dm(context.id(), dm); },
             [this](const device::Result<device::ImportedDm>& imported) {
               if (!imported) return refuse(imported.error());
               rocemu_import_dm_reply body{};
               body.dm = imported->dm;
               body.length_bytes = imported->length_bytes;
               answer(body, std::array{imported->descriptor});
             });
}

}  // namespace rocemu::daemon
