# A file of this project takes longer to read its headers than to compile what is its own. So the files of a folder
# that no message passes through are compiled as one; what is hot is compiled file by file, as ever. docs/building.md.

option(ROCEMU_TOGETHER "Compile files of a folder as one, where they are not hot" ON)

# rocemu_compile_together(TARGET [ONLY folder...] [APART file...])
# Those of TARGET's sources that are in the same folder, all or those of ONLY, but for those APART, whose own names are
# taken by others of their folder.
function(rocemu_compile_together target)
  if(NOT ROCEMU_TOGETHER)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "ONLY;APART" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^/$][^$]*\\.cc$")
  if(arg_APART)
    list(REMOVE_ITEM sources ${arg_APART})
  endif()
  foreach(source ${sources})
    get_filename_component(folder "./${source}" DIRECTORY)
    string(REGEX REPLACE "^\\./" "" folder "${folder}")
    if(NOT arg_ONLY OR folder IN_LIST arg_ONLY)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${folder}")
    endif()
  endforeach()
endfunction()
