#!/usr/bin/env bash
# Makes an RPM package of an installed tree, with the same files, scripts and description as the Debian package.
#
#   packaging/rpm/make.sh TREE VERSION OUT
#
# SOURCE_DATE_EPOCH is the time of all that is in it.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
tree=${1:?the installed tree}
version=${2:?its version}
out=$(realpath "${3:?where to}")
: "${SOURCE_DATE_EPOCH:?}"
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/../system/root.sh" "$tree" "$work/root"
"$here/../system/needed_glibc.sh" "$work/root/usr" > /dev/null
install -D --mode=644 "$tree/LICENSE" "$work/root/usr/share/licenses/rocemu/LICENSE"
find "$work/root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

# All files, and the folders that are not of the distribution itself.
of_distribution='usr(/bin|/include|/lib|/lib/systemd(/system)?|/share(/man.*|/doc|/licenses|/bash-completion.*)?)?'
(cd "$work/root" && {
  find usr -type d | { grep -vxE "$of_distribution" || true; } | sed 's|^|%dir /|'
  find usr -type f -path usr/share/licenses/\* | sed 's|^|%license /|'
  find usr -type f -not -path usr/share/licenses/\* | sed 's|^|/|'
} | LC_ALL=C sort > "$work/files")

HOME=$work rpmbuild -bb --quiet --target "$("$here/../system/architecture.sh" "$tree")-linux" --define "_topdir $work" --define "_rpmdir $work" --define "_dbpath $work/db" \
  --define "version_of_tree $version" --define "root_of_tree $work/root" --define "files_of_tree $work/files" --define "scripts $here/../system" \
  --define "packager $(< "$here/../system/maintainer")" --define "_buildhost rocemu" --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
  --define "_binary_payload w6.xzdio" --define "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
  "$here/rocemu.spec" > "$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
mkdir -p "$out"
mv "$work"/*.rpm "$out/"
