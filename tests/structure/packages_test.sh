#!/usr/bin/env bash
# packaging/ makes packages and an image of a small tree: what is in them, what they depend on, the same bytes each time.
#   packages_test.sh PROJECT SHARE_FOLDER
# What this machine has no tool for is named and not checked.
set -euo pipefail
project=$1
share=$2
export SOURCE_DATE_EPOCH=1700000000

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "packages_test.sh: $*"
  exit 1
}
# WHAT TEXT: the text has that line, or a part of one.
has() { [[ $2 == *"$1"* ]] || fail "there is no '$1' in: $2"; }

tree=$work/tree
mkdir -p "$tree"/{bin,include/rocemu,lib/rocemu,lib/python3/dist-packages/rocemu,share/doc/rocemu,share/rocemu}
for program in rocemu rocemud rocemu-lab-wire rocemu-script-agent; do cp /bin/true "$tree/bin/$program"; done
cp -L "$(cc -print-file-name=libmnl.so)" "$tree/lib/rocemu/libmnl.so.0"
cp "$project"/{LICENSE,README.md,CHANGELOG.md} "$tree/"
cp "$project"/emulator/congestion/include/rocemu/congestion.h "$tree/include/rocemu/"
touch "$tree/lib/python3/dist-packages/rocemu/__init__.py" "$tree/share/doc/rocemu/architecture.md" "$tree/share/rocemu/anything"
cp -r "$share/." "$tree/share/"

# KIND: makes it in two folders, at two times and with two masks.
make() {
  "$project/packaging/$1/make.sh" "$tree" 1.2.3 "$work/once"
  find "$tree" -exec touch {} +
  (umask 077 && "$project/packaging/$1/make.sh" "$tree" 1.2.3 "$work/again")
  diff -r "$work/once" "$work/again" || fail "$1: other bytes when it is made again"
}

if command -v dpkg-deb > /dev/null; then
  make deb
  deb=$(echo "$work"/once/*.deb)
  has "libc6 (>= 2." "$(dpkg-deb --field "$deb" Depends)"
  has "libibverbs1" "$(dpkg-deb --field "$deb" Recommends)"
  files=$(dpkg-deb --contents "$deb")
  for file in bin/rocemu lib/rocemu/libmnl.so.0 share/man/man1/rocemu.1.gz share/man/man8/rocemud.8.gz \
      share/man/man5/rocemu.toml.5.gz share/bash-completion/completions/rocemu share/zsh/vendor-completions/_rocemu \
      lib/systemd/system/rocemu@.service share/doc/rocemu/copyright share/doc/rocemu/changelog.gz; do
    has " ./usr/$file" "$files"
  done
  dpkg-deb --extract "$deb" "$work/unpacked"
  unit=$(< "$work/unpacked/usr/lib/systemd/system/rocemu@.service")
  has "ExecStart=/usr/bin/rocemu up" "$unit"
  [[ $unit != */usr/local/* ]] || fail "the unit looks in /usr/local"
  has "Redistribution and use" "$(< "$work/unpacked/usr/share/doc/rocemu/copyright")"
else
  echo "SKIPPED: the .deb, for there is no dpkg-deb"
fi

if command -v rpmbuild > /dev/null; then
  make rpm
  rpm=$(echo "$work"/once/*.rpm)
  files=$(rpm --query --package --list "$rpm")
  for file in bin/rocemu share/man/man1/rocemu.1.gz share/rocemu/anything; do has "/usr/$file" "$files"; done
  wants=$(rpm --query --package --requires "$rpm")
  has "libc.so.6" "$wants"
  [[ $wants != *libmnl* && $(rpm --query --package --provides "$rpm") != *libmnl* ]] || fail "the .rpm shares its own library"
else
  echo "SKIPPED: the .rpm, for there is no rpmbuild"
fi

if command -v umoci > /dev/null; then
  make image
  mkdir "$work/layout"
  tar --extract --file "$work"/once/*.tar --directory "$work/layout"
  umoci unpack --rootless --image "$work/layout:rocemu:1.2.3" "$work/bundle" > /dev/null
  cmp "$work/bundle/rootfs/usr/local/bin/rocemu" /bin/true
  [[ $(cd "$work/bundle/rootfs" && echo *) == usr ]] || fail "the image has more in it than /usr"
else
  echo "SKIPPED: the image, for there is no umoci"
fi
