#!/usr/bin/env bash
# Unmodified RDMA programs over a private NIC.
#
#   run_program.sh [--full] [--user] CASE...     run_program.sh --list
#
#   --full   the whole number of iterations; without it just enough to see that it works
#   --user   as an ordinary user without any capability (to be started by root)
#
# ROCEMU names the rocemu command to use (default: the one in PATH). Each case gets its own NIC and
# passes, fails, or is skipped (exit code 77) with a word on what is missing.
set -euo pipefail

readonly skipped=77
self=$(readlink -f "$0")
here=$(dirname "$self")
ROCEMU=${ROCEMU:-rocemu}
export ROCEMU
full=no
inside=no

fail() {
  echo "FAIL $*"
  exit 1
}

skip() {
  echo "SKIP: $*"
  exit "$skipped"
}

need_program() {
  command -v "$1" > /dev/null || skip "$1 is missing (Debian package $2)"
}

# iterations QUICK FULL
iterations() { [[ $full == yes ]] && echo "$2" || echo "$1"; }

pair() { "$here/../tools/pair.py" "$@"; }

# ---- what a case runs, inside its NIC ----

list_devices() {
  local text
  text=$(ibv_devices)
  echo "$text"
  local name
  for name in rocemu0 rocemu1; do
    grep -qE "^ *${name}[[:space:]]+[0-9a-f]{16}\$" <<< "$text" || fail "ibv_devices does not list $name with a GUID"
    ! grep -qE "^ *${name}[[:space:]]+0{16}\$" <<< "$text" || fail "$name has the GUID 0"
  done
}

# The fields of `ibv_devinfo -v` that programs decide by.
check_devinfo() {
  local name=$1 ipv4=$2 text
  text=$(ibv_devinfo -v -d "$name")
  echo "$text"
  field() { grep -qE "$1" <<< "$text" || fail "ibv_devinfo -v -d $name: no line like $1"; }
  field "^hca_id:[[:space:]]+$name\$"
  field 'transport:[[:space:]]+InfiniBand \(0\)'
  field 'fw_ver:[[:space:]]+[^[:space:]]+'
  field 'node_guid:[[:space:]]+[0-9a-f:]*[1-9a-f]'
  field 'sys_image_guid:[[:space:]]+[0-9a-f:]*[1-9a-f]'
  field 'vendor_id:[[:space:]]+0x[0-9a-f]+'
  field 'phys_port_cnt:[[:space:]]+1$'
  field 'max_mr_size:[[:space:]]+0x[1-9a-f][0-9a-f]*'
  field 'page_size_cap:[[:space:]]+0x[1-9a-f][0-9a-f]*'
  local limit
  for limit in max_qp max_qp_wr max_sge max_sge_rd max_cq max_cqe max_mr max_pd max_qp_rd_atom \
    max_res_rd_atom max_qp_init_rd_atom max_pkeys num_comp_vectors; do
    field "$limit:[[:space:]]+[1-9][0-9]*\$"
  done
  field 'atomic_cap:[[:space:]]+ATOMIC_'
  field 'state:[[:space:]]+PORT_ACTIVE \(4\)'
  field 'max_mtu:[[:space:]]+4096 \(5\)'
  field 'active_mtu:[[:space:]]+4096 \(5\)'
  field 'link_layer:[[:space:]]+Ethernet'
  field 'max_msg_sz:[[:space:]]+0x[1-9a-f][0-9a-f]*'
  field 'pkey_tbl_len:[[:space:]]+[1-9]'
  field 'gid_tbl_len:[[:space:]]+[1-9]'
  field 'active_width:[[:space:]]+[0-9]+X'
  field 'active_speed:[[:space:]]+[0-9.]+ Gbps'
  field 'phys_state:[[:space:]]+LINK_UP \(5\)'
  field 'GID\[ *0\]:[[:space:]]+fe80:[0-9a-f:]+, RoCE v2'
  field "GID\\[ *1\\]:[[:space:]]+::ffff:$ipv4, RoCE v2"
  field 'GID\[ *2\]:[[:space:]]+f[cd][0-9a-f:]+, RoCE v2'
}

