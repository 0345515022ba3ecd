# What shows traces, with the programs that read what it writes; the traces are written by the test itself.
math(EXPR limit "120 * ${slower}")
foreach(case text perfetto pcapng why selection hostile ladder_of_thousands)
  add_test(NAME e2e/trace/show/${case}
    COMMAND /usr/bin/python3 -B ${here}/trace/show_formats.py $<TARGET_FILE:rocemu> ${case})
  set_tests_properties(e2e/trace/show/${case} PROPERTIES LABELS e2e TIMEOUT ${limit} SKIP_RETURN_CODE 77)
endforeach()
