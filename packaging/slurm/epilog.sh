#!/bin/sh
# Slurm's Epilog: ends the NIC of prolog.sh.
rocemu=/opt/rocemu/bin/rocemu
folder=/run/rocemu-job-$SLURM_JOB_ID
[ -d "$folder" ] || exit 0
setpriv --reuid "$SLURM_JOB_UID" --regid "$(id -g "$SLURM_JOB_UID")" --clear-groups env XDG_RUNTIME_DIR="$folder/run" \
  "$rocemu" down --name job || true
rm -r "$folder"
