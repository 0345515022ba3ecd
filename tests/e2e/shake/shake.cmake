# Programs over a NIC that does what the specification permits and hardware seldom does: quick ones at three seeds, the others at
# one. What ends in -1 scripts/shake_seeds.py runs at many others.
#
# Of perftest's matrix a third. ib_send_lat -e has races of its own: docs/shake.md.
set(matrix_shaken ${here}/programs/program_matrix.py ${here}/programs/perftest_matrix.txt
                  --leave-out "ib_send_lat .*-e ")
string(CONCAT out_of_order "test_tag_matching.TMTest.test_tm_rndv test_cq.CQTest.test_resize_cq"
       " test_mr.MRTest.test_mr_rereg_addr test_mr.MRTest.test_mr_rereg_pd")
set(shaken ${rocemu} run --shake=seed=1 -- ${matrix_shaken})
rocemu_e2e_test(shake/perftest-1 300 ${shaken} --every 3)
rocemu_long_test(shake/perftest-1-all 600 ${shaken})
meet_at(xrc_domain shake/perftest-1 shake/perftest-1-all)
# Four tests rely on an order between a QP's two work queues, or on a doorbell that is seen at once: docs/shake.md.
rocemu_e2e_test(shake/pyverbs-1 240 ${here}/pyverbs/run.py)
rocemu_e2e_options(shake/pyverbs-1 "--shake=seed=1" "PYVERBS_LEAVE_OUT=${out_of_order}")
foreach(seed 1 2 3)
  # Without the limits: these rows ask for what every device of other tests has.
  rocemu_e2e_test(shake/verbs-${seed} 120 ${rocemu} run --shake=-limits,seed=${seed} --
                  $<TARGET_FILE:verbs> -d rocemu0 -D rocemu1)
  set_tests_properties(e2e/shake/verbs-${seed} PROPERTIES FAIL_REGULAR_EXPRESSION "SKIP")
  rocemu_e2e_test(shake/pingpong-${seed} 120 ${rocemu} run --shake=seed=${seed} -- ${here}/programs/program_matrix.py
                  ${here}/programs/pingpong_matrix.txt)
endforeach()
# UCX asks for more than the smallest device has, whatever the device says: docs/shake.md.
rocemu_message_layer_test(shake/ucx-1 ucx:rc ucx:ud)
rocemu_e2e_options(shake/ucx-1 "--shake=-limits,seed=1")
rocemu_long_message_layer_test(shake/mpi-1 mpi)
rocemu_e2e_options(shake/mpi-1 "--shake=-limits,seed=1")
rocemu_cm_test(shake/cm-1 rping-ipv4 ucmatose rdma_client fi_pingpong:msg)
rocemu_e2e_options(shake/cm-1 "--shake=-rnr,seed=1")
meet_at(fi_pingpong shake/cm-1)
# It asks for a CQ that is larger than those of the smallest device, whatever the device says: docs/shake.md.
rocemu_cm_test(shake/rxm-1 fi_pingpong:rxm)
rocemu_e2e_options(shake/rxm-1 "--shake=-limits,seed=1")
meet_at(fi_pingpong shake/rxm-1)
# Its receives all are the same buffer, and it reads a GRH there while others are posted: docs/shake.md.
rocemu_cm_test(shake/udaddy-1 udaddy)
rocemu_e2e_options(shake/udaddy-1 "--shake=-rnr,-scribble,seed=1")
rocemu_cm_test(shake/fio-1 fio:write fio:read)
rocemu_e2e_options(shake/fio-1 "--shake=-rnr,seed=1")
meet_at(fio shake/fio-1)
use_both_cores(shake/mpi-1)
# They look at memory for where their peer has room: docs/shake.md.
rocemu_cm_test(shake/rsockets-1 rstream riostream rcopy rsockets)
rocemu_e2e_options(shake/rsockets-1 "--shake=-limits,-placement,seed=1")
rocemu_e2e_test(shake/verify_bytes-1 240 ${rocemu} run --shake=-limits,seed=1 -- $<TARGET_FILE:verify_bytes>
                -d rocemu0 -D rocemu1 --messages 200 --budget-mib 8)
rocemu_e2e_test(shake/stress-1 120 ${rocemu} run --shake=-limits,seed=1 -- $<TARGET_FILE:stress>
                --seconds 3 --processes 3 --qps 2)
use_both_cores(shake/stress-1)
rocemu_e2e_test(shake/repeats 60 ${here}/shake/repeats.sh)
