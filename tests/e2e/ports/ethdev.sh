#!/usr/bin/env bash
# Unmodified RDMA programs over ports on DPDK's own Ethernet devices (--port DEVICE=vdev:...).
#
#   ethdev.sh [--user] memif      two NICs joined by shared memory, without any privilege
#   ethdev.sh [--user] reconnect  the same: who starts first, an end that goes and comes back, links
#   ethdev.sh [--user] tap        a NIC on a tap; the kernel, and a NIC on the tap's interface, at its other end
#   ethdev.sh [--user] af_packet  a NIC by DPDK's packet sockets on one end of a veth, an interface port on the other
#   ethdev.sh [--user] vlan       two NICs by packet sockets, in one VLAN and in two
#   ethdev.sh [--user] errors     what a port that cannot be had says
#
#   --user   as an ordinary user without any capability (started by root); tap, af_packet and vlan in a
#            user namespace
#
# ROCEMU names the rocemu command to use (default: the one in PATH). Exit code 77: skipped.
set -euo pipefail

# shellcheck source=../tools/namespaces.sh
source "$(dirname "$0")/../tools/namespaces.sh"
as_user_if_asked "$@"
need ib_write_bw:perftest ibv_rc_pingpong:ibverbs-utils rping:rdmacm-utils

need_driver() {
  compgen -G "/usr/lib/*/dpdk/pmds-*/librte_$1.so" > /dev/null ||
    skip "DPDK's driver $1 is missing (Debian package librte-${1//_/-}23)"
}
# Everything but memif needs interfaces, and so a network namespace.
case ${1:-} in
  tap | af_packet | vlan)
    need ip:iproute2
    if [[ -z ${ROCEMU_TEST_INSIDE:-} ]]; then
      need_namespaces --net
      ROCEMU_TEST_INSIDE=1 exec unshare "${user[@]}" --net "$self" "$@"
    fi
    ip link set lo up
    ;;
esac

dir=$(mktemp -d /tmp/rocemu-ethdev-XXXXXX)
export XDG_RUNTIME_DIR=$dir
end() {
  local nic
  for nic in a b c; do "$ROCEMU" down --name "$nic" > /dev/null 2>&1 || true; done
  rm -rf "$dir"
}
trap end EXIT

show_logs() {
  local nic
  for nic in a b; do cat "$dir/$nic.log" "$dir/rocemu/$nic/log" 2> /dev/null || true; done
}

up() {  # NIC PORT [OPTION...]
  local nic=$1 port=$2
  shift 2
  "$ROCEMU" up --name "$nic" --port "rocemu0=$port" "$@" > "$dir/$nic.log" 2>&1 || { show_logs; fail "NIC $nic on $port"; }
}
on() {
  local nic=$1
  shift
  timeout 60 "$ROCEMU" exec --name "$nic" -- "$@"
}

# until_true SECONDS COMMAND...
until_true() {
  local tries
  for ((tries = $1 * 20; tries > 0; --tries)); do
    "${@:2}" && return 0
    sleep 0.05
  done
  return 1
}
is_active() { grep -q PORT_ACTIVE < <(on "$1" ibv_devinfo 2> /dev/null); }
is_down() { grep -q PORT_DOWN < <(on "$1" ibv_devinfo 2> /dev/null); }
wait_active() { until_true 8 is_active "$1" || fail "the port of NIC $1 does not come up"; }
wait_down() { until_true 8 is_down "$1" || fail "the port of NIC $1 does not go down"; }

