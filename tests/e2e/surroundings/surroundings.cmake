# What is around programs where they are tested: sanitizers, debuggers, other users, other roots.
set(surroundings ${here}/surroundings)
foreach(row gcc-undefined gcc-leak gcc-thread clang-address clang-undefined clang-leak clang-thread)
  string(REPLACE "-" ";" words ${row})
  rocemu_e2e_test(surroundings/${row} 120 ${surroundings}/sanitizers.py ${words})
endforeach()
