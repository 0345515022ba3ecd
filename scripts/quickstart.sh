#!/usr/bin/env bash
# From a clone to figures: installs packages, builds, and runs three of perftest's programs between
# two emulated NICs. Needs no answer to anything; fails with a non-zero code. When the packages are
# there an ordinary user can run it.
#
#   scripts/quickstart.sh
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."

case ${1:-} in
  '') ;;
  -h | --help) sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$self" && exit 0 ;;
  *) echo "quickstart.sh: takes no arguments; see --help" >&2 && exit 2 ;;
esac

rocemu=build/release/bin/rocemu
limit_s=120 # for one measurement

step() { printf '\n==> %s\n' "$*"; }

# TOOL SIZE ITERATIONS: shows the program's own table and sets $row to its last line.
show() {
  local tool=$1 size=$2 iterations=$3 output table
  local port=$((20000 + RANDOM % 10000))
  step "$tool, messages of $size bytes, rocemu1 to rocemu0"
  local words=(-p "$port" -F -s "$size" -n "$iterations")
  if ! output=$(timeout "$limit_s" "$rocemu" run --server "$tool -d rocemu0 ${words[*]} > /dev/null" -- \
      "$tool" -d rocemu1 "${words[@]}" 127.0.0.1 2>&1) ||
      ! table=$(grep -A1 '#bytes' <<< "$output"); then
    printf '%s\n' "$output" >&2
    echo "quickstart.sh: $tool failed" >&2
    exit 1
  fi
  printf '%s\n' "$table"
  row=${table##*$'\n'}
}

step "Packages"
./scripts/packages.sh build run

step "Build (into build/release)"
cmake --preset release -DBUILD_TESTING=OFF
cmake --build --preset release

step "Devices"
"$rocemu" run -- ibv_devices

show ib_write_bw 65536 20000
write_bw=$(awk '{print $4}' <<< "$row")
show ib_read_bw 65536 20000
read_bw=$(awk '{print $4}' <<< "$row")
show ib_send_lat 8 20000
send_lat=$(awk '{print $5}' <<< "$row")

step "Done"
printf '%-12s %10s MiB/s\n%-12s %10s MiB/s\n%-12s %10s us, typical, one way\n' \
  ib_write_bw "$write_bw" ib_read_bw "$read_bw" ib_send_lat "$send_lat"
echo
echo "Your own programs: $rocemu run -- PROGRAM     (more: $rocemu --help)"
