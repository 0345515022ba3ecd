# Toolchain file: arm64 from another architecture, with Debian's cross compiler and the libraries of a root that
# scripts/arm64.sh makes. What it built is run by qemu-user, in whose eyes that root is the file system's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

set(arm64_cache $ENV{HOME}/.cache/rocemu-arm64)
if(DEFINED ENV{ROCEMU_ARM64_CACHE})
  set(arm64_cache $ENV{ROCEMU_ARM64_CACHE})
endif()
set(ROCEMU_ARM64_ROOT ${arm64_cache}/root CACHE PATH "Debian's libraries and headers for arm64")
if(NOT EXISTS ${ROCEMU_ARM64_ROOT}/usr/include)
  message(FATAL_ERROR "${ROCEMU_ARM64_ROOT} has no headers for arm64; scripts/arm64.sh makes such a root")
endif()
# CMake's trial projects read this file, too.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ROCEMU_ARM64_ROOT)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT ${ROCEMU_ARM64_ROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${ROCEMU_ARM64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${ROCEMU_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${ROCEMU_ARM64_ROOT}/usr/share/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${ROCEMU_ARM64_ROOT})
