# Programs over a NIC that does what the specification permits and hardware seldom does, at three seeds.
set(shaken ${here}/shake/shaken_rocemu.sh)
foreach(seed 1 2 3)
  # Without the limits: these rows ask for what every device of other tests has.
  rocemu_e2e_test(shake/verbs-${seed} 120 ${rocemu} run --shake=-limits,seed=${seed} --
                  $<TARGET_FILE:verbs> -d rocemu0 -D rocemu1)
  set_tests_properties(e2e/shake/verbs-${seed} PROPERTIES FAIL_REGULAR_EXPRESSION "SKIP")
  rocemu_e2e_test(shake/perftest-${seed} 300 ${rocemu} run --shake=seed=${seed} --
                  ${here}/programs/program_matrix.py ${here}/shake/perftest.txt)
  meet_at(xrc_domain shake/perftest-${seed})
  # Some of its tests rely on an order between a QP's two work queues: docs/shake.md.
  rocemu_e2e_test(shake/pyverbs-${seed} 240 ${here}/pyverbs/run.py)
  set_tests_properties(e2e/shake/pyverbs-${seed} PROPERTIES ENVIRONMENT
    "ROCEMU=${shaken};ROCEMU_TEST_COMMAND=${rocemu};ROCEMU_TEST_SHAKE=-completions,-flushes,seed=${seed};PYVERBS_LEAVE_OUT=test_tag_matching.TMTest.test_tm_rndv;PYTHONDONTWRITEBYTECODE=1")
endforeach()
rocemu_e2e_test(shake/verify_bytes 240 ${rocemu} run --shake=-limits,seed=1 -- $<TARGET_FILE:verify_bytes>
                -d rocemu0 -D rocemu1 --messages 200 --budget-mib 8)
rocemu_e2e_test(shake/stress 120 ${rocemu} run --shake=-limits,seed=1 -- $<TARGET_FILE:stress>
                --seconds 3 --processes 3 --qps 2)
use_both_cores(shake/stress)
rocemu_e2e_test(shake/repeats 60 ${here}/shake/repeats.sh)
