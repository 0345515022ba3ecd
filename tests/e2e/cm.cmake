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
