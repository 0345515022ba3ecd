#!/usr/bin/env bash
# Makes an OCI image of an installed tree, as an archive that podman, skopeo and docker (from 25 on) load: nothing but the
# tree, in /usr/local, so that two lines of a Dockerfile add it to any image.
#
#   packaging/image/make.sh TREE VERSION OUT
#
# SOURCE_DATE_EPOCH is the time of all that is in it. umoci makes it; no daemon and no container.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
tree=${1:?the installed tree}
version=${2:?its version}
out=$(realpath "${3:?where to}")
: "${SOURCE_DATE_EPOCH:?}"
umask 022
name=rocemu-$version-oci-$("$here/../system/architecture.sh" "$tree").tar
time=$(date --utc --iso-8601=seconds --date="@$SOURCE_DATE_EPOCH")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/usr/local"
cp -a "$tree"/{bin,include,lib,share} "$work/root/usr/local/"
chmod -R go=rX,u+rw "$work/root"
find "$work/root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

image=$work/layout:rocemu:$version
umoci init --layout "$work/layout"
umoci new --image "$image"
umoci insert --rootless --image "$image" --history.created "$time" --history.created_by packaging/image/make.sh \
  --history.author rocemu "$work/root" /
umoci config --image "$image" --no-history --created "$time" --author rocemu --architecture "$("$here/../system/architecture.sh" --debian "$tree")" \
  --config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --config.cmd rocemu \
  --config.label org.opencontainers.image.title=rocemu --config.label "org.opencontainers.image.version=$version" \
  --config.label org.opencontainers.image.licenses=BSD-3-Clause
umoci gc --layout "$work/layout"
mkdir -p "$out"
tar --create --file "$out/$name" --directory "$work/layout" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
  --numeric-owner --mode=go=rX,u+rw .
