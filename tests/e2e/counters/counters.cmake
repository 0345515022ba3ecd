# Counters, as tools read them.
foreach(case files link_downed changed_status metrics http unix_socket dashboard node_exporter)
  rocemu_e2e_test(counters/${case} 120 ${here}/counters/counters.py ${case})
  set_property(TEST e2e/counters/${case} APPEND PROPERTY
               ENVIRONMENT "BAD_INPUT=$<TARGET_FILE:bad_input>;VERBS=$<TARGET_FILE:verbs>")
endforeach()
