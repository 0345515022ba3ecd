# librdmacm programs.
set(cm_cases rping-ipv4 rping-ipv6 rping-to-itself rping-sizes rping-persistent
    ucmatose ucmatose-many ucmatose-migrate rdma_client cmtime rstream riostream rcopy qperf
    perftest:ib_send_bw perftest:ib_write_bw perftest:ib_read_bw
    perftest:ib_send_lat perftest:ib_write_lat perftest:ib_read_lat perftest:qps
    no-listener nobody-there)
foreach(case ${cm_cases})
  rocemu_e2e_test(cm/${case} 120 ${here}/cm_programs.py ${case})
endforeach()

# Some of them once more without root and without any capability.
foreach(case rping-ipv4 rping-persistent ucmatose-many rdma_client cmtime rstream rcopy qperf
        perftest:ib_write_bw)
  rocemu_e2e_test(user/cm/${case} 120 ${here}/cm_programs.py --user ${case})
endforeach()

# Connections by a program of our own: many of them, also over bad links, mistakes, and sides that are
# killed.
add_executable(cm_connects cm_connects.cc)
target_link_libraries(cm_connects PRIVATE rocemu_options rdmacm ibverbs Threads::Threads)
set_target_properties(cm_connects PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
set(bad_links --impair loss=5%,dup=1%)
rocemu_e2e_test(cm/errors 60 ${rocemu} run -- $<TARGET_FILE:cm_connects> errors)
rocemu_e2e_test(cm/sequence 60 ${rocemu} run -- $<TARGET_FILE:cm_connects> sequence 1000)
rocemu_e2e_test(cm/at-once 60 ${rocemu} run -- $<TARGET_FILE:cm_connects> at-once 300)
rocemu_e2e_test(cm/sequence-loss 120
                ${rocemu} run ${bad_links} -- $<TARGET_FILE:cm_connects> sequence 200)
rocemu_e2e_test(cm/at-once-loss 120
                ${rocemu} run ${bad_links} -- $<TARGET_FILE:cm_connects> at-once 300)
rocemu_e2e_test(cm/kill 120 ${here}/cm_kill.py $<TARGET_FILE:cm_connects>)