show_devices() {
  [[ $(ibv_devices | awk 'NR == 3 { print $1 }') == rocemu0 ]] || fail "rocemu0 is not the first device"
  check_devinfo rocemu0 10.77.0.1
  check_devinfo rocemu1 10.77.0.2
}

both_ways() {
  pair --server rocemu0 --client rocemu1 --forbid 'invalid data' -- "$@"
  pair --server rocemu1 --client rocemu0 --forbid 'invalid data' -- "$@"
}

pingpong() { both_ways ibv_rc_pingpong "$@"; }

pingpong_sizes() {
  local size
  for size in 1 4096 1048576; do
    pingpong -g 1 -c -s "$size" -n "$(iterations 200 1000)"
  done
}

pingpong_mtus() {
  local mtu
  for mtu in 256 512 1024 2048 4096; do
    pingpong -g 1 -c -m "$mtu" -s 65536 -n "$(iterations 100 1000)"
  done
}

pingpong_gids() {
  local gid
  for gid in 0 1 2; do
    pingpong -g "$gid" -c -n "$(iterations 200 1000)"
  done
}

pingpong_events() { pingpong -g 1 -c -e -n "$(iterations 500 1000)"; }
pingpong_many() { pingpong -g 1 -c -n "$(iterations 2000 10000)"; }

# Waits for background jobs and fails when one of them did.
all_of() {
  local job status=0
  for job in "$@"; do
    wait "$job" || status=1
  done
  return "$status"
}

# Pairs beside each other, up to `finish`: perftest's programs spend their time asleep and measuring the processor's
# frequency.
beside=()
also() {
  pair --timeout "$(iterations 60 600)" "$@" &
  beside+=($!)
}
finish() {
  all_of "${beside[@]}"
  beside=()
}

# perftest, one program in one variant: a server on rocemu0, the client on rocemu1
perftest() {
  local program=$1 variant=$2 arguments
  case $variant in
    all) arguments=(-a -n "$(iterations 10 1000)") ;;
    bidirectional) arguments=(-b -n "$(iterations 500 5000)") ;;
    qps) arguments=(-q 8 -n "$(iterations 200 1000)") ;;
    mtu256) arguments=(-m 256 -n "$(iterations 200 1000)") ;;
    events) arguments=(-e -n "$(iterations 500 5000)") ;;
    inline) arguments=(-I 64 -s 64 -n "$(iterations 1000 5000)") ;;
    *) fail "no variant '$variant' of $program" ;;
  esac
  pair --timeout "$(iterations 60 600)" -- "$program" -F "${arguments[@]}"
}

# With -a the tool measures the processor's frequency for each of 23 sizes, which takes most of its time.
latency() {
  if [[ $full == yes ]]; then
    pair --timeout 600 -- "$1" -F -a
    return
  fi
  local size
  for size in 2 64 4096 65536 8388608; do
    pair -- "$1" -F -s "$size" -n 100
  done
}

# The other services: rdma-core's examples.
pingpong_ud() {
  local gid size
  for gid in 0 1 2; do both_ways ibv_ud_pingpong -g "$gid" -n "$(iterations 200 1000)"; done
  for size in 1 1024 4056; do both_ways ibv_ud_pingpong -g 1 -s "$size" -n "$(iterations 200 1000)"; done
  both_ways ibv_ud_pingpong -g 1 -e -n "$(iterations 200 1000)"
}

pingpong_uc() {
  local size
  for size in 1 4096 1048576; do
    both_ways ibv_uc_pingpong -g 1 -c -s "$size" -n "$(iterations 100 1000)"
  done
  both_ways ibv_uc_pingpong -g 1 -c -e -n "$(iterations 200 1000)"
  both_ways ibv_uc_pingpong -g 2 -c -m 256 -n "$(iterations 200 1000)"
}

pingpong_srq() {
  both_ways ibv_srq_pingpong -g 1 -c -n "$(iterations 500 5000)"
  both_ways ibv_srq_pingpong -g 1 -c -e -q 4 -s 65536 -n "$(iterations 200 1000)"
}

