# What is around programs where they are tested: sanitizers, debuggers, other users, other roots.
set(surroundings ${here}/surroundings)
foreach(compiler gcc clang)
  foreach(sanitizer address undefined leak thread)
    rocemu_e2e_test(surroundings/${compiler}-${sanitizer} 120 ${surroundings}/sanitizers.py ${compiler} ${sanitizer})
  endforeach()
endforeach()
foreach(case valgrind valgrind-leaks gdb emptied script sudo at-once foreign-libibverbs chroot no-provider static musl setuid)
  rocemu_e2e_test(surroundings/${case} 120 ${surroundings}/surroundings.py ${case})
endforeach()
use_both_cores(surroundings/at-once)
# valgrind runs one thread at a time, and both of the program's poll: on a machine with other work that takes long.
set_tests_properties(e2e/surroundings/valgrind e2e/surroundings/valgrind-leaks PROPERTIES TIMEOUT 400)
