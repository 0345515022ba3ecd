#!/bin/sh
# Slurm's Prolog: a job that asks for it (--constraint=rocemu) has a NIC on each of its nodes, by UDP sockets on the
# address that the node's name has. Where it cannot start, what it said waits for task-prolog.sh: a Prolog that fails
# would take the node from all jobs.
rocemu=/opt/rocemu/bin/rocemu
case ,$SLURM_JOB_CONSTRAINTS, in *[,\&]rocemu[,\&]*) ;; *) exit 0 ;; esac
set -eu

folder=/run/rocemu-job-$SLURM_JOB_ID
group=$(id -g "$SLURM_JOB_UID")
mkdir "$folder"
install --directory --mode=700 --owner="$SLURM_JOB_UID" --group="$group" "$folder/run"
address=$(getent ahostsv4 "$SLURMD_NODENAME" | sed -n '1s/ .*//p')
setpriv --reuid "$SLURM_JOB_UID" --regid "$group" --clear-groups env XDG_RUNTIME_DIR="$folder/run" \
  "$rocemu" up --name job --port "rocemu0=udp:$address" > "$folder/said" 2>&1 || true
