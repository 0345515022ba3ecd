# Traces of programs that nobody here wrote, read from their files.
foreach(case loss write start-stop on-error start-options killed limit pcapng keys cm fault)
  rocemu_e2e_test(trace/${case} 60 ${here}/trace/trace_rows.py ${case})
endforeach()
set_tests_properties(e2e/trace/keys PROPERTIES TIMEOUT 240)
set_property(TEST e2e/trace/keys APPEND PROPERTY ENVIRONMENT BAD_INPUT=$<TARGET_FILE:bad_input>)
meet_at(port-18515 trace/loss trace/write trace/start-stop trace/on-error trace/start-options trace/killed trace/limit
  trace/pcapng trace/cm trace/fault)

# The stories of docs/seeing.md, as they stand there. Their pictures are not looked at here: the same script draws them,
# with a browser, when it is told to.
foreach(story lost-last-packet rnr-storm wrong-rkey slow-consumer read-behind-write)
  rocemu_e2e_test(stories/${story} 90 ${PROJECT_SOURCE_DIR}/scripts/stories.py --build ${PROJECT_BINARY_DIR} ${story})
endforeach()
meet_at(port-18515 stories/lost-last-packet stories/rnr-storm)
