#!/usr/bin/env bash
# Runs the release in roots of distributions, over each one's own rdma-core and perftest, as an ordinary user.
#
#   scripts/distributions.sh TARBALL NAME...      NAME: bullseye, bookworm, trixie, sid, ...
#
# As root, since debootstrap wants it. Roots are kept in ROCEMU_ROOTS (/var/tmp/rocemu-roots). Prints a line for each
# distribution, and fails when something did not run.
set -euo pipefail
tarball=$(realpath "${1:?the tarball of scripts/release.sh}")
shift
roots=${ROCEMU_ROOTS:-/var/tmp/rocemu-roots}

# NAME: makes its root, once.
make_root() {
  local root=$roots/$1
  [[ -e $root/.complete ]] && return
  mkdir -p "$roots"
  [[ -e $root/usr/bin/apt-get ]] || debootstrap --variant=minbase "$1" "$root" > "$roots/$1.log"
  cp -L /etc/resolv.conf "$root/etc/"
  echo "127.0.0.1 localhost" > "$root/etc/hosts"
  DEBIAN_FRONTEND=noninteractive chroot "$root" bash -c \
    'apt-get -q update && apt-get -q -y install --no-install-recommends ibverbs-utils perftest rdmacm-utils' \
    >> "$roots/$1.log" 2>&1
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

# NAME: its line.
try() {
  local root=$roots/$1 said glibc rdma_core hundredths
  make_root "$1"
  cp "$tarball" "$root/rocemu.tar.gz"
  glibc=$(chroot "$root" dpkg-query --show --showformat='${Version}' libc6)
  rdma_core=$(chroot "$root" dpkg-query --show --showformat='${Version}' libibverbs1)
  # Mounts of a namespace of its own go with it.
  if ! said=$(unshare --mount bash -c '
      mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm" &&
      chroot "$0" setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$1"' "$root" "$inside"); then
    printf '%s: FAILED\n%s\n' "$1" "$said"
    return 1
  fi
  hundredths=$(sed -n 's/^seconds //p' <<< "$said")
  printf '%-10s glibc %-22s rdma-core %-12s all ran; %d.%02d s from the tarball to the end of ib_write_bw\n' \
    "$1" "$glibc" "$rdma_core" $((hundredths / 100)) $((hundredths % 100))
}

status=0
for name in "$@"; do try "$name" || status=1; done
exit "$status"
