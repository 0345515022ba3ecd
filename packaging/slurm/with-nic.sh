#!/bin/sh
# A NIC for one task of a job, where the cluster has none of these scripts; one task a node:
#
#   srun --ntasks-per-node=1 with-nic.sh ib_write_bw ...
rocemu=${ROCEMU:-rocemu}
address=$(getent ahostsv4 "$SLURMD_NODENAME" | sed -n '1s/ .*//p')
exec "$rocemu" run --port "rocemu0=udp:$address" -- "$@"
