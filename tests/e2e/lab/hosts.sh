#!/usr/bin/env bash
# Unmodified RDMA programs between NICs of two hosts, which are namespaces joined by veth and bridge
# (rocemu lab).
#
#   hosts.sh [--user] interface|udp MTU     by the host's interface or by UDP sockets
#   hosts.sh [--user] mixed MTU             h1 by its interface, h2 by UDP sockets
#   hosts.sh [--user] networks              two ports on two networks: each is the way to its own
#   hosts.sh [--user] errors                what a port that cannot be had says
#   hosts.sh [--user] neighbours            a lab that ends leaves those alone that begin meanwhile
#
#   --user   as an ordinary user without any capability, in a user namespace (started by root)
#
# ROCEMU names the rocemu command to use (default: the one in PATH). Exit code 77: skipped.
set -euo pipefail

# shellcheck source=../tools/namespaces.sh
source "$(dirname "$0")/../tools/namespaces.sh"
as_user_if_asked "$@"

lab=test$$
h1_words=() h2_words=()  # which pair adds
need_namespaces --net --mount --uts
need ip:iproute2 ib_write_bw:perftest ibv_rc_pingpong:ibverbs-utils mckey:rdmacm-utils

on() {
  local host=$1
  shift
  timeout 60 "$ROCEMU" lab exec --name "$lab" "$host" -- "$@"
}

# What may say why something failed goes with the lab.
end_lab() {
  local code=$? host
  if ((code != 0)); then
    for host in h1 h2; do
      echo "--- $host"
      on "$host" "$ROCEMU" status --json || true
      # shellcheck disable=SC2016 # expanded on the host
      on "$host" env -u LD_PRELOAD sh -c 'ip -s address; ip neigh; ss -tanp; cat /proc/net/udp /proc/net/udp6
        grep -E "^(Udp|Tcp|Ip):" /proc/net/snmp; grep -E "^(Udp6|Ip6)" /proc/net/snmp6
        tail -n 20 "$ROCEMU_LAB"/log "$ROCEMU_LAB"/run/rocemu/*/log' 2>&1 || true
    done
    uptime
  fi
  "$ROCEMU" lab down --name "$lab" > /dev/null || true
}

# pair ADDRESS PROGRAM...: a server on h1, the client on h2
pair() {
  local address=$1 log server
  shift
  echo "== $* $address"
  log=$(mktemp)
  on h1 "$@" "${h1_words[@]}" > "$log" 2>&1 &
  server=$!
  local tries
  for ((tries = 0; tries < 300; ++tries)); do  # the port that all of them listen at
    on_listens && break
    kill -0 "$server" 2> /dev/null || break
    sleep 0.1
  done
  on h2 "$@" "${h2_words[@]}" "$address" > "$log.client" 2>&1 || { cat "$log" "$log.client"; fail "client of $1"; }
  wait "$server" || { cat "$log"; fail "server of $1"; }
  ! grep -q 'invalid data' "$log" "$log.client" || fail "$1: other data than was sent"
  tail -n 2 "$log.client"
  rm -f "$log" "$log.client"
}
on_listens() { on h1 grep -qE ':4853 [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6; }

# shellcheck source=../cm/cm_pair.sh
source "$(dirname "$0")/../cm/cm_pair.sh"
cm_server_host=h1 cm_client_host=h2
cm_server_waits() { ! grep -q '"listeners": \[\]' < <(on h1 "$ROCEMU" status --json); }

# programs ADDRESS GID_INDEX: one of each kind, by an address of h1
programs() {
  local address=$1 gid=$2
  pair h1 ibv_uc_pingpong -g "$gid" -c -n 100
  pair h1 ibv_ud_pingpong -g "$gid" -s 900 -n 100
  pair h1 ibv_srq_pingpong -g "$gid" -n 100
  pair h1 ib_atomic_bw -F -x "$gid" -n 200
  pair h1 ib_write_bw -F -x "$gid" -c UC -n 100
  pair h1 ib_send_lat -F -x "$gid" -c UD -n 100
  cm_pair rping -s -a "$address" -C 10 -V -- rping -c -a "$address" -C 10 -V
  cm_pair ucmatose -b "$address" -- ucmatose -s "$address"
  cm_pair udaddy -b "$address" -- udaddy -s "$address"
}

# group ADDRESS GROUP: h1 is a member of a multicast group, h2 sends to it
group() {
  local log receiver tries
  echo "== mckey $2"
  log=$(mktemp)
  on h1 mckey -m "$2" -b "$1" > "$log" 2>&1 &
  receiver=$!
  joined "$2" || { cat "$log"; fail "h1 has not joined $2"; }
  on h2 mckey -m "$2" -b "${1%1}2" -s > "$log.client" 2>&1 || { cat "$log.client"; fail "sender to $2"; }
  wait "$receiver" || { cat "$log"; fail "receiver from $2"; }
  grep -q 'data transfers complete' "$log" || { cat "$log"; fail "receiver from $2"; }
  rm -f "$log" "$log.client"
  for ((tries = 0; tries < 100; ++tries)); do
    grep -qwF "$2" < <(on h1 ip maddress show dev eth0) || return 0
    sleep 0.1
  done
  fail "h1 has not left $2"
}
joined() {
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    grep -qwF "$1" < <(on h1 ip maddress show dev eth0) && return 0
    sleep 0.1
  done
  return 1
}

check_counters() {
  local host text
  for host in h1 h2; do
    text=$(on "$host" "$ROCEMU" status --json)
    for counter in rx_malformed rx_icrc_errors dropped_refused_by_kernel; do
      grep -qE "\"$counter\": 0" <<< "$text" || { echo "$text"; fail "$host: $counter"; }
    done
  done
}

# Datagrams to the RoCE port that are no RoCE: one that bears a VLAN tag is not this port's, one without is.
check_tagged() {
  local mac before
  mac=$(on h1 cat /sys/class/net/eth0/address 2> /dev/null) || mac=$(on h1 ip -brief link show dev eth0 | awk '{ print $3 }')
  before=$(frames_received)
  send_raw "$mac" 0x81000001
  send_raw "$mac" ''
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    (($(frames_received) == before)) || break
    sleep 0.1
  done
  (($(frames_received) == before + 1)) || fail "of a tagged and an untagged frame $(($(frames_received) - before)) came"
}
frames_received() { on h1 "$ROCEMU" status --json | sed -n '0,/"rx_frames"/s/.*"rx_frames": \([0-9]*\).*/\1/p'; }

# send_raw MAC TAG: from h2
send_raw() {
  on h2 /usr/bin/python3 -c '
import socket, struct, sys
mac, tag = bytes.fromhex(sys.argv[1].replace(":", "")), sys.argv[2]
words = [0x4500, 32, 0, 0x4000, 0x4011, 10 * 256 + 99, 2, 10 * 256 + 99, 1]
words.insert(5, 0xffff - sum(words) % 0xffff)
ip = struct.pack(">10H", *words)
frame = mac + b"\2\0\0\0\0\x63" + (struct.pack(">I", int(tag, 16)) if tag else b"") + b"\x08\0" + ip
frame += struct.pack(">HHHH", 4791, 4791, 12, 0) + bytes(30)
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("eth0", 0))
wire.send(frame)' "$@"
}

