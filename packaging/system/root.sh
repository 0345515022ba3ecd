#!/usr/bin/env bash
# Makes the files of a distribution's package, .deb and .rpm alike, of an installed tree: all below /usr.
#
#   packaging/system/root.sh TREE ROOT
set -euo pipefail
here=$(dirname "$(realpath "$0")")
tree=${1:?the installed tree}
root=${2:?where to}

mkdir -p "$root/usr/lib/systemd/system" "$root/usr/lib/sysusers.d"
cp -a "$tree"/{bin,include,lib,share} "$root/usr/"
rm -f "$root/usr/share/doc/rocemu/LICENSE"  # distributions have it elsewhere: copyright, /usr/share/licenses
find "$root/usr/share/man" -type f -exec gzip -9n {} +
sed 's|/usr/local/|/usr/|g' "$here/../systemd/rocemu@.service" > "$root/usr/lib/systemd/system/rocemu@.service"
cp "$here/rocemu.sysusers" "$root/usr/lib/sysusers.d/rocemu.conf"
find "$root" -type d -empty -delete
chmod -R go=rX,u+rw "$root"
find "$root" -type f -not -path "$root/usr/bin/*" -exec chmod a-x {} +
