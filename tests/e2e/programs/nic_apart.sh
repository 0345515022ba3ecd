#!/usr/bin/env bash
# Programs whose NIC is not quite where they are: another user's, for root; one in another PID namespace, as from one
# container to another, where neither knows the other by a process id.
#
#   nic_apart.sh     by root; ROCEMU names the rocemu command to use. Exit code 77: skipped.
set -euo pipefail

# shellcheck source=../tools/namespaces.sh
source "$(dirname "$0")/../tools/namespaces.sh"
[[ $(id -u) == 0 ]] || skip "not root: there is no other user's NIC to use"
need ibv_rc_pingpong:ibverbs-utils ib_write_bw:perftest rping:rdmacm-utils
need_namespaces --pid --mount --net
user=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all)

here=$(dirname "$self")
state=$(mktemp -d)
mkfifo "$state/until"
exec {until}<> "$state/until"
holder=
# The holder takes its NIC down when this script lets go of the pipe, in whatever way it ends.
trap 'exec {until}>&-; [[ -z $holder ]] || wait "$holder" || true; rm -rf "$state"' EXIT
chown 65534:65534 "$state"
chmod 711 "$state"

# Waits until the NIC answers.
wait_for_nic() {
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    "$ROCEMU" status --socket "$nic" > /dev/null 2>&1 && return
    sleep 0.1
  done
  fail "the NIC is not up: $(cat "$state/log")"
}
nic=$state/rocemu/apart/nic.sock

# programs COMMAND...: what runs over the NIC, each started by that command
programs() {
  local pair=("$here/../tools/pair.py" --server rocemu0 --client rocemu1 --forbid 'invalid data' --)
  "$@" "$ROCEMU" exec --socket "$nic" -- "${pair[@]}" ibv_rc_pingpong -g 1 -c -n 200
  "$@" "$ROCEMU" exec --socket "$nic" -- "${pair[@]}" ibv_rc_pingpong -g 1 -c -e -n 200
  "$@" "$ROCEMU" exec --socket "$nic" -- "${pair[@]}" ib_write_bw -F -n 500
  # shellcheck disable=SC2016 # expanded inside
  "$@" "$ROCEMU" exec --socket "$nic" -- bash -euc '
    rping -s -a 10.77.0.1 -C 10 -V & server=$!
    for ((tries = 0; tries < 50; ++tries)); do
      rping -c -a 10.77.0.1 -C 10 -V > /dev/null 2>&1 && break
      sleep 0.1
    done
    wait "$server"'
}

# The NIC of an ordinary user, in a PID namespace of its own.
# shellcheck disable=SC2016 # expanded inside
unshare --pid --fork --mount-proc "${user[@]}" env XDG_RUNTIME_DIR="$state" HOME=/ sh -c \
  '"$ROCEMU" up --name apart --devices 2; read -r _; "$ROCEMU" down --name apart' \
  < "$state/until" {until}>&- > "$state/log" 2>&1 &
holder=$!
wait_for_nic

echo "== as root, of an ordinary user's NIC"
programs timeout 60
echo "== as the same user, in another PID namespace"
programs timeout 60 unshare --pid --fork --kill-child --mount-proc "${user[@]}" env -u XDG_RUNTIME_DIR HOME=/
