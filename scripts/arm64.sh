#!/usr/bin/env bash
# Builds for arm64 on another architecture, and runs there what qemu-user can run: unit, sim, scripts and fuzz.
#
#   scripts/arm64.sh [--root] [--build] [-- CTEST-OPTION...]
#   scripts/arm64.sh --machine [OPTION...]
#
#   --root     only make the root with Debian's libraries and headers for arm64
#   --build    only make it and build (into build/arm64)
#   --machine  build the NIC, and run unmodified programs over it in a virtual machine (options: --short, --only REGEX,
#              --list); its kernel and programs, 150 MB, come from the same mirror into ~/.cache/rocemu-interop
#
# The root is kept in ~/.cache/rocemu-arm64 (ROCEMU_ARM64_CACHE). Its packages, 550 MB unpacked, come from where this
# machine's apt has its own; neither root's rights nor a change of this system's packages are needed for it. Exit codes:
# 0 all well, 1 or ctest's own something failed, 2 unknown options. What qemu-user cannot do: docs/testing.md.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$self"; }
fail() {
  echo "arm64.sh: $*" >&2
  exit 1
}
step() { printf '\n==> %s\n' "$*"; }

last=test
while (($# > 0)); do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --root) last=root ;;
    --build) last=build ;;
    --machine) last=machine && shift && break ;;
    --) shift && break ;;
    *) echo "arm64.sh: unknown option '$1'; see --help" >&2 && exit 2 ;;
  esac
  shift
done

export ROCEMU_ARM64_CACHE=${ROCEMU_ARM64_CACHE:-$HOME/.cache/rocemu-arm64}
root=$ROCEMU_ARM64_CACHE/root

# apt-get for arm64 that takes no package for installed, and locks and writes nothing outside of folder `work`.
apt_get() {
  apt-get -qq -y --no-install-recommends -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
    -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache::archives="$work/archives" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User= -o Debug::NoLocking=1 \
    -o Acquire::Retries=3 "$@" > "$work/apt.log" 2>&1 ||
    fail "apt-get ${*: -1} failed: $(grep -m 3 '^E:' "$work/apt.log" || tail -n 1 "$work/apt.log")"
}

# DEB: notes in the root that is being made what dpkg would, so that dpkg-query --admindir tells which file is of what.
note_package() {
  local dpkg=$work/root/var/lib/dpkg
  { dpkg-deb --field "$1" && printf 'Status: install ok installed\n\n'; } >> "$dpkg/status"
  dpkg-deb --fsys-tarfile "$1" | tar t | sed -e 's|^\./$|/.|' -e 's|^\.||' -e 's|/$||' > "$dpkg/info/$(dpkg-deb --field "$1" Package).list"
}

# PACKAGE...: unpacked into `root`, with those they depend on.
make_root() {
  local work=$ROCEMU_ARM64_CACHE/work folder deb link
  rm -rf "$work" "$root"
  mkdir -p "$work"/{lists,archives}/partial "$work/root"
  touch "$work/status"
  mkdir -p "$work/root/var/lib/dpkg/info"
  echo "the list of packages"
  apt_get update
  echo "packages"
  apt_get --download-only install "$@"
  echo "unpacking $(find "$work/archives" -name '*.deb' | wc -l) packages"
  # As Debian's roots have it since 12; packages may still have files in the folders of old.
  for folder in bin lib sbin; do
    mkdir -p "$work/root/usr/$folder"
    ln -s "usr/$folder" "$work/root/$folder"
  done
  for deb in "$work"/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar x --keep-directory-symlink --no-same-owner -C "$work/root"
    note_package "$deb"
  done
  # What links to a file by its whole path, means that of the root.
  while read -r link; do
    ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$work/root$(readlink "$link")")" "$link"
  done < <(find "$work/root" -type l -lname '/*')
  printf '%s\n' "$@" > "$work/root/packages"
  mv "$work/root" "$root"
  rm -rf "$work"
}

step "Packages"
./scripts/packages.sh arm64

step "Debian's libraries for arm64 (into $root)"
mapfile -t wanted < <({ ./scripts/packages.sh --names build release && echo libc6-dev librdmacm-dev catch2; } | tr ' ' '\n' |
  grep -E '^lib|-dev$|^catch2$')
if [[ -e $root/var/lib/dpkg/status && $(cat "$root/packages" 2> /dev/null) == "$(printf '%s\n' "${wanted[@]}")" ]]; then
  echo "all there"
else
  make_root "${wanted[@]}"
fi
[[ $last == root ]] && exit 0

step "Build (into build/arm64)"
cmake --preset arm64
if [[ $last == machine ]]; then
  cmake --build --preset arm64 --target rocemu rocemud rocemu_bench stress verbs verb_table bad_input
  step "Virtual machine"
  exec ./tests/interop/run_arm64.py build/arm64 "$@"
fi
cmake --build --preset arm64
[[ $last == build ]] && exit 0

step "Tests"
left_out=$(grep -v -e '^#' -e '^$' tests/not_under_qemu_user.txt | paste -sd '|')
list() { ctest --preset arm64 --show-only "$@" | sed -n 's/^Total Tests: //p'; }
all=$(list)
few=$(list --exclude-regex "$left_out")
echo "of $all tests $((all - few)) are left out, which qemu-user cannot run: tests/not_under_qemu_user.txt says why"
ctest --preset arm64 --exclude-regex "$left_out" "$@"