check_follows() {
  on h1 ip address add 10.98.0.1/24 dev eth0
  local tries
  for ((tries = 0; tries < 50; ++tries)); do
    grep -q '::ffff:10.98.0.1' < <(on h1 ibv_devinfo -v) && break
    sleep 0.1
  done
  grep -q '::ffff:10.98.0.1' < <(on h1 ibv_devinfo -v) || fail "a new address is no GID"
  on h1 ip address del 10.98.0.1/24 dev eth0
  on h1 ip link set eth0 down
  for ((tries = 0; tries < 50; ++tries)); do
    grep -q PORT_DOWN < <(on h1 ibv_devinfo) && break
    sleep 0.1
  done
  grep -q PORT_DOWN < <(on h1 ibv_devinfo) || fail "the interface is down, the port is not"
  ! grep -q '::ffff:10.98.0.1' < <(on h1 ibv_devinfo -v) || fail "an address is gone, its GID is not"
  on h1 ip link set eth0 up
  on h1 ip address replace fd99::1/64 dev eth0 nodad 2> /dev/null || true
  for ((tries = 0; tries < 50; ++tries)); do
    grep -q PORT_ACTIVE < <(on h1 ibv_devinfo) && break
    sleep 0.1
  done
  grep -q PORT_ACTIVE < <(on h1 ibv_devinfo) || fail "the interface is up again, the port is not"
}

# Gives h2 a NIC on UDP sockets instead of the one on its interface.
change_h2() {
  # shellcheck disable=SC2016 # expanded on h2
  on h2 env -u LD_PRELOAD sh -c '"$0" down --name h2 && "$0" up --name h2 --port "rocemu0=udp:10.99.0.2+fd99::2"' \
    "$ROCEMU" || fail "h2 has no NIC on UDP sockets"
}

