#!/usr/bin/env bash
# Runs the release in roots of distributions, over each one's own rdma-core and perftest, as an ordinary user: with its NIC
# there, and over a NIC outside, as from one container to another.
#
#   scripts/distributions.sh [--pyverbs] [--deb] [--source] TARBALL NAME... [-- CTEST-OPTION...]
#
#   TARBALL    of scripts/release.sh; - with --source: none, and that alone is run
#   NAME       bullseye, bookworm, trixie, sid, ...
#   --pyverbs  also run the distribution's pyverbs suite there over the tarball, as root
#   --deb      also install the .deb that lies beside the tarball there, use it as an ordinary user, and purge it: nothing is left
#   --source   also run what is committed here there: scripts/quickstart.sh and scripts/test.sh, with the options
#              of ctest; an hour on two cores
#
# As root, since debootstrap wants it. Roots are kept in ROCEMU_ROOTS (/var/tmp/rocemu-roots), and beside them a log for
# each. Prints a line or more for each distribution, and fails when something did not run. Releases of rdma-core that no
# distribution at hand has are built and run by scripts/rdma_core_releases.sh.
set -euo pipefail
here=$(dirname "$(realpath "$0")")/..
roots=${ROCEMU_ROOTS:-/var/tmp/rocemu-roots}

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; }
with_pyverbs=false
with_deb=false
with_source=false
while [[ ${1:-} == -?* ]]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --pyverbs) with_pyverbs=true ;;
    --deb) with_deb=true ;;
    --source) with_source=true ;;
    *) echo "distributions.sh: unknown option '$1'; see --help" >&2 && exit 2 ;;
  esac
  shift
