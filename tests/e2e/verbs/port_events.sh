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

readonly interface=eth0
# shellcheck source=../namespaces.sh
source "$(dirname "$0")/../namespaces.sh"
as_user_if_asked "$@"

if [[ ${1:-} != --inside ]]; then
  need ip:iproute2
  need_namespaces --net
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
