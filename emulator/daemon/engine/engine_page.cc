#include "emulator/daemon/engine/engine_page.h"

namespace rocemu::daemon {

EnginePage::EnginePage()
    : memory_("rocemu-engine", sizeof(rocemu_engine_page), SharedMemory::Others::only_read),
      page_(*reinterpret_cast<rocemu_engine_page*>(memory_.data())),
      fd_(memory_.take_fd()) {
  page_.magic = ROCEMU_ABI_MAGIC;
  page_.abi_version = ROCEMU_ABI_VERSION;
}

}  // namespace rocemu::daemon
