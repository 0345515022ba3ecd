# A compiler cache, where the machine has one: a second build of the same sources takes seconds.
# ROCEMU_CCACHE=OFF compiles all the same; a launcher that the user names comes first.

option(ROCEMU_CCACHE "Compile through ccache where it is installed" ON)
find_program(ROCEMU_CCACHE_PROGRAM ccache)
mark_as_advanced(ROCEMU_CCACHE_PROGRAM)
if(ROCEMU_CCACHE AND ROCEMU_CCACHE_PROGRAM)
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${ROCEMU_CCACHE_PROGRAM})
    endif()
  endforeach()
endif()
