// Included in front of every source of what is loaded into programs: lets it refer to the oldest
// version of those functions of glibc that have had a new one since, though nothing but the library
// that they are in has changed (libdl and libpthread went into libc in 2.34; strtol and its like
// read binary numbers from 2.38 on). So one build runs with every glibc from 2.27 on. Functions
// that have no old version are in c_library.h.
#pragma once

#include <features.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define ROCEMU_FIRST_GLIBC "2.2.5"
#define ROCEMU_GLIBC_2_3_3 "2.3.3"
#define ROCEMU_GLIBC_2_12 "2.12"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define ROCEMU_FIRST_GLIBC "2.17"
#define ROCEMU_GLIBC_2_3_3 "2.17"
#define ROCEMU_GLIBC_2_12 "2.17"
#endif

#if defined(ROCEMU_FIRST_GLIBC)
#define ROCEMU_OLD(name, old, version) asm(".symver " #name "," #old "@GLIBC_" version)
#define ROCEMU_FIRST(name) ROCEMU_OLD(name, name, ROCEMU_FIRST_GLIBC)
ROCEMU_FIRST(dladdr);
ROCEMU_FIRST(dlclose);
ROCEMU_FIRST(dlerror);
ROCEMU_FIRST(dlopen);
ROCEMU_FIRST(dlsym);
ROCEMU_FIRST(dlvsym);
ROCEMU_FIRST(pthread_mutex_trylock);
ROCEMU_FIRST(pthread_mutexattr_destroy);
ROCEMU_FIRST(pthread_mutexattr_init);
ROCEMU_FIRST(pthread_mutexattr_setpshared);
ROCEMU_FIRST(pthread_rwlock_init);
ROCEMU_FIRST(pthread_rwlock_rdlock);
ROCEMU_FIRST(pthread_rwlock_unlock);
ROCEMU_FIRST(pthread_rwlock_wrlock);
ROCEMU_FIRST(pthread_sigmask);
ROCEMU_OLD(__pthread_register_cancel, __pthread_register_cancel, ROCEMU_GLIBC_2_3_3);
ROCEMU_OLD(__pthread_unregister_cancel, __pthread_unregister_cancel, ROCEMU_GLIBC_2_3_3);
ROCEMU_OLD(__pthread_unwind_next, __pthread_unwind_next, ROCEMU_GLIBC_2_3_3);
ROCEMU_OLD(pthread_mutex_consistent, pthread_mutex_consistent, ROCEMU_GLIBC_2_12);
ROCEMU_OLD(pthread_mutexattr_setrobust, pthread_mutexattr_setrobust, ROCEMU_GLIBC_2_12);
ROCEMU_OLD(__isoc23_strtol, strtol, ROCEMU_FIRST_GLIBC);
ROCEMU_OLD(__isoc23_strtoul, strtoul, ROCEMU_FIRST_GLIBC);
ROCEMU_OLD(__isoc23_strtoull, strtoull, ROCEMU_FIRST_GLIBC);
#if defined(__x86_64__)
ROCEMU_OLD(__isoc23_sscanf, __isoc99_sscanf, "2.7");
#else
ROCEMU_OLD(__isoc23_sscanf, __isoc99_sscanf, "2.17");
#endif
#undef ROCEMU_FIRST
#undef ROCEMU_OLD
#undef ROCEMU_GLIBC_2_3_3
#undef ROCEMU_GLIBC_2_12
#undef ROCEMU_FIRST_GLIBC
#endif
