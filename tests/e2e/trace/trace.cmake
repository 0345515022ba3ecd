# Traces of programs that nobody here wrote, read from their files.
foreach(case loss write start-stop on-error limit)
  rocemu_e2e_test(trace/${case} 60 ${here}/trace/trace_rows.py ${case})
endforeach()
meet_at(port-18515 trace/loss trace/write trace/start-stop trace/on-error trace/limit)
