#!/usr/bin/env bash
# MPI programs over the hosts of a lab: mpirun on the first starts the others as it would by ssh, they find each other by
# name and TCP, and talk through UCX over the NICs. Then nothing may be left of the lab.
#
#   lab_mpi.sh [--user]     --user: as an ordinary user without any capability (started by root)
#
# ROCEMU names the rocemu command to use, MPI_PROGRAMS the folder of tests/e2e/mpi's. Exit code 77: skipped.
set -euo pipefail

# shellcheck source=../tools/namespaces.sh
source "$(dirname "$0")/../tools/namespaces.sh"
as_user_if_asked "$@"

need mpirun:openmpi-bin ucx_info:ucx-utils
[[ -n ${MPI_PROGRAMS:-} ]] || skip "the MPI programs were not built (Debian package libopenmpi-dev)"
grep -q UCX_RC_VERBS_ <<< "$(ucx_info -f -c 2> /dev/null)" || skip "UCX has no verbs here: its module libuct_ib is missing"
need_namespaces --net --mount --uts

lab=mpi$$
scratch=$(mktemp -d)
trap '"$ROCEMU" lab down --name "$lab" > /dev/null 2>&1 || true; rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
# mpirun: AGENT HOST COMMAND...
cat > "$scratch/agent" << 'AGENT'
#!/bin/sh
host=$1
shift
exec "$ROCEMU" lab exec "$host" -- sh -c "$*"
AGENT
chmod 755 "$scratch/agent"

started=$(date +%s%N)
"$ROCEMU" lab up --name "$lab" --hosts 4
echo "up in $((($(date +%s%N) - started) / 1000000)) ms"

# run PROGRAM WORDS: the program prints these words
run() {
  local text
  text=$(timeout 120 "$ROCEMU" lab exec --name "$lab" h1 -- mpirun --allow-run-as-root --host h1,h2,h3,h4 \
    --mca plm_rsh_agent "$scratch/agent" --mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include eth0 \
    --mca orte_tmpdir_base "$scratch" --mca pml ucx --mca btl '^openib' --mca osc ucx \
    -x UCX_TLS=rc_verbs,ud_verbs:aux,self -x UCX_NET_DEVICES=rocemu0:1 "$MPI_PROGRAMS/$1" 2>&1) ||
    fail "$1: $text"
  grep -qxF "$2" <<< "$text" || fail "$1 did not print '$2': $text"
  echo "PASS $1 over four hosts"
}
run ring "40 hops, 40 counted"
run alltoall "all words right"

"$ROCEMU" lab exec --name "$lab" h2 -- "$ROCEMU" status --json > "$scratch/status"
grep -q '"tx_payload_bytes": 0,' "$scratch/status" && fail "h2's NIC sent nothing"
folder=$("$ROCEMU" lab exec --name "$lab" h1 -- printenv ROCEMU_LAB)
holders=$(cat "$folder/pids/"*)
daemons=$(cat "$folder/run/rocemu/"*/pid)
"$ROCEMU" lab down --name "$lab"
[[ ! -e $folder ]] || fail "lab down left files"
for pid in $holders $daemons; do
  # A holder that was killed has a moment to go.
  for ((tries = 0; tries < 50; ++tries)); do
    [[ -e /proc/$pid ]] && ! grep -q '^State:[[:space:]]*Z' "/proc/$pid/status" 2> /dev/null || break
    sleep 0.1
  done
  ((tries < 50)) || fail "lab down left process $pid: $(tr '\0' ' ' < "/proc/$pid/cmdline")"
done
