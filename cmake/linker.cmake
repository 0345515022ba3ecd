# mold, where the machine has it and the compiler knows it: hundreds of programs and tests are linked, each in a
# quarter of the time. What is released is linked by the compiler's own (release.cmake), and so is what the user names a
# linker for.

option(ROCEMU_MOLD "Link with mold where it is installed" ON)
if(ROCEMU_MOLD AND NOT ROCEMU_RELEASE_SYSROOT AND NOT CMAKE_CROSSCOMPILING
   AND NOT "${CMAKE_EXE_LINKER_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS}" MATCHES "-fuse-ld=")
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS -fuse-ld=mold)
  check_cxx_source_compiles("int main() { return 0; }" ROCEMU_MOLD_LINKS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(ROCEMU_MOLD_LINKS)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