mixed() {
  "$ROCEMU" lab up --name "$lab" --hosts 2 --mtu "$1"
  trap end_lab EXIT
  change_h2
  local version
  for version in 4 6; do
    pair_of_gids "$version" ibv_rc_pingpong -c -n 200 -s 100000
    pair_of_gids "$version" ib_write_bw -F -n 500
    pair_of_gids "$version" ib_read_bw -F -n 500 -b -q 2
    pair_of_gids "$version" ib_send_bw -F -n 300 -s 100001 -b
  done
  check_counters
}

# pair_of_gids IP_VERSION PROGRAM...: as pair does; the two NICs have the address at different places
pair_of_gids() {
  local version=$1 option=-x
  shift
  [[ $1 != ibv_* ]] || option=-g
  h1_words=("$option" "$((version == 4 ? 1 : 2))")
  h2_words=("$option" "$((version == 4 ? 0 : 1))")
  pair h1 "$@"
  h1_words=() h2_words=()
}

# A command in a PID namespace of its own; 77 where there is none to be had.
from_afar() {
  local words=(unshare --pid --fork --mount-proc)
  ((EUID == 0)) || words=(unshare --user --map-current-user --pid --fork --mount-proc)
  "${words[@]}" true 2> /dev/null || return 77
  "${words[@]}" "$@"
}

hosts() {
  local link=$1 mtu=$2 gid tries path_mtu=4096
  ((mtu >= 4192)) || path_mtu=1024
  "$ROCEMU" lab up --name "$lab" --hosts 2 --link "$link" --mtu "$mtu"
  trap end_lab EXIT
  grep -qE "active_mtu:[[:space:]]+$path_mtu " < <(on h1 ibv_devinfo) || fail "the path MTU is not $path_mtu"
  local gids=(1 2 0)  # IPv4, IPv6, link-local
  [[ $link == udp ]] && gids=(0 1)
  for gid in "${gids[@]}"; do pair h1 ibv_rc_pingpong -g "$gid" -c -n 200; done
  pair 10.99.0.1 ib_write_bw -F -n 500
  pair h1 ib_read_bw -F -n 500
  pair h1 ib_write_bw -F -n 200 -q 4 -b
  pair h1 ib_send_lat -F -n 100
  # Each address family with one of the MTUs.
  local place=0
  [[ $link == udp ]] || place=1
  if ((mtu == 9000)); then programs 10.99.0.1 "$place"; else programs fd99::1 "$((place + 1))"; fi
  check_counters
  if [[ $link == interface ]]; then
    # Beside each other: mckey sleeps for three seconds once it has joined.
    local groups=()
    group 10.99.0.1 239.77.0.1 &
    groups+=($!)
    group fd99::1 ff15::77 &
    groups+=($!)
    wait "${groups[0]}"
    wait "${groups[1]}"
    check_tagged
    check_follows
    pair h1 ib_send_bw -F -n 100
  fi
  [[ $("$ROCEMU" lab exec --name "$lab" --share-memory h1 -- printenv ROCEMU_SHARE_MEMORY) == 1 ]] ||
    fail "lab exec --share-memory does not set the variable"
  [[ $(cd /usr/share && on h1 pwd) == /usr/share ]] || fail "lab exec leaves the working directory"
  from_afar "$ROCEMU" lab down --name "$lab" 2> /dev/null && fail "lab down of processes that it cannot see"
  on h1 true || fail "the lab is down"
  start_stubborn
  local folder
  folder=$("$ROCEMU" lab exec --name "$lab" h1 -- printenv ROCEMU_LAB)
  [[ -d $folder ]] || fail "ROCEMU_LAB is not the lab's folder: $folder"
  "$ROCEMU" lab down --name "$lab"
  trap - EXIT
  for ((tries = 0; tries < 50; ++tries)); do
    kill -0 "$stubborn" 2> /dev/null || break  # killed, and this shell has been told
    sleep 0.1
  done
  ! kill -0 "$stubborn" 2> /dev/null || fail "lab down left a program"
  [[ ! -e $folder ]] || fail "lab down left files"
}

# A program on h2 that SIGTERM does not end; sets `stubborn`.
start_stubborn() {
  "$ROCEMU" lab exec --name "$lab" h2 -- sh -c "trap '' TERM; while :; do sleep 1; done" &
  stubborn=$!
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    ! grep -q '^SigIgn:.*[4-7c-f]...$' "/proc/$stubborn/status" || break
    sleep 0.1
  done
}

