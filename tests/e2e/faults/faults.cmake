# Faults on request: what each does to a program of our own, and how programs end that nobody here wrote.
add_executable(reconnect faults/reconnect.cc)
target_link_libraries(reconnect PRIVATE e2e_verbs rdmacm)
set_target_properties(reconnect PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

foreach(prefix "" user/)
  set(as)
  set(option)
  if(prefix)
    set(as ${as_user})
    set(option --user)
  endif()
  rocemu_e2e_test(${prefix}faults 120 ${as} ${rocemu} run -- $<TARGET_FILE:faults> -d rocemu0 -D rocemu1 -g 1)
  set_tests_properties(e2e/${prefix}faults PROPERTIES FAIL_REGULAR_EXPRESSION "SKIP")
  rocemu_e2e_test(${prefix}fatal_device 60 ${as} ${rocemu} run -- $<TARGET_FILE:fatal_device> rocemu0 1)
endforeach()
# What port_events sees of a network interface it sees of a port that a fault takes down.
rocemu_e2e_test(faults-port_events 60 env "PORT_DOWN=${rocemu} fault all port-down" "PORT_UP=${rocemu} fault clear all"
                ${rocemu} run -- $<TARGET_FILE:port_events> -d rocemu0 -D rocemu1 -g 1)
rocemu_e2e_test(faults-kill 60 ${rocemu} run -- $<TARGET_FILE:lost_device> rocemu0 1 "${rocemu} fault all kill")
foreach(case start perftest:qp-error perftest:no-answer perftest:cq-error perftest:device-fatal rping rping:removal reconnect
        rsockets ucx mpi pause)
  rocemu_e2e_test(faults/${case} 180 ${here}/faults/fault_programs.py ${case})
  set_property(TEST e2e/faults/${case} APPEND PROPERTY ENVIRONMENT "RECONNECT=$<TARGET_FILE:reconnect>")
  if(MPI_CXX_FOUND)
    set_property(TEST e2e/faults/${case} APPEND PROPERTY ENVIRONMENT "MPI_PROGRAMS=${CMAKE_CURRENT_BINARY_DIR}/mpi")
  endif()
endforeach()
