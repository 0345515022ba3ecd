# librdmacm programs, and one that knows only sockets.
add_executable(echo-over-sockets cm/echo.cc)
target_link_libraries(echo-over-sockets PRIVATE rocemu_options)
set_target_properties(echo-over-sockets PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
set(cm_cases rping-ipv4 rping-ipv6 rping-to-itself rping-sizes rping-thousand
    rping-persistent rping-persistent-ipv6
    ucmatose ucmatose-many ucmatose-migrate ucmatose-sizes ucmatose-bytes udaddy udaddy-many mckey
    rdma_client rdma_xclient:rc rdma_xclient:xrc cmtime rstream riostream rcopy
    qperf qperf:send qperf:rdma qperf:poll qperf:atomics
    perftest:ib_send_bw perftest:ib_write_bw perftest:ib_read_bw perftest:ib_atomic_bw
    perftest:ib_send_lat perftest:ib_write_lat perftest:ib_read_lat perftest:ib_atomic_lat
    perftest:ib_atomic_bw:swap perftest:ib_atomic_lat:swap
    perftest:ib_send_bw:ud perftest:ib_send_lat:ud perftest:qps
    fi_pingpong:msg fi_pingpong:rxm fio:write fio:read rsockets
    ucx-sockaddr no-listener nobody-there)
function(rocemu_cm_test name)
  rocemu_e2e_test(${name} 120 ${here}/cm/cm_programs.py ${ARGN})
  set_property(TEST e2e/${name} APPEND PROPERTY ENVIRONMENT "ECHO=$<TARGET_FILE:echo-over-sockets>")
endfunction()
foreach(case ${cm_cases})
  rocemu_cm_test(cm/${case} ${case})
endforeach()

# Some of them once more without root and without any capability.
set(user_cm_cases rping-ipv4 rping-persistent ucmatose-many udaddy mckey rdma_client rdma_xclient:xrc cmtime
    rstream rcopy qperf qperf:rdma perftest:ib_write_bw perftest:ib_send_bw:ud fi_pingpong:msg fio:write rsockets
    ucx-sockaddr)
foreach(case ${user_cm_cases})
  rocemu_cm_test(user/cm/${case} --user ${case})
endforeach()
# What meets over TCP first does so at the same port each time.
foreach(case ${cm_cases})
  if(case MATCHES "^(qperf|fi_pingpong|fio|ucx)")
    meet_at(${CMAKE_MATCH_1} cm/${case})
    if(case IN_LIST user_cm_cases)
      meet_at(${CMAKE_MATCH_1} user/cm/${case})
    endif()
  endif()
endforeach()

# Connections by a program of our own: many of them, also over bad links, mistakes, and sides that are
# killed.
add_executable(cm_connects cm/cm_connects.cc)
target_link_libraries(cm_connects PRIVATE rocemu_options rdmacm ibverbs Threads::Threads)
set_target_properties(cm_connects PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
set(on_bad_links --impair loss=5%,dup=1%)
foreach(user "" --user)
  if(user)
    set(prefix user/cm)
  else()
    set(prefix cm)
  endif()
  rocemu_e2e_test(${prefix}/errors 60 ${here}/cm/cm_programs.py ${user} --run $<TARGET_FILE:cm_connects> errors)
  rocemu_e2e_test(${prefix}/at-once-loss 120 ${here}/cm/cm_programs.py ${user} ${on_bad_links} --run $<TARGET_FILE:cm_connects> at-once 300)
  rocemu_e2e_test(${prefix}/kill 120 ${here}/cm/cm_programs.py ${user} --run ${here}/cm/cm_kill.py $<TARGET_FILE:cm_connects>)
endforeach()
rocemu_e2e_test(cm/anew 60 ${here}/cm/cm_anew.py)
rocemu_e2e_test(cm/sequence 60 ${here}/cm/cm_programs.py --run $<TARGET_FILE:cm_connects> sequence 1000)
rocemu_e2e_test(cm/at-once 60 ${here}/cm/cm_programs.py --run $<TARGET_FILE:cm_connects> at-once 300)
rocemu_e2e_test(cm/sequence-loss 240 ${here}/cm/cm_programs.py ${on_bad_links} --run $<TARGET_FILE:cm_connects> sequence 300)
rocemu_long_test(cm/sequence-loss-1000 240 ${here}/cm/cm_programs.py ${on_bad_links} --run $<TARGET_FILE:cm_connects> sequence 1000)
