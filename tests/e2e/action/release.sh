#!/usr/bin/env bash
# release.sh BUILD FOLDER: a tarball and its checksum in FOLDER, as scripts/release.sh names them, but of an ordinary build. It
# runs on this machine alone.
set -euo pipefail
build=$1 folder=$2
version=$("$build/bin/rocemu" version)
version=${version#rocemu }
name=rocemu-${version%% *}-linux-$(uname -m)
rm -rf "$folder"
mkdir -p "$folder/$name"
cmake --install "$build" --prefix "$folder/$name" --strip > /dev/null
tar --create --directory "$folder" "$name" | gzip -1 > "$folder/$name.tar.gz"
rm -r "${folder:?}/$name"
cd "$folder"
sha256sum "$name.tar.gz" > "$name.tar.gz.sha256"
