#include "verbs_shim/provider/context/protection_domain.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/device_context.h"

namespace rocemu::provider {

ibv_pd* alloc_pd(ibv_context* context) {
  auto* domain = new_object<ProtectionDomain>();
  if (domain == nullptr) return nullptr;
  rocemu_handle_message request = {};
  rocemu_handle_message reply;
  if (const int error = to_context(context).call(ROCEMU_OP_ALLOC_PD, request, reply); error != 0) {
    delete_object(domain);
    errno = error;
    return nullptr;
  }
  domain->pd.context = context;
  domain->pd.handle = reply.handle;
  return &domain->pd;
}

int dealloc_pd(ibv_pd* pd) {
  ProtectionDomain& domain = to_domain(pd);
  if (domain.users.load() > 0) return EBUSY;
  if (domain.contained != nullptr) {
    --domain.contained->users;
    if (domain.thread_domain != nullptr) --domain.thread_domain->users;
  } else {
    rocemu_handle_message request = {};
    request.handle = pd->handle;
    rocemu_handle_message reply;
    const int error = to_context(pd->context).call(ROCEMU_OP_DEALLOC_PD, request, reply);
    if (error != 0) return error;
  }
  delete_object(&domain);
  return 0;
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  if (attr->comp_mask != 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto* domain = new_object<ThreadDomain>();
  if (domain == nullptr) return nullptr;
  domain->td.context = context;
  return &domain->td;
}

int dealloc_td(ibv_td* td) {
  auto& domain = *reinterpret_cast<ThreadDomain*>(td);
  if (domain.users.load() > 0) return EBUSY;
  delete_object(&domain);
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  constexpr uint32_t kKnown =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  // IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC, of rdma-core 64 on.
  constexpr uint32_t kUnprotectedMemory = 1u << 2;
  const bool allocators = (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0;
  if (attr->pd == nullptr || (attr->comp_mask & ~(kKnown | kUnprotectedMemory)) != 0 ||
      (allocators && (attr->alloc == nullptr || attr->free == nullptr))) {
    errno = EINVAL;
    return nullptr;
  }
  if ((attr->comp_mask & kUnprotectedMemory) != 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  auto* domain = new_object<ProtectionDomain>();
  if (domain == nullptr) return nullptr;
  domain->pd.context = context;
  domain->pd.handle = attr->pd->handle;
  domain->contained = &to_domain(attr->pd);
  ++domain->contained->users;
  if (attr->td != nullptr) {
    domain->thread_domain = reinterpret_cast<ThreadDomain*>(attr->td);
    ++domain->thread_domain->users;
  }
  if (allocators) {
    domain->allocate = attr->alloc;
    domain->release = attr->free;
  }
  if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) != 0) {
    domain->allocation_context = attr->pd_context;
  }
  return &domain->pd;
}

int QueueMemory::map(ibv_pd* pd, QueueResource resource, int fd, size_t bytes) {
  const int error = map_at_own_place(pd, resource, fd, bytes);
  if (error != 0) return error;
  if (move_to_place(pd, fd)) return 0;
  unmap();
  return ENOMEM;
}

int QueueMemory::map_anywhere(ibv_pd* pd, QueueResource resource, int fd, size_t bytes) {
  const int error = map_at_own_place(pd, resource, fd, bytes);
  if (error == 0) move_to_place(pd, fd);
  return error;
}

int QueueMemory::map_at_own_place(ibv_pd* pd, QueueResource resource, int fd, size_t bytes) {
  const int error = memory_.map(fd, bytes, PROT_READ | PROT_WRITE);
  if (error != 0 || pd == nullptr || to_domain(pd).contained == nullptr) return error;
  domain_ = &to_domain(pd);
  ++domain_->users;
  resource_ = resource;
  return 0;
}

bool QueueMemory::move_to_place(ibv_pd* pd, int fd) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = memory_.bytes;
  if (domain_ == nullptr || domain_->allocate == nullptr || bytes % page != 0) return true;
  void* place = domain_->allocate(pd, domain_->allocation_context, bytes, page,
                                  static_cast<uint64_t>(resource_));
  if (place == IBV_ALLOCATOR_USE_DEFAULT) return true;
  if (place == nullptr) return false;
  place_ = place;
  place_bytes_ = bytes;
  const bool aligned = reinterpret_cast<uintptr_t>(place) % page == 0;
  if (!aligned ||
      mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != place)
    return true;
  memory_.unmap();
  memory_.address = place;
  memory_.bytes = bytes;
  return true;
}

void QueueMemory::unmap() {
  if (memory_.address != nullptr && memory_.address == place_) {
    // The place is the program's: memory of its own is to be there again.
    mmap(place_, place_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
         0);
    memory_ = {};
  }
  memory_.unmap();
  if (place_ != nullptr) {
    domain_->release(&domain_->pd, domain_->allocation_context, place_,
                     static_cast<uint64_t>(resource_));
  }
  place_ = nullptr;
  if (domain_ != nullptr) --domain_->users;
  domain_ = nullptr;
}

}  // namespace rocemu::provider
