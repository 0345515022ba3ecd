# A build that moves: linked with an older glibc, whose root is ROCEMU_RELEASE_SYSROOT, and with DPDK, ncurses, spdlog, fmt
# and the C++ runtime in the executables. ISA-L and libmnl, of which Debian has no archives, lie beside the provider.
# scripts/release.sh makes it. Without the variable nothing here changes anything.
set(ROCEMU_RELEASE_SYSROOT "" CACHE PATH "Root with the glibc to link with, for scripts/release.sh; empty: this machine's")

# rocemu_movable(TARGET): an executable or module with a C++ runtime of its own.
function(rocemu_movable target)
endfunction()

if(ROCEMU_RELEASE_SYSROOT)
  set(glibc ${ROCEMU_RELEASE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
  # Whose checkout it was compiled in is not in the files, nor in what their build IDs are made of.
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  add_link_options(--sysroot=${ROCEMU_RELEASE_SYSROOT} -B${glibc}/ -Wl,--allow-shlib-undefined -Wl,--build-id=sha1)
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/rocemu")
  set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
  add_library(rocemu_newer_glibc OBJECT ${PROJECT_SOURCE_DIR}/packaging/release/newer_glibc.cc)
  function(rocemu_movable target)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:rocemu_newer_glibc>)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed)
    target_link_libraries(${target} PRIVATE -lpthread -ldl -lrt -lm)
  endfunction()
endif()

# What logs and formats, compiled in where the release is made.
if(ROCEMU_RELEASE_SYSROOT)
  set(ROCEMU_SPDLOG spdlog::spdlog_header_only)
  set(ROCEMU_FMT fmt::fmt-header-only)
else()
  set(ROCEMU_SPDLOG spdlog::spdlog)
  set(ROCEMU_FMT fmt::fmt)
endif()
