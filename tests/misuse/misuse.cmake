# Programs that do something wrong, and do it right. Without optimisation and with all debug information, so that a
# report's function and line are those of the source; without sanitizers, as nobody's program has them.
set(misuse ${CMAKE_CURRENT_LIST_DIR})
add_library(misuse_pair STATIC ${misuse}/pair/pair.c)
target_include_directories(misuse_pair PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_options(misuse_pair PUBLIC -O0 -g -Wall -Wextra -Wshadow)
target_link_libraries(misuse_pair PUBLIC ibverbs)

file(GLOB misuse_sources CONFIGURE_DEPENDS ${misuse}/memory/*.c ${misuse}/queues/*.c ${misuse}/connections/*.c
     ${misuse}/remote/*.c)
foreach(source ${misuse_sources})
  get_filename_component(row ${source} NAME_WE)
  add_executable(misuse_${row} ${source})
  target_link_libraries(misuse_${row} PRIVATE misuse_pair)
  set_target_properties(misuse_${row} PROPERTIES
    OUTPUT_NAME ${row} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/misuse)
  rocemu_e2e_test(misuse/${row} 60 ${misuse}/run.py --source ${source} $<TARGET_FILE:misuse_${row}>)
endforeach()
add_test(NAME structure/misuse-page COMMAND ${misuse}/document.py --compare
         ${PROJECT_SOURCE_DIR}/docs/check-misuse.md ${PROJECT_SOURCE_DIR}/docs/check.md)
