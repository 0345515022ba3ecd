#!/usr/bin/env bash
# Makes a Debian package of an installed tree.
#
#   packaging/deb/make.sh TREE VERSION OUT
#
# SOURCE_DATE_EPOCH is the time of all that is in it. dpkg-shlibdeps would want the libc6 of the machine that this is
# made on, so the one that is needed is found in the files' symbols.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
tree=${1:?the installed tree}
version=${2:?its version}
out=$(realpath "${3:?where to}")
: "${SOURCE_DATE_EPOCH:?}"
umask 022
architecture=$("$here/../system/architecture.sh" --debian "$tree")
maintainer=$(< "$here/../system/maintainer")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
"$here/../system/root.sh" "$tree" "$root"
doc=$root/usr/share/doc/rocemu
mkdir -p "$root/DEBIAN" "$root/usr/share/lintian/overrides"

# What Debian has elsewhere, or in another form.
mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
"$here/copyright.sh" "$tree" > "$doc/copyright"
{
  printf 'rocemu (%s) unstable; urgency=medium\n\n  * What has changed is in CHANGELOG.md.\n\n' "$version"
  printf ' -- %s  %s\n' "$maintainer" "$(LC_ALL=C date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")"
} | gzip -9n > "$doc/changelog.gz"
cp "$here/lintian-overrides" "$root/usr/share/lintian/overrides/rocemu"

cp "$here/../system/after_install.sh" "$root/DEBIAN/postinst"
cp "$here/../system/before_removal.sh" "$root/DEBIAN/prerm"
cp "$here/../system/after_removal.sh" "$root/DEBIAN/postrm"
chmod 755 "$root"/DEBIAN/*

glibc=$("$here/../system/needed_glibc.sh" "$root/usr")
{
  printf 'Package: rocemu\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' "$version" "$architecture" "$maintainer"
  # In KiB, each file's by itself and 1 for a folder, as dpkg-gencontrol counts: no file system has a say in it.
  printf 'Installed-Size: %s\n' "$(find "$root/usr" -printf '%y %s\n' |
    awk '{ kib += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print kib }')"
  printf 'Depends: libc6 (>= %s)\nRecommends: libibverbs1\n' "$glibc"
  printf 'Suggests: ibverbs-utils, perftest, rdmacm-utils, python3\nSection: net\nPriority: optional\n'
  sed -e '1s/^/Description: /' -e '2,$s/^/ /' "$here/../system/description"
} > "$root/DEBIAN/control"
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) > "$root/DEBIAN/md5sums"

find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$out"
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/rocemu_${version}_$architecture.deb" > "$work/build.log" ||
  { cat "$work/build.log" >&2; exit 1; }
