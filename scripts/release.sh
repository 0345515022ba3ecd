#!/usr/bin/env bash
# Makes the release of this machine's architecture: a tarball that runs where it is unpacked, as any user, with
# every glibc from Debian 11's (2.31) on, and its checksum.
#
#   scripts/release.sh [FOLDER]      (build/dist)
#
# On Debian 12, as root, since debootstrap wants it: it gets the glibc to link with. SOURCE_DATE_EPOCH, or else the
# time of the last commit, is the time of all files.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath -m "${1:-build/dist}")

oldest_glibc=2.31
work=$PWD/build/portable
sysroot=$work/sysroot
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

step() { printf '\n==> %s\n' "$*"; }

# The libc of Debian 11, with its absolute links made to stay inside.
make_sysroot() {
  local stage=$work/debian deb link
  [[ -e $sysroot/complete ]] && return
  rm -rf "$stage" "$sysroot"
  mkdir -p "$work"
  debootstrap --foreign --variant=minbase --include=libc6-dev bullseye "$stage" > "$work/debootstrap.log"
  for deb in "$stage"/var/cache/apt/archives/libc6{,-dev}_*.deb; do dpkg-deb -x "$deb" "$sysroot"; done
  rm -rf "$stage"
  while read -r link; do ln -sfn "$sysroot$(readlink "$link")" "$link"; done < <(find "$sysroot" -type l -lname '/*')
  # One folder, which comes before this machine's.
  ln -s "$sysroot"/lib/*-linux-gnu/*.so.* "$sysroot"/usr/lib/*-linux-gnu/
  touch "$sysroot/complete"
}

step "Packages"
./scripts/packages.sh build release

step "The glibc of Debian 11 (into $sysroot)"
make_sysroot

step "Build (into $work)"
cmake --preset release -B "$work" -DBUILD_TESTING=OFF -DCMAKE_INSTALL_LIBDIR=lib -DROCEMU_RELEASE_SYSROOT="$sysroot"
cmake --build "$work"

step "Tarball"
version=$(sed -nE 's/^project\(rocemu VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
name=rocemu-$version-linux-$(uname -m)
stage=$work/$name
rm -rf "$stage"
cmake --install "$work" --prefix "$stage" --strip > "$work/install.log"
cp LICENSE README.md "$stage/"
for library in libisal.so.2 libmnl.so.0; do
  cp -L "/usr/lib/$(uname -m)-linux-gnu/$library" "$stage/lib/rocemu/"
done
./scripts/check-glibc.sh "$oldest_glibc" "$stage"/bin/* "$stage"/lib/rocemu/*.so*
mkdir -p "$dist"
tar --create --directory "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  --mode=go=rX,u+rw "$name" | gzip -9n > "$dist/$name.tar.gz"
(cd "$dist" && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
ls -l "$dist/$name.tar.gz"