done
(($# >= 2)) || { usage >&2 && exit 2; }
tarball=
if [[ $1 != - ]]; then
  tarball=$(realpath "$1")
elif ! "$with_source" || "$with_pyverbs" || "$with_deb"; then
  echo "distributions.sh: without a tarball there is --source alone; see --help" >&2 && exit 2
fi
shift
names=()
while (($# > 0)) && [[ $1 != -- ]]; do names+=("$1") && shift; done
ctest_options=("${@:2}")

# NAME: makes its root, once. Of a mirror that has not been brought up to date for long the packages do as well.
make_root() {
  local root=$roots/$1
  [[ -e $root/.complete ]] && return
  mkdir -p "$roots"
  if ! { [[ -e $root/usr/bin/apt-get ]] || debootstrap --variant=minbase "$1" "$root"; } > "$roots/$1.log" 2>&1 ||
    ! echo 'Acquire::Check-Valid-Until "false";' > "$root/etc/apt/apt.conf.d/80old-mirror" ||
    ! cp -L /etc/resolv.conf "$root/etc/" || ! echo "127.0.0.1 localhost" > "$root/etc/hosts" ||
    ! DEBIAN_FRONTEND=noninteractive chroot "$root" bash -c '
        apt-get -q update &&
        apt-get -q -y install --no-install-recommends ibverbs-utils perftest rdmacm-utils' >> "$roots/$1.log" 2>&1; then
    tail -n 3 "$roots/$1.log"
    printf '%s: FAILED, no root could be made: %s\n' "$1" "$roots/$1.log"
    return 1
  fi
  touch "$root/.complete"
}

# What runs in the root. Prints how many seconds passed from the tarball to ib_write_bw's end.
inside='
set -euo pipefail
exec 2>&1
cd "$(mktemp -d)"
export HOME=$PWD XDG_RUNTIME_DIR=$PWD
begin=$(date +%s%N)
tar xzf /rocemu.tar.gz
export PATH=$(echo "$PWD"/rocemu-*/bin):$PATH
run() { timeout 100 rocemu run "$@" > log || { cat log; echo "failed: $*"; exit 1; }; }
run --server "ib_write_bw -d rocemu0" -- ib_write_bw -d rocemu1 localhost
echo "seconds $((($(date +%s%N) - begin) / 10000000))"
run -- ibv_devinfo -v
run --server "ibv_rc_pingpong -d rocemu0 -g 1" -- ibv_rc_pingpong -d rocemu1 -g 1 localhost
run --server "ib_send_lat -d rocemu0 -n 1000" -- ib_send_lat -d rocemu1 -n 1000 localhost
run --server "ib_read_bw -d rocemu0 -n 1000" -- ib_read_bw -d rocemu1 -n 1000 localhost
run --server "rping -s -a 10.77.0.1 -C 10" -- rping -c -a 10.77.0.1 -C 10
'

# The same over a NIC outside, whose state directory is mounted at /nic, from another PID namespace.
inside_apart='
set -euo pipefail
exec 2>&1
cd "$(mktemp -d)"
tar xzf /rocemu.tar.gz
rocemu=$(echo "$PWD"/rocemu-*/bin/rocemu)
run() { timeout 100 "$rocemu" exec --socket /nic/nic.sock -- "$@" > log || { cat log; echo "failed over a NIC outside: $*"; exit 1; }; }
run ibv_devinfo -v
for program in "ibv_rc_pingpong -g 1" "ibv_rc_pingpong -g 1 -e" ib_write_bw; do
  run bash -c "$program -d rocemu0 > server & for i in {1..50}; do
    $program -d rocemu1 localhost > client 2>&1 && wait \$! && exit; sleep 0.2; done; cat client; exit 1"
done
'

user=(setpriv --reuid 65534 --regid 65534 --clear-groups)

# ROOT COMMAND...: runs it there. The mounts are those of a namespace of its own, and go with it.
in_root() {
  # shellcheck disable=SC2016  # what the inner shell expands
  unshare --mount bash -c '
      mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm" &&
      mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts" && mount --rbind /sys "$0/sys" &&
      mount -t tmpfs -o mode=1777 tmpfs "$0/tmp" &&
      chroot "$0" "$@"' "$@"
}

# ROOT: runs inside_apart there. The NIC is one of this machine's.
try_apart() (
  outside=$(mktemp -d)
  trap 'rm -rf "$outside"' EXIT
  chown 65534:65534 "$outside"
  nic=("${user[@]}" env XDG_RUNTIME_DIR="$outside" HOME="$outside")
  "${nic[@]}" tar xz -C "$outside" < "$tarball" || return
  nic+=("$(echo "$outside"/rocemu-*/bin/rocemu)")
  trap '"${nic[@]}" down --name apart > "$outside/log" 2>&1; rm -rf "$outside"' EXIT
  "${nic[@]}" up --name apart > "$outside/log" 2>&1 || { cat "$outside/log" && return 1; }
  mkdir -p "$1/nic"
  unshare --mount --pid --fork --kill-child bash -c '
      mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm" &&
      mount -t tmpfs -o mode=1777 tmpfs "$0/tmp" && mount --bind "$1/rocemu/apart" "$0/nic" && shift &&
      chroot "$0" "$@"' "$1" "$outside" "${user[@]}" bash -c "$inside_apart"
)

# ROOT LOG: its suite's last line, behind what failed.
try_pyverbs() {
  DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -q -y install --no-install-recommends python3-pyverbs iproute2 > "$2" 2>&1 || return
  rm -rf "$1/pyverbs"
  cp -r "$here/tests/e2e/pyverbs" "$1/pyverbs"
  # shellcheck disable=SC2016
  in_root "$1" bash -c 'cd "$(mktemp -d)" && tar xzf /rocemu.tar.gz && export HOME=$PWD XDG_RUNTIME_DIR=$PWD &&
    ROCEMU=$(echo "$PWD"/rocemu-*/bin/rocemu) timeout 600 /pyverbs/run.py --any-release' > "$2" 2>&1 || {
    grep '^FAIL ' "$2"
    return 1
  }
  tail -n 1 "$2"
}

# ROOT LOG
try_deb() {
  local release
  release=$(basename "$tarball" .tar.gz)
  release=${release#rocemu-}
  cp "$(dirname "$tarball")/rocemu_${release%%-*}_$(dpkg --print-architecture).deb" "$1/rocemu.deb" || return
  # shellcheck disable=SC2016
  in_root "$1" bash -c '
      set -euo pipefail
      files() { find /etc /opt /usr /var/lib/systemd -xdev | sort; }
      files > /tmp/before
      dpkg --install /rocemu.deb
      (cd /tmp && HOME=/tmp setpriv --reuid 65534 --regid 65534 --clear-groups \
        timeout 100 rocemu run --server "ib_write_bw -d rocemu0" -- ib_write_bw -d rocemu1 localhost)
      dpkg --purge rocemu
      files | diff /tmp/before -' > "$2" 2>&1 || {
    tail -n 5 "$2"
    return 1
  }
  echo "installed, used, purged; nothing is left"
}

# ROOT LOG: the two commands of the README there, as they are committed; packages as root, the rest as a user.
try_source() {
  local source=$1/home/rocemu
  rm -rf "$source"
  mkdir -p "$source"
  git -C "$here" archive HEAD | tar x -C "$source"
  chown -R 65534:65534 "$source"
  # shellcheck disable=SC2016
  { in_root "$1" bash -c 'cd /home/rocemu && ./scripts/packages.sh test' &&
    in_root "$1" "${user[@]}" bash -c 'cd /home/rocemu && export HOME=$PWD && ./scripts/quickstart.sh && ./scripts/test.sh -- "$@"' \
      bash "${ctest_options[@]}"; } > "$2" 2>&1 || {
    grep -E '^E:|error:|FAILED|\(Failed\)|\(Timeout\)|tests passed' "$2" | tail -n 20
    return 1
  }
  grep -E 'tests passed|^NOT RUN' "$2" | tail -n 2
}

# NAME WHAT COMMAND: what the command said of its root.
say() {
  local log=$roots/$1-$2.log said
  if said=$("$3" "$roots/$1" "$log"); then
    printf '%-10s %s: %s\n' "$1" "$2" "$(paste -sd ' ' <<< "$said")"
  else
    printf '%-10s %s: FAILED (%s)\n%s\n' "$1" "$2" "$log" "$said"
    return 1
  fi
}

# NAME: its line.
try() {
  local root=$roots/$1 said apart glibc rdma_core hundredths
  cp "$tarball" "$root/rocemu.tar.gz"
  glibc=$(chroot "$root" dpkg-query --show --showformat='${Version}' libc6)
  rdma_core=$(chroot "$root" dpkg-query --show --showformat='${Version}' libibverbs1)
  if ! said=$(in_root "$root" "${user[@]}" bash -c "$inside") ||
    ! apart=$(try_apart "$root"); then
    printf '%s: FAILED\n%s\n' "$1" "$said${apart:-}"
    return 1
  fi
  hundredths=$(sed -n 's/^seconds //p' <<< "$said")
  printf '%-10s glibc %-22s rdma-core %-12s all ran, over a NIC outside, too; %d.%02d s from the tarball to the end of ib_write_bw\n' \
    "$1" "$glibc" "$rdma_core" $((hundredths / 100)) $((hundredths % 100))
}

status=0
for name in "${names[@]}"; do
  make_root "$name" || { status=1 && continue; }
  [[ -z $tarball ]] || try "$name" || { status=1 && continue; }
  ! "$with_pyverbs" || say "$name" pyverbs try_pyverbs || status=1
  ! "$with_deb" || say "$name" deb try_deb || status=1
  ! "$with_source" || say "$name" source try_source || status=1
done
exit "$status"