port=$((20000 + $$ % 20000))  # others test at the same time
listens() { grep -qiE ":$(printf %04X "$port") [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6; }

# pair PROGRAM...: a server on NIC a, the client on NIC b
pair() {
  local server log=$dir/pair
  echo "== $*"
  port=$((port + 1))
  on a "$@" -p "$port" > "$log.server" 2>&1 &
  server=$!
  until_true 10 listens || { show_logs; cat "$log.server"; fail "server of $1"; }
  on b "$@" -p "$port" 127.0.0.1 > "$log.client" 2>&1 || { show_logs; cat "$log.server" "$log.client"; fail "client of $1"; }
  wait "$server" || { cat "$log.server"; fail "server of $1"; }
  ! grep -q 'invalid data' "$log.server" "$log.client" || fail "$1: other data than was sent"
  tail -n 2 "$log.client"
}

# shellcheck source=../cm/cm_pair.sh
source "$(dirname "$0")/../cm/cm_pair.sh"
cm_server_host=a cm_client_host=b
cm_server_waits() { ! grep -q '"listeners": \[\]' < <("$ROCEMU" status --name a --json); }

counter() { sed -n "/\"$2\": /{s/.*: \([0-9]*\).*/\1/p;q}" < <("$ROCEMU" status --name "$1" --json); }
check_counters() {
  local nic name
  for nic in a b; do
    for name in rx_malformed rx_icrc_errors dropped_malformed dropped_queue_full; do
      [[ $(counter "$nic" "$name") == 0 ]] || { "$ROCEMU" status --name "$nic" --json; fail "$nic: $name"; }
    done
  done
}

# programs IPV4 IPV6: one of each kind
programs() {
  local gid
  for gid in 0 1 2; do pair ibv_rc_pingpong -g "$gid" -c -n 200 -s 10000; done
  pair ib_write_bw -F -x 1 -n 500
  pair ib_read_bw -F -x 2 -n 500 -b -q 2
  pair ib_send_bw -F -x 1 -n 300 -s 100001 -b
  pair ib_send_lat -F -x 2 -n 200
  pair ib_atomic_bw -F -x 1 -n 200
  pair ib_send_lat -F -x 1 -c UD -n 100
  cm_pair rping -s -a "$1" -C 10 -V -- rping -c -a "$1" -C 10 -V
  cm_pair rping -s -a "$2" -C 10 -V -- rping -c -a "$2" -C 10 -V
  cm_pair udaddy -b "$1" -- udaddy -s "$1"
}

# connects_to_nobody ADDRESS: rping on NIC b gets a connection, for which it needs a tenth of a second where somebody is.
# Where nobody is it goes on trying for much longer than anybody would wait here.
connects_to_nobody() { on b timeout 5 rping -c -a "$1" -C 1 > "$dir/nobody" 2>&1; }

are_joined() { (($(sed -n '/"groups": /{s/.*: \([0-9]*\).*/\1/p;q}' < <("$ROCEMU" status --name a --json)) >= $1)); }

# group GROUP ADDRESS_A ADDRESS_B [GROUPS]: a is a member, b sends; GROUPS (default: 1) are tried at the same time
group() {
  local receiver log=$dir/group-$1
  echo "== mckey $1"
  on a mckey -m "$1" -b "$2" > "$log" 2>&1 &
  receiver=$!
  until_true 10 are_joined "${4:-1}" || { cat "$log"; fail "a has not joined $1"; }
  sleep 0.3  # the QP is attached after the group is joined
  on b mckey -m "$1" -b "$3" -s > "$log.client" 2>&1 || { cat "$log.client"; fail "sender to $1"; }
  wait "$receiver" || { cat "$log"; fail "receiver from $1"; }
  grep -q 'data transfers complete' "$log" || { cat "$log"; fail "receiver from $1"; }
}

mac_of() { sed -n '/"mac": /{s/.*"\([0-9a-f:]*\)".*/\1/p;q}' < <("$ROCEMU" status --name "$1" --json); }

# raw COMMAND...: what a raw packet QP on NIC a gets while COMMAND runs, whose last frame has the EtherType 88b6
raw_frames=${self%/*}/../lab/raw_frames.py
raw() {
  local collector frames=$dir/frames
  on a "$raw_frames" collect > "$frames" 2>&1 &
  collector=$!
  until_true 10 grep -q ready "$frames" || { cat "$frames"; fail "no raw packet QP on NIC a"; }
  "$@"
  wait "$collector" || { cat "$frames"; fail "the raw packet QP on NIC a"; }
}
has_pyverbs() {
  /usr/bin/python3 -c 'import pyverbs.qp' 2> /dev/null ||
    { echo "SKIP of raw packets: rdma-core's Python bindings are missing (Debian package python3-pyverbs)"; false; }
}

# Raw packet QPs at both ends, by rdma-core's Python bindings and by perftest.
raw_packets() {
  has_pyverbs || return 0
  local mac_a mac_b head frame
  mac_a=$(mac_of a) mac_b=$(mac_of b)
  head=${mac_a//:/}${mac_b//:/}
  frame=${head}88b5$(printf '%0100d' 7)
  sends() {
    on b raw_ethernet_bw -F -n 1000 -s 1024 --client -E "$mac_a" -B "$mac_b" || fail "raw_ethernet_bw"
    on b "$raw_frames" send "$frame" "${head}88b6$(printf '%0100d' 0)"
  }
  raw sends
  grep -qx "$frame" "$dir/frames" || { cat "$dir/frames"; fail "not the frame that was sent"; }
  (($(grep -c "^$head" "$dir/frames") >= 64)) || { cat "$dir/frames"; fail "not the frames of raw_ethernet_bw"; }
}

memif_port() {  # ROLE ADDRESS
  echo "vdev:net_memif0,role=$1,socket=$dir/memif,socket-abstract=no@$2"
}

memif() {
  need_driver net_memif
  up a "$(memif_port server 10.88.0.1/24+fd88::1/64)"
  up b "$(memif_port client 10.88.0.2/24+fd88::2/64)"
  wait_active a
  wait_active b
  grep -qE 'active_mtu:[[:space:]]+4096 ' < <(on b ibv_devinfo) || fail "the path MTU is not 4096"
  programs 10.88.0.1 fd88::1
  # Beside each other: mckey sleeps for three seconds once it has joined.
  group 239.88.0.1 10.88.0.1 10.88.0.2 2 &
  local other=$!
  group ff15::88 fd88::1 fd88::2 2
  wait "$other"
  check_counters
  raw_packets
  # Nobody is there.
  ! connects_to_nobody 10.88.0.77 || fail "a connection to nobody"
}

reconnect() {
  need_driver net_memif
  # The client first; a is the server.
  up b "$(memif_port client 10.88.0.2/24+fd88::2/64)"
  wait_down b
  up a "$(memif_port server 10.88.0.1/24+fd88::1/64)"
  wait_active b
  wait_active a
  pair ib_write_bw -F -x 1 -n 500
  "$ROCEMU" down --name a > /dev/null
  wait_down b
  # The driver does not remove its socket.
  up a "$(memif_port server 10.88.0.1/24+fd88::1/64)"
  wait_active b
  wait_active a
  pair ib_write_bw -F -x 1 -n 500
  # Links and captures are those of any port.
  "$ROCEMU" link set --name b rocemu0 loss=2%
  pair ib_send_bw -F -x 1 -n 500
  [[ $("$ROCEMU" link show --name b) == *loss=2%* ]] || fail "rocemu link does not show what was set"
  # A NIC that ends while frames are under way to it.
  "$ROCEMU" link set --name b rocemu0 delay=300ms
  port=$((port + 1))
  on a ib_write_bw -F -x 1 -p "$port" > /dev/null 2>&1 &
  until_true 10 listens || fail "server of ib_write_bw"
  on b ib_write_bw -F -x 1 -p "$port" 127.0.0.1 > /dev/null 2>&1 &
  sleep 3
  "$ROCEMU" down --name b > /dev/null
  wait
  ! grep -qiE 'error|panic|signal' "$dir/rocemu/a/log" || { show_logs; fail "NIC a complains"; }
  wait_down a
  up b "$(memif_port client 10.88.0.2/24+fd88::2/64)"
  wait_active b
  wait_active a
  "$ROCEMU" down --name b > /dev/null
  wait_down a
  up b "$(memif_port client 10.88.0.2/24+fd88::2/64)" --pcap "$dir/wire.pcap"
  wait_active b
  wait_active a
  pair ib_send_bw -F -x 1 -n 50
  "$ROCEMU" down --name b > /dev/null
  if /usr/bin/python3 -c 'import scapy' 2> /dev/null && command -v tshark > /dev/null; then
    "${self%/*}/../tools/check_pcap.py" "$dir/wire.pcap"
  else
    echo "SKIP of the capture's check: scapy or tshark is missing"
  fi
  # Both have the same address when nobody says otherwise: that is told.
  up b "$(memif_port client 10.88.0.1/24)"
  wait_active b
  warned() { grep -q '10.88.0.1 is also the address of' "$dir"/rocemu/[ab]/log; }
  until_true 5 warned || fail "nobody says that an address is there twice"
}

# Three answers to ping, by either IP: ping ADDRESS4 ADDRESS6
ping() {
  /usr/bin/python3 - "$@" << 'END'
import socket, struct, sys

def checksum(data):
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff

def ping(address, family, protocol, request, reply, skip):
    with socket.socket(family, socket.SOCK_RAW, protocol) as raw:
        raw.settimeout(5)
        for sequence in range(3):
            message = struct.pack(">BBHHH", request, 0, 0, 77, sequence) + b"rocemu" * 100
            if family == socket.AF_INET:
                message = message[:2] + struct.pack(">H", checksum(message)) + message[4:]
            raw.sendto(message, (address, 0))
            while True:
                answer = raw.recv(2000)[skip:]
                if answer[0] == reply:
                    break
            assert answer[4:] == message[4:], "another answer than was asked for"
    print("ping", address, "3 answers")

ping(sys.argv[1], socket.AF_INET, socket.IPPROTO_ICMP, 8, 0, 20)
ping(sys.argv[2], socket.AF_INET6, socket.IPPROTO_ICMPV6, 128, 129, 0)
END
}

# The NIC answers, and the raw packet QP has copies of the questions.
ping_and_end() {
  ping 10.88.0.1 fd88::1
  /usr/bin/python3 -c 'import socket
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("tap0", 0))
sender.send(b"\xff" * 6 + bytes((2, 0, 0, 0, 0, 9)) + b"\x88\xb6" + bytes(46))'
}

# net_tap takes neither a frame that is longer than its MTU nor those behind it: such frames are lost before it sees them.
longer_than_mtu() {
  local head=02000000000902000000000a short long frames=()
  short=${head}88b5$(printf '%092d' 0) long=${head}88b5$(printf '%03200d' 0)
  for _ in {1..20}; do frames+=("$long" "$short"); done
  up c vdev:net_tap1,iface=tap1@10.89.0.1/24,mtu=1500
  ip link set tap1 up
  wait_active c
  /usr/bin/python3 -c 'import socket
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.bind(("tap1", 0))
wire.settimeout(30)
print("ready", flush=True)
lengths = []
while True:
    frame = wire.recv(4000)
    if frame[12:14] == b"\x88\xb6": break
    if frame[12:14] == b"\x88\xb5": lengths.append(len(frame))
assert lengths == [60] * 20, lengths' > "$dir/lengths" 2>&1 &
  local wire=$!
  until_true 10 grep -q ready "$dir/lengths" || { cat "$dir/lengths"; fail "nobody listens on tap1"; }
  on c "$raw_frames" send "${frames[@]}" "${head}88b6$(printf '%092d' 0)" || fail "the raw packet QP on NIC c"
  wait "$wire" || { cat "$dir/lengths"; fail "not the frames that the MTU lets pass"; }
  "$ROCEMU" down --name c > /dev/null
}

tap() {
  need_driver net_tap
  [[ -r /dev/net/tun && -w /dev/net/tun ]] || skip "/dev/net/tun cannot be opened"
  up a vdev:net_tap0,iface=tap0@10.88.0.1/24+fd88::1/64,gateway=10.88.0.2+fd88::2
  ip link set tap0 up
  ip address add 10.88.0.2/24 dev tap0
  ip address add fd88::2/64 dev tap0 nodad
  wait_active a
  ping 10.88.0.1 fd88::1
  if has_pyverbs; then
    raw ping_and_end
    (($(grep -c "726f63656d75" "$dir/frames") == 6)) || { cat "$dir/frames"; fail "not the pings"; }
    longer_than_mtu
  fi
  # STALE or DELAY if it was the NIC that asked first.
  grep -q '10.88.0.1 .*lladdr' < <(ip neigh show dev tap0) || fail "the kernel does not know the NIC's MAC"
  # The kernel finds out that an address is taken.
  ip address add fd88::1/64 dev tap0
  until_true 5 eval 'grep -q "fd88::1/64.*dadfailed" < <(ip address show dev tap0)' ||
    fail "the kernel takes the NIC's address for itself"
  ip address del fd88::1/64 dev tap0
  up b tap0
  programs 10.88.0.1 fd88::1
  group 239.88.0.1 10.88.0.1 10.88.0.2
  check_counters
  is_active a || fail "a port that is up"
  ip link set tap0 down
  wait_down b
  ip link set tap0 up
  wait_active b
  # A device that is deleted takes no time of the NIC's.
  "$ROCEMU" down --name b > /dev/null
  ip link delete tap0
  wait_down a
  local pid before after
  pid=$("$ROCEMU" status --name a --json | sed -n 's/.*"pid": \([0-9]*\).*/\1/p')
  sleep 1
  before=$(ticks "$pid")
  sleep 2
  after=$(ticks "$pid")
  ((after - before <= 10)) || fail "a NIC on a device that is gone uses $((after - before)) % of two seconds"
}
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

veth() {
  ip link add e0 mtu 9000 type veth peer name e1 mtu 9000
  ip link set e0 up
  ip link set e1 up
}
packet_socket() { echo "vdev:net_af_packet0,iface=$1,framesz=8192,blocksz=8192@$2"; }

af_packet() {
  need_driver net_af_packet
  veth
  ip address add 10.88.0.2/24 dev e1
  ip address add fd88::2/64 dev e1 nodad
  up a "$(packet_socket e0 10.88.0.1/24+fd88::1/64,mtu=4200)"
  up b e1 --pcap "$dir/wire.pcap"  # without GSO batches, which the driver does not take
  wait_active a
  grep -qE 'active_mtu:[[:space:]]+4096 ' < <(on a ibv_devinfo) || fail "the path MTU is not 4096"
  programs 10.88.0.1 fd88::1
  group 239.88.0.1 10.88.0.1 10.88.0.2
  check_counters
  ping 10.88.0.1 fd88::1
}

vlan() {
  need_driver net_af_packet
  veth
  up a "$(packet_socket e0 10.88.0.1/24+fd88::1/64,vlan=7)"
  up b "$(packet_socket e1 10.88.0.2/24+fd88::2/64,vlan=7)"
  wait_active a
  wait_active b
  programs 10.88.0.1 fd88::1
  check_counters
  "$ROCEMU" down --name b > /dev/null
  up b "$(packet_socket e1 10.88.0.2/24+fd88::2/64,vlan=8)"
  wait_active b
  ! connects_to_nobody 10.88.0.1 || fail "a connection into another VLAN"
}

errors() {
  need_driver net_memif
  need_driver net_ring
  refused 'DPDK has no driver for this name' vdev:net_nosuch0
  refused 'does not take it' "vdev:net_memif0,role=judge"
  refused 'does not take it' "vdev:net_memif0,socket-abstract=no,socket=/nowhere/memif"
  refused 'is no address that a port can have' vdev:net_ring0@eth0
  refused 'is in no network' vdev:net_ring0@10.0.0.1/24,gateway=10.0.1.1
  refused 'no such PCI device' pci:7fff:00:00.0
  refused 'is no PCI address' pci:eth0
  text=$("$ROCEMU" run --port rocemu0=vdev:net_ring0@10.0.0.1 --port rocemu1=vdev:net_ring0@10.0.0.2 -- true 2>&1) &&
    fail "two ports on one device"
  grep -qF "another port's already" <<< "$text" || fail "two ports on one device: $text"
}

case ${1:-} in
  memif | reconnect | tap | af_packet | vlan | errors) "$1" ;;
  *) fail "memif, reconnect, tap, af_packet, vlan or errors?" ;;
esac
echo "PASS"