# The kernel gives the numbers of namespaces that have gone to the next ones.
neighbours() {
  "$ROCEMU" lab up --name "$lab" --hosts 2 --link udp
  trap 'for name in "$lab" "$lab"-{1,2,3}; do "$ROCEMU" lab down --name "$name" > /dev/null 2>&1 || true; done' EXIT
  start_stubborn
  "$ROCEMU" lab down --name "$lab" &
  local ending=$! number
  for number in 1 2 3; do
    "$ROCEMU" lab up --name="$lab-$number" --hosts=1 --link=udp --shake=completions,seed="$number"
  done
  wait "$ending"
  for number in 1 2 3; do
    grep -q PORT_ACTIVE < <("$ROCEMU" lab exec --name "$lab-$number" h1 -- ibv_devinfo) ||
      fail "lab down harmed another lab"
    grep -q "shake completions,strength=50,seed=$number\$" \
      < <("$ROCEMU" lab exec --name "$lab-$number" h1 -- "$ROCEMU" status) || fail "it is not shaken as asked for"
  done
}

networks() {
  if [[ -z ${ROCEMU_TEST_INSIDE:-} ]]; then
    ROCEMU_TEST_INSIDE=1 exec unshare "${user[@]}" --net --kill-child --fork "$self" networks
  fi
  dir=$(mktemp -d /tmp/rocemu-networks-XXXXXX)
  export XDG_RUNTIME_DIR=$dir
  trap 'end_networks' EXIT
  unshare --net sleep 300 &
  far=$!
  for ((tries = 0; tries < 100; ++tries)); do
    [[ /proc/$far/ns/net -ef /proc/self/ns/net ]] || break
    sleep 0.1
  done
  cable eth0 192.168.1.2/24 192.168.1.9/24
  cable eth1 192.168.2.2/24 192.168.2.9/24
  ip route add default via 192.168.1.9
  on_far ip address add 172.16.5.5/32 dev eth0
  "$ROCEMU" up --name near --port rocemu0=eth0 --port rocemu1=eth1
  on_far "$ROCEMU" up --name far --port rocemu0=eth0 --port rocemu1=eth1
  on() {  # h1 is the far side
    local nic=near there=()
    [[ $1 != h1 ]] || nic=far there=(on_far)
    shift
    "${there[@]}" timeout 60 "$ROCEMU" exec --name "$nic" -- "$@"
  }
  cm_server_waits() { ! grep -q '"listeners": \[\]' < <("$ROCEMU" status --name far --json); }
  local address
  for address in 192.168.1.9 192.168.2.9 172.16.5.5; do
    cm_pair rping -s -a "$address" -C 10 -V -- rping -c -a "$address" -C 10 -V
  done
}
on_far() { nsenter --target "$far" --net -- "$@"; }
cable() {  # INTERFACE ADDRESS FAR_ADDRESS
  ip link add "$1" type veth peer name "$1" netns "$far"
  ip address add "$2" dev "$1"
  ip link set "$1" up
  on_far ip address add "$3" dev "$1"
  on_far ip link set "$1" up
}
end_networks() {
  local nic
  for nic in near far; do "$ROCEMU" down --name "$nic" > /dev/null 2>&1 || true; done
  kill "$far" || true
  rm -rf "$dir"
}

errors() {
  refused 'there is no such interface' nosuch0
  refused 'no Ethernet interface' lo
  refused 'is no address of this machine' udp:192.0.2.1
  refused 'is no IP address' udp:localhost
  refused 'is no port' eth0/1
  # Two NICs of one machine over its loopback interface.
  "$ROCEMU" run --port rocemu0=udp:127.0.0.1 --port rocemu1=udp:127.0.0.2 -- \
    "${self%/*}/../tools/pair.py" --server rocemu0 --client rocemu1 --forbid 'invalid data' -- ibv_rc_pingpong -g 0 -c -n 100
  # shellcheck disable=SC2016 # expanded inside
  unshare "${user[@]}" --net bash -euc '
    ip link add down0 type veth peer name down1
    "$ROCEMU" run --port rocemu0=down0 -- true 2>&1 | grep -F "bring it up first"'
  if [[ $(id -u) != 0 ]]; then
    local interface
    interface=$(ip -o link show up | awk -F'[:@ ]+' '!/loopback/ && !found++ { print $2 }')
    [[ -n $interface ]] && refused 'CAP_NET_RAW' "$interface"
  fi
  return 0
}

case ${1:-} in
  interface | udp) hosts "$1" "$2" ;;
  mixed) mixed "$2" ;;
  networks | errors | neighbours) "$1" ;;
  *) fail "interface, udp, mixed, networks, errors or neighbours?" ;;
esac