# Its -c is the number of clients.
pingpong_xsrq() {
  both_ways ibv_xsrq_pingpong -g 1 -n "$(iterations 20 1000)"
  both_ways ibv_xsrq_pingpong -g 1 -e -s 65536 -n "$(iterations 20 1000)"
}

# perftest over SERVICE: every program that has it
service() {
  local service=$1 program count
  count=$(iterations 200 1000)
  case $service in
    UD)
      for program in ib_send_bw ib_send_lat; do
        also -- "$program" -F -c UD -n "$count"
        also -- "$program" -F -c UD -e -x 2 -s 1000 -n "$count"
      done
      also -- ib_send_bw -F -c UD -b -n "$count"
      also -- ib_send_bw -F -c UD -q 16 -s 256 -n "$count"
      also --client rocemu0 -- ib_send_bw -F -c UD -n "$count"
      finish
      # -g: a multicast group, which is that of both
      pair -- ib_send_bw -F -c UD -g -x 0 -n "$count"
      pair -- ib_send_lat -F -c UD -g -x 2 -n "$count"
      ;;
    UC)
      for program in ib_send_bw ib_write_bw ib_send_lat ib_write_lat; do
        also -- "$program" -F -c UC -n "$count"
      done
      also -- ib_write_bw -F -c UC -b -q 16 -n "$(iterations 50 500)"
      also -- ib_send_bw -F -c UC -m 256 -s 5000 -n "$count"
      also --client rocemu0 -- ib_write_bw -F -c UC -n "$count"
      ;;
    XRC)
      for program in ib_send_bw ib_write_bw ib_read_bw ib_send_lat ib_write_lat ib_read_lat; do
        also -- "$program" -F -c XRC -n "$count"
      done
      also -- ib_atomic_bw -F -c XRC -n "$count"
      also -- ib_send_bw -F -c XRC -b -q 16 -n "$(iterations 50 500)"
      ;;
    SRQ)
      also -- ib_send_bw -F --use-srq -n "$count"
      also -- ib_send_bw -F --use-srq -q 16 -n "$(iterations 100 500)"
      also -- ib_send_lat -F --use-srq -n "$count"
      also -- ib_send_bw -F -c UD --use-srq -n "$count"
      ;;
    *) fail "no service '$service'" ;;
  esac
  finish
}

# One device to itself.
to_itself() {
  also --client rocemu0 -- ibv_rc_pingpong -g 1 -c -n "$(iterations 200 1000)"
  local program
  for program in ib_send_bw ib_write_bw ib_read_bw; do
    also --client rocemu0 -- "$program" -F -n "$(iterations 200 1000)"
  done
  finish
}

eight_pairs() {
  local jobs=() i programs=(ib_send_bw ib_write_bw ib_read_bw)
  for i in 0 1 2 3 4 5 6 7; do
    pair --timeout 240 --server "rocemu$((i % 2))" --client "rocemu$(((i + 1) % 2))" -- \
      "${programs[i % 3]}" -F -n "$(iterations 100 1000)" &
    jobs+=($!)
  done
  all_of "${jobs[@]}"
}

three_devices() {
  local jobs=() server client
  for server in rocemu0 rocemu1 rocemu2; do
    for client in rocemu0 rocemu1 rocemu2; do
      pair --timeout 240 --server "$server" --client "$client" -- \
        ib_write_bw -F -n "$(iterations 100 1000)" &
      jobs+=($!)
      pair --timeout 240 --server "$server" --client "$client" -- \
        ibv_rc_pingpong -g 1 -c -n "$(iterations 100 1000)" &
      jobs+=($!)
    done
  done
  all_of "${jobs[@]}"
}

# ---- captures: the pair runs inside, the capture is examined when the NIC is gone ----

capture_traffic() {
  local program=$1
  pair -- "$program" -F -n 20 -s 10000 -x 1
  pair -- "$program" -F -n 20 -s 10000 -x 0
  pair -- "$program" -F -n 20 -s 10000 -m 256 -x 2
}

