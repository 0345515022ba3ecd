#!/usr/bin/env bash
# port_events and lost_device (tests/e2e/verbs) over a NIC whose ports are the two ends of a veth, in a network
# namespace made for it. port_events runs between the two, and once more of one device with itself.
#
#   port_events.sh [--user] FOLDER    FOLDER: where the two programs are
#
#   --user   as an ordinary user without any capability, in a user namespace (started by root)
#
# ROCEMU names the rocemu command to use (default: the one in PATH). Exit code 77: skipped.
set -euo pipefail

# shellcheck source=../tools/namespaces.sh
source "$(dirname "$0")/../tools/namespaces.sh"
as_user_if_asked "$@"

if [[ ${1:-} != --inside ]]; then
  need ip:iproute2
  need_namespaces --net
  exec unshare "${user[@]}" --net "$self" --inside "$@"
fi
programs=$2

# The two reach each other by link-local addresses alone, as those of one machine: any other address of the other end is
# the kernel's own. They are made of the MAC, as GID 0 is, so that a GID comes or goes when it is said so and at no
# other time.
ip link add eth0 type veth peer name eth1 || skip "this kernel makes no veth"
for interface in eth0 eth1; do
  ip link set "$interface" addrgenmode eui64 up || skip "no IPv6 here"
done

name=port-events-$$
"$ROCEMU" up --name "$name" --port rocemu0=eth0 --port rocemu1=eth1
trap '"$ROCEMU" down --name "$name" > /dev/null 2>&1 || true' EXIT
directory=$("$ROCEMU" exec --name "$name" -- printenv ROCEMU_DIR)

export PORT_DOWN="ip link set eth0 down" PORT_UP="ip link set eth0 up"
export GID_ADD="ip address add fe80::99:1/64 dev eth0 nodad && ip address add fe80::99:2/64 dev eth1 nodad"
export GID_DELETE="ip address del fe80::99:1/64 dev eth0 && ip address del fe80::99:2/64 dev eth1"
timeout 100 "$ROCEMU" exec --name "$name" -- "$programs/port_events" -d rocemu0 -D rocemu1 -g 0
timeout 100 "$ROCEMU" exec --name "$name" -- "$programs/port_events" -d rocemu0 -g 0
timeout 60 "$ROCEMU" exec --name "$name" -- "$programs/lost_device" rocemu0 0 "kill -9 $(cat "$directory/pid")"
