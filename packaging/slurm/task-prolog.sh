#!/bin/sh
# Slurm's TaskProlog: what it prints as "export NAME=VALUE" is the task's environment, in which any program finds the
# job's NIC. What its user has in LD_PRELOAD stays behind it.
rocemu=/opt/rocemu/bin/rocemu
folder=/run/rocemu-job-$SLURM_JOB_ID
[ -d "$folder" ] || exit 0
if ! variables=$(env --unset=ROCEMU_DIR XDG_RUNTIME_DIR="$folder/run" "$rocemu" env --name job 2>&1); then
  echo "print $(cat "$folder/said")"
  exit 1
fi
echo "$variables" | sed "s/'//g"