# FIRST, MIDDLE, LAST of the program's operation, and what answers them
opcodes_of() {
  case $1 in
    ib_send_bw) echo 0,1,2,17 ;;
    ib_write_bw) echo 6,7,8,17 ;;
    ib_read_bw) echo 12,13,14,15 ;;
  esac
}

capture() {
  local program=$1 folder
  folder=$(mktemp -d)
  # shellcheck disable=SC2064 # the folder of now
  trap "rm -rf '$folder'" EXIT
  "$ROCEMU" run --pcap "$folder/wire.pcap" -- "$self" --inside "capture-inside:$program" || return
  "$here/../tools/check_pcap.py" --require "$(opcodes_of "$program")" "$folder/wire.pcap"
}

# ---- the cases ----

cases=(devices devinfo
  pingpong-sizes pingpong-mtus pingpong-gids pingpong-events pingpong-many
  pingpong-ud pingpong-uc pingpong-srq pingpong-xsrq service:{UD,UC,XRC,SRQ}
  ib_send_bw:{all,bidirectional,qps,mtu256,events,inline}
  ib_write_bw:{all,bidirectional,qps,mtu256,inline}
  ib_read_bw:{all,bidirectional,qps,mtu256}
  ib_send_lat ib_write_lat ib_read_lat
  to-itself eight-pairs three-devices
  capture:{ib_send_bw,ib_write_bw,ib_read_bw})

need_programs_of() {
  case $1 in
    devices) need_program ibv_devices ibverbs-utils ;;
    devinfo) need_program ibv_devinfo ibverbs-utils ;;
    pingpong-*) need_program ibv_rc_pingpong ibverbs-utils ;;
    *) need_program ib_write_bw perftest && need_program ibv_rc_pingpong ibverbs-utils ;;
  esac
}

run_inside() {
  case $1 in
    devices) list_devices ;;
    devinfo) show_devices ;;
    pingpong-*) "pingpong_${1#*-}" ;;
    service:*) service "${1##*:}" ;;
    ib_*_bw:*) perftest "${1%%:*}" "${1##*:}" ;;
    ib_*_lat) latency "$1" ;;
    to-itself) to_itself ;;
    eight-pairs) eight_pairs ;;
    three-devices) three_devices ;;
    capture-inside:*) capture_traffic "${1##*:}" ;;
    *) fail "no case '$1'; see --list" ;;
  esac
}

run_case() {
  need_programs_of "$1"
  local options=() devices=2
  [[ $full == yes ]] && options+=(--full)
  [[ $1 == three-devices ]] && devices=3
  case $1 in
    capture:*) capture "${1##*:}" ;;
    *) "$ROCEMU" run --devices "$devices" -- "$self" "${options[@]}" --inside "$1" ;;
  esac
}

ordinary_user() {
  setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all \
    --no-new-privs env -u XDG_RUNTIME_DIR HOME=/ "$@"
}

run_as_ordinary_user() {
  [[ $(id -u) == 0 ]] || skip "not root: everything runs as an ordinary user already"
  need_program setpriv util-linux
  ordinary_user test -r "$self" || skip "an ordinary user cannot read $self"
  ordinary_user "$ROCEMU" version > /dev/null || skip "an ordinary user cannot run $ROCEMU"
  ordinary_user "$self" "$@"
}

options=()
while (($# > 0)); do
  case $1 in
    --full) full=yes && options+=(--full) ;;
    --inside) inside=yes ;;
    --user)
      shift
      code=0
      run_as_ordinary_user "${options[@]}" "$@" || code=$?
      exit "$code"
      ;;
    --list) printf '%s\n' "${cases[@]}" && exit 0 ;;
    --*) fail "unknown option $1" ;;
    *) break ;;
  esac
  shift
done
(($# > 0)) || fail "no case; see --list"

if [[ $inside == yes ]]; then
  run_inside "$1"
  exit 0
fi
status=0
for name in "$@"; do
  code=0
  (run_case "$name") || code=$?
  if ((code != 0)); then
    echo "$name: exit code $code"
    ((status == 1)) || status=$code
    ((code == skipped)) || status=1
  fi
done
exit "$status"
