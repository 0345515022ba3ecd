#!/usr/bin/env bash
# Builds releases of rdma-core that no distribution here has, and runs their own programs and pyverbs suites over the
# release of rocemu.
#
#   scripts/rdma_core_releases.sh TARBALL CLONE RELEASE...      (57 58 64, or 57.1: without a point, the last of its stable ones)
#
# TARBALL is of scripts/release.sh, CLONE a git directory of rdma-core with its tags. Builds are kept in
# ROCEMU_RDMA_CORES (/var/tmp/rocemu-rdma-cores). Needs what rdma-core does, Debian's packages cmake, ninja-build, gcc,
# pkg-config, libnl-3-dev, libnl-route-3-dev, libudev-dev, python3-dev and cython3, and for the suites network namespaces.
# Prints a line for each release, and fails when something did not run.
set -euo pipefail
tests=$(dirname "$(realpath "$0")")/../tests/e2e/pyverbs

if [[ ${1:-} == --help || ${1:-} == -h || $# -lt 3 ]]; then
  sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
  [[ ${1:-} == --help || ${1:-} == -h ]] && exit 0 || exit 2
fi
tarball=$(realpath "$1")
clone=$(realpath "$2")
shift 2
builds=${ROCEMU_RDMA_CORES:-/var/tmp/rocemu-rdma-cores}
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
tar xzf "$tarball" -C "$unpacked"
rocemu=$(echo "$unpacked"/rocemu-*/bin/rocemu)

# TAG FOLDER: builds it there, once. The log is FOLDER.log.
build() {
  [[ -e $2/.complete ]] && return
  rm -rf "$2"
  mkdir -p "$2/source"
  git -C "$clone" archive "$1" | tar x -C "$2/source"
  {
    # The python is that which runs the suite. gcc of today warns of more than that of then.
    cmake -S "$2/source" -B "$2/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DIN_PLACE=1 -DNO_MAN_PAGES=1 -DENABLE_WERROR=0 \
      -DPython_EXECUTABLE=/usr/bin/python3 -DPYTHON_EXECUTABLE=/usr/bin/python3 &&
      cmake --build "$2/build" && touch "$2/.complete"
  } > "$2.log" 2>&1
}

# FOLDER: its programs, and its suite's last line.
run() {
  local program in_nic=(timeout 100 "$rocemu" run)
  "${in_nic[@]}" -- "$1/build/bin/ibv_devinfo" -v > "$1.log" 2>&1 || return
  for program in rc uc ud srq xsrq; do
    program=$1/build/bin/ibv_${program}_pingpong
    "${in_nic[@]}" --server "$program -g 1 -d rocemu0" -- "$program" -g 1 -d rocemu1 localhost > "$1.log" 2>&1 || return
  done
  "${in_nic[@]}" --server "$1/build/bin/rping -s -a 10.77.0.1 -C 10" -- \
    "$1/build/bin/rping" -c -a 10.77.0.1 -C 10 > "$1.log" 2>&1 || return
  ROCEMU=$rocemu PYTHONPATH=$1/build/python LD_LIBRARY_PATH=$1/build/lib timeout 600 \
    "$tests/run.py" --any-release --suite "$1/source/tests" > "$1.log" 2>&1
}

status=0
for release in "$@"; do
  tag=v$release
  [[ $release == *.* ]] || tag=$(git -C "$clone" tag --list "v$release.*" --sort=version:refname | tail -n 1)
  folder=$builds/$tag
  if [[ -z $tag ]] || ! git -C "$clone" rev-parse --quiet --verify "$tag^{commit}" > /dev/null; then
    echo "rdma-core $release: FAILED, $clone has no such tag"
    status=1
  elif ! build "$tag" "$folder"; then
    tail -n 3 "$folder.log"
    echo "rdma-core $release: FAILED, it does not build: $folder.log"
    status=1
  elif ! run "$folder"; then
    grep -v '^skipped' "$folder.log" | tail -n 12
    echo "rdma-core $release: FAILED: $folder.log"
    status=1
  else
    echo "rdma-core ${tag#v}: ibv_devinfo, pingpongs (RC, UC, UD, SRQ, XRC), rping ran; pyverbs: $(tail -n 1 "$folder.log")"
  fi
done
exit "$status"
