#!/usr/bin/env bash
# Makes the release of this machine's architecture, or of arm64 on x86-64: a tarball that runs where it is unpacked, as any user, with
# every glibc from Debian 11's (2.31) on, packages and an image of the same files, an SBOM, and checksums; lintian and rpmlint
# have nothing to say of the packages.
#
#   scripts/release.sh [--arm64] [FOLDER]      (build/dist)
#
# --arm64 compiles with Debian's cross compiler and the libraries of scripts/arm64.sh.
# On Debian 12, as root, since debootstrap wants it: it gets the glibc to link with. SOURCE_DATE_EPOCH, or else the
# time of the last commit, is the time of all files. docs/release.md says what comes out.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."

oldest_glibc=2.31
packages=(build release)
preset=release
root=/
work=$PWD/build/portable
architecture=$(dpkg --print-architecture)
triplet=$(uname -m)-linux-gnu
while [[ ${1:-} == -* ]]; do
  case $1 in
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$self" && exit 0 ;;
    --arm64)
      packages=(arm64 release)
      preset=arm64
      export ROCEMU_ARM64_CACHE=${ROCEMU_ARM64_CACHE:-$HOME/.cache/rocemu-arm64}
      root=$ROCEMU_ARM64_CACHE/root
      work+=-arm64
      architecture=arm64
      triplet=aarch64-linux-gnu
      ;;
    *) echo "release.sh: unknown option '$1'; see --help" >&2 && exit 2 ;;
  esac
  shift
done
dist=$(realpath -m "${1:-build/dist}")
sysroot=$work/sysroot
# Found out by an assignment of its own, so that this ends here where git cannot say.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
# Paths are the compiler's to rewrite (cmake/release.cmake): what ccache makes of them depends on the machine.
export CCACHE_BASEDIR=

step() { printf '\n==> %s\n' "$*"; }

# The libc of Debian 11, with its absolute links made to stay inside.
make_sysroot() {
  local stage=$work/debian deb link
  [[ -e $sysroot/complete ]] && return
  rm -rf "$stage" "$sysroot"
  mkdir -p "$work"
  debootstrap --arch="$architecture" --foreign --variant=minbase --include=libc6-dev bullseye "$stage" > "$work/debootstrap.log"
  for deb in "$stage"/var/cache/apt/archives/libc6{,-dev}_*.deb; do dpkg-deb -x "$deb" "$sysroot"; done
  rm -rf "$stage"
  while read -r link; do ln -sfn "$sysroot$(readlink "$link")" "$link"; done < <(find "$sysroot" -type l -lname '/*')
  # One folder, which comes before this machine's.
  ln -s "$sysroot"/lib/*-linux-gnu/*.so.* "$sysroot"/usr/lib/*-linux-gnu/
  touch "$sysroot/complete"
}

step "Packages"
./scripts/packages.sh "${packages[@]}"
[[ $preset == arm64 ]] && ./scripts/arm64.sh --root

step "The glibc of Debian 11 (into $sysroot)"
make_sysroot

step "Build (into $work)"
cmake --preset "$preset" -B "$work" -DBUILD_TESTING=OFF -DCMAKE_INSTALL_LIBDIR=lib -DROCEMU_RELEASE_SYSROOT="$sysroot"
cmake --build "$work"

step "Install"
version=$(sed -nE 's/^project\(rocemu VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
stage=$work/installed
rm -rf "$stage"
cmake --install "$work" --prefix "$stage" --strip > "$work/install.log"
for library in libisal.so.2 libmnl.so.0; do
  cp -L "$root/usr/lib/$triplet/$library" "$stage/lib/rocemu/"
done
./scripts/check-glibc.sh "$oldest_glibc" "$stage"/bin/* "$stage"/lib/rocemu/*.so*

step "Packages of it (into $dist)"
./packaging/make.sh "$work" "$stage" "$version" "$dist" "$root"

step "What lintian and rpmlint say"
lintian --fail-on error,warning "$dist"/rocemu_"$version"_"$architecture".deb
rpmlint --strict --config packaging/rpm/rpmlint.toml "$dist"/rocemu-"$version"-*."${triplet%%-*}".rpm
