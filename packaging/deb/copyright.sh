#!/usr/bin/env bash
# Prints the copyright file of the Debian package, of the licence in an installed tree.
#
#   packaging/deb/copyright.sh TREE
set -euo pipefail
licence=${1:?the installed tree}/LICENSE
cat << END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: rocemu
Comment: Parts of other projects are compiled in or lie beside the provider. Which, is in sbom.spdx.json; their
 copyrights and licences are in third-party.gz, both in this folder.

Files: *
Copyright: $(sed -nE 's/^Copyright \(c\) //p' "$licence")
License: BSD-3-Clause

License: BSD-3-Clause
$(sed -e '1,/^Copyright/d' "$licence" | sed -e '/./,$!d' -e 's/^$/./' -e 's/^/ /')
END
