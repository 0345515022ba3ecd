#!/usr/bin/env bash
# Makes all that a release consists of, of an installed tree: tarball, packages, image, checksums.
#
#   packaging/make.sh BUILD TREE VERSION OUT [ROOT]
#
# BUILD is the tree's build folder, in which what is compiled in is looked up; the tree gets its licences and an SBOM,
# and is what scripts/release.sh has installed there. ROOT is where the system's files are that it was built with (/).
# OUT may have those of another architecture, which stay. SOURCE_DATE_EPOCH is the time of everything: the same tree makes
# the same bytes.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
build=${1:?the build folder}
tree=$(realpath "${2:?the installed tree}")
version=${3:?its version}
out=$(realpath -m "${4:?where to}")
root=${5:-/}
: "${SOURCE_DATE_EPOCH:?}"
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC

step() { printf '==> %s\n' "$*"; }

step "Licences and SBOM"
cp "$here/../LICENSE" "$tree/"
for document in README.md CHANGELOG.md; do
  sed 's|](docs/|](share/doc/rocemu/docs/|g' "$here/../$document" > "$tree/$document"
done
python3 -B "$here/sbom/write.py" "$build" "$tree" "$version" "$root"

architecture=$("$here/system/architecture.sh" "$tree")
name=rocemu-$version-linux-$architecture
mkdir -p "$out"
debian_architecture=$("$here/system/architecture.sh" --debian "$tree")
rm -f "$out"/rocemu[-_]*{"$architecture","$debian_architecture"}.*
cp "$tree/share/doc/rocemu/sbom.spdx.json" "$out/$name.spdx.json"

step "Tarball"
tar --create --directory "$tree" --transform "flags=r;s,^\.,$name," --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
  --numeric-owner --mode=go=rX,u+rw . | gzip -9n > "$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")

for package in deb rpm image; do
  step "${package^}"
  "$here/$package/make.sh" "$tree" "$version" "$out"
done

step "Checksums"
(cd "$out" && sha256sum rocemu[-_]* > SHA256SUMS)
ls -l "$out"
