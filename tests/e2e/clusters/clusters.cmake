# Clusters on this machine: docs/deployment.md.
rocemu_long_test(slurm 600 ${here}/clusters/slurm.sh)
use_both_cores(slurm)
if(MPI_CXX_FOUND)
  set_property(TEST e2e/slurm APPEND PROPERTY ENVIRONMENT "MPI_PROGRAMS=${CMAKE_CURRENT_BINARY_DIR}/mpi")
endif()
rocemu_e2e_test(device_plugin 60 ${here}/clusters/device_plugin.py ${PROJECT_SOURCE_DIR}/packaging/kubernetes/device_plugin.py)
