#!/usr/bin/env bash
# port_events and lost_device (tests/e2e/verbs) over a NIC whose port is an interface of a network namespace made for
# it.
#
#   port_events.sh [--user] FOLDER    FOLDER: where the two programs are
#
#   --user   as an ordinary user without any capability, in a user namespace (started by root)
#
# ROCEMU names the rocemu command to use (default: the one in PATH). Exit code 77: skipped.
set -euo pipefail

readonly skipped=77 interface=eth0
self=$(readlink -f "$0")
ROCEMU=${ROCEMU:-rocemu}
export ROCEMU

skip() {
  echo "SKIP: $*"
  exit "$skipped"
}

if [[ ${1:-} == --user ]]; then
  shift
  [[ $(id -u) == 0 ]] || skip "not root: everything runs as an ordinary user already"
  exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all \
    --no-new-privs env -u XDG_RUNTIME_DIR HOME=/ "$self" "$@"
fi

if [[ ${1:-} != --inside ]]; then
  command -v ip > /dev/null || skip "ip is missing (Debian package iproute2)"
  user=()
  [[ $(id -u) == 0 ]] || user=(--user --map-root-user)
  unshare "${user[@]}" --net true 2> /dev/null || skip "no namespaces can be made here"
  exec unshare "${user[@]}" --net "$self" --inside "$@"
fi
programs=$2

# One address, so that a GID comes or goes when it is said so and at no other time.
ip link add "$interface" type veth peer name peer0 || skip "this kernel makes no veth"
ip link set "$interface" addrgenmode none
ip link set peer0 addrgenmode none up
ip link set "$interface" up
ip address add 10.99.0.1/24 dev "$interface"

name=port-events-$$
"$ROCEMU" up --name "$name" --port "rocemu0=$interface"
trap '"$ROCEMU" down --name "$name" > /dev/null 2>&1 || true' EXIT
directory=$("$ROCEMU" exec --name "$name" -- printenv ROCEMU_DIR)

export PORT_DOWN="ip link set $interface down" PORT_UP="ip link set $interface up"
export GID_ADD="ip address add 10.98.0.1/24 dev $interface" GID_DELETE="ip address del 10.98.0.1/24 dev $interface"
timeout 100 "$ROCEMU" exec --name "$name" -- "$programs/port_events" -d rocemu0 -g 0
timeout 60 "$ROCEMU" exec --name "$name" -- "$programs/lost_device" rocemu0 0 "kill -9 $(cat "$directory/pid")"
