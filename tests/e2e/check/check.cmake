# Programs that are checked. Those that do right are told nothing, and each finding about the others is one that was
# confirmed: a row fails for any other.
rocemu_e2e_test(check/reports 60 ${here}/check/reports.py $<TARGET_FILE:leaver>)
rocemu_e2e_test(user/check/reports 60 ${as_user} ${here}/check/reports.py $<TARGET_FILE:leaver>)
rocemu_e2e_test(check/in_a_lab 60 ${here}/check/in_a_lab.py $<TARGET_FILE:leaver>)
rocemu_e2e_test(user/check/in_a_lab 60 ${here}/check/in_a_lab.py --user $<TARGET_FILE:leaver>)
add_executable(closer ${here}/check/closer.c)
target_link_libraries(closer PRIVATE misuse_pair)
set_target_properties(closer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
rocemu_e2e_test(check/closed-memory 60 ${rocemu} run --check -- $<TARGET_FILE:closer>)
add_executable(giver ${here}/check/giver.c)
target_link_libraries(giver PRIVATE misuse_pair)
set_target_properties(giver PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
rocemu_e2e_test(check/memory-stays 60 ${rocemu} run --check -- $<TARGET_FILE:giver>)
foreach(way moved moved-over mapped-over not-needed)
  rocemu_e2e_test(check/memory-${way} 60 ${rocemu} run --check --check-exit-code 0 -- $<TARGET_FILE:giver> ${way})
  set_tests_properties(e2e/check/memory-${way} PROPERTIES PASS_REGULAR_EXPRESSION "memory-gone")
endforeach()

# ib_send_bw's client keeps a CQ, ib_atomic_lat's server all that it has made (docs/check-found.md).
foreach(program send write read atomic)
  set(checks all)
  if(program MATCHES "send|atomic")
    set(checks all,-leaks)
  endif()
  set(checked ${rocemu} run --check=${checks} -- ${matrix} ${perftest_lines} ib_${program})
  rocemu_e2e_test(check/matrix/${program} 300 ${checked} --every 2)
  rocemu_long_test(check/matrix/${program}-all 300 ${checked})
  meet_at(xrc_domain check/matrix/${program} check/matrix/${program}-all)
endforeach()
use_both_cores(check/matrix/send check/matrix/send-all)

# ibv_srq_pingpong destroys QPs whose last SEND may be outstanding (docs/check-found.md).
rocemu_e2e_test(check/matrix/pingpong 120 ${rocemu} run --check -- ${matrix} ${here}/programs/pingpong_matrix.txt
                --leave-out ibv_srq_pingpong)

rocemu_e2e_test(check/stress 120 ${rocemu} run --check -- $<TARGET_FILE:stress> --seconds 3 --processes 4 --qps 2 --srq)
use_both_cores(check/stress)
rocemu_cm_test(check/cm ucmatose rdma_client rdma_xclient:rc udaddy rstream rcopy fi_pingpong:msg fi_pingpong:rxm)
meet_at(fi_pingpong check/cm)
rocemu_cm_test(check/fio fio:write fio:read)
meet_at(fio check/fio)
foreach(row cm fio)
  rocemu_e2e_options(check/${row} --check)
endforeach()

# What these do wrong they do on purpose, or it was found in their source (docs/check-found.md).
function(rocemu_checked_test name seconds suppressions)
  rocemu_e2e_test(${name} ${seconds} ${rocemu} run --check --check-suppressions ${here}/check/${suppressions} ${ARGN})
  set_tests_properties(e2e/${name} PROPERTIES FAIL_REGULAR_EXPRESSION "SKIP")
endfunction()
rocemu_checked_test(check/verbs 120 verbs.suppressions -- $<TARGET_FILE:verbs> -d rocemu0 -D rocemu1)
# Shaken as well: what a NIC may do is no mistake of the program's.
rocemu_checked_test(check/verbs-shaken 120 verbs.suppressions --shake=-limits,seed=1 --
                    $<TARGET_FILE:verbs> -d rocemu0 -D rocemu1)
rocemu_checked_test(check/bad_input 480 bad_input.suppressions --config ${here}/configs/small_device.toml --
                    $<TARGET_FILE:bad_input> -d rocemu0 -D rocemu1)
set(ucx_suppressed "--check --check-suppressions ${here}/check/ucx.suppressions")
rocemu_message_layer_test(check/ucx ucx:rc ucx:ud)
rocemu_e2e_options(check/ucx ${ucx_suppressed})
rocemu_message_layer_test(check/mpi mpi)
rocemu_e2e_options(check/mpi ${ucx_suppressed})
use_both_cores(check/mpi)
# What these ask for is wrong, to see that it is refused, or they have a child use their device, or change the key of memory that
# is posted: each of them alone is told so. Many more deregister memory under receives that are posted still, or connect before
# a receive is posted, which cannot be suppressed by place: the modules have no names of functions.
string(CONCAT wrong_on_purpose
       "test_atomic.AtomicTest.test_atomic_invalid_rkey test_atomic.AtomicTest.test_atomic_non_aligned_addr"
       " test_cq.CQAPITest.test_create_cq_bad_flow test_cq.CQTest.test_resize_cq"
       " test_cqex.CQEXAPITest.test_create_cq_ex_bad_flow test_device.DMTest.test_multi_process_alloc_dm"
       " test_mr.MRTest.test_mr_rereg_addr test_mr.MWTest.test_mw_type2_invalidate_dealloc"
       " test_qp.QPTest.test_create_raw_qp_ex_with_illegal_caps_max_recv_sge"
       " test_qp.QPTest.test_create_raw_qp_ex_with_illegal_caps_max_recv_wr"
       " test_qp.QPTest.test_create_raw_qp_ex_with_illegal_caps_max_send_sge"
       " test_qp.QPTest.test_create_raw_qp_ex_with_illegal_caps_max_send_wr"
       " test_qpex.QpExTestCase.test_post_receive_qp_state_bad_flow"
       " test_qpex.QpExTestCase.test_post_send_qp_state_bad_flow"
       " test_qpex.QpExTestCase.test_rq_with_larger_sgl_bad_flow")
rocemu_e2e_test(check/pyverbs 240 ${here}/pyverbs/run.py)
rocemu_e2e_options(check/pyverbs --check=all,-memory-gone,-receive-too-late "PYVERBS_LEAVE_OUT=${wrong_on_purpose}")

foreach(case rping pingpong listens-twice)
  rocemu_e2e_test(check/races-${case} 400 ${here}/check/races.py ${case})
endforeach()
