"""Writes what of other projects is in an installed tree: a list in SPDX 2.3 as JSON, and the licences they come under.

  write.py BUILD TREE VERSION ROOT

BUILD is the tree's build folder, of ninja, and ROOT has the Debian that it was built with. TREE gets share/doc/rocemu/sbom.spdx.json and
share/doc/rocemu/third-party.gz. SOURCE_DATE_EPOCH is the time that is written down.
"""

import gzip
import hashlib
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

import components
import debian

NONE = "NOASSERTION"


def spdx_package(package):
    debian_name, spdx = package.licence()
    return {
        "SPDXID": f"SPDXRef-{package.name.replace('+', 'p')}", "name": package.source, "versionInfo": package.source_version,
        "supplier": "Organization: Debian", "homepage": package.homepage or NONE, "downloadLocation": NONE,
        "filesAnalyzed": False, "licenseConcluded": NONE, "licenseDeclared": spdx or NONE, "copyrightText": NONE,
        "licenseComments": f"Debian's copyright file says: {debian_name or 'what third-party.gz has'}",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator":
                          f"pkg:deb/debian/{quote(package.name)}@{quote(package.version)}?arch={package.architecture}"}]}


def document(version, time, found):
    own = {"SPDXID": "SPDXRef-rocemu", "name": "rocemu", "versionInfo": version, "supplier": NONE, "downloadLocation": NONE,
           "filesAnalyzed": False, "licenseConcluded": "BSD-3-Clause", "licenseDeclared": "BSD-3-Clause", "copyrightText": NONE}
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-rocemu")]
    packages = [own]
    for kind, of_kind in zip(("STATIC_LINK", "CONTAINS", "DYNAMIC_LINK"), found):
        for package in map(spdx_package, of_kind):
            packages.append(package)
            relations.append(("SPDXRef-rocemu", kind, package["SPDXID"]))
    name = hashlib.sha256(json.dumps(packages).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"rocemu-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/rocemu-{version}-{name}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": [f"Tool: rocemu-packaging-{version}"]},
        "packages": packages,
        "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                          for one, kind, other in relations]}


def licences(package):
    """What its copyright file says, without the names of the source's files, each statement once."""
    said = package.stanzas()
    parts = ["\n".join(f"{field}: {stanza[field]}" for field in ("Copyright", "License", "Comment") if field in stanza)
             for stanza in said] or [package.copyright()]
    return "\n\n".join(dict.fromkeys(part for part in parts if part))


def third_party(packages):
    """A chapter for each source."""
    chapters = []
    for package in {package.source: package for package in packages}.values():
        title = f"{package.source} {package.source_version} {package.homepage}"
        chapters.append(f"{title}\n{'=' * len(title)}\n\n{licences(package)}\n")
    return "\n\n".join(chapters)


def main():
    build, tree, version, root = sys.argv[1:]
    time = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    compiled_in, copied, loaded = components.found(build, tree, debian.Root(Path(root)))
    folder = Path(tree, "share/doc/rocemu")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sbom.spdx.json").write_text(json.dumps(document(version, time, [compiled_in, copied, loaded]), indent=1) + "\n")
    (folder / "third-party.gz").write_bytes(gzip.compress(third_party(compiled_in + copied).encode(), mtime=0))
    print(f"sbom: {len(compiled_in)} packages compiled in, {len(copied)} copied, {len(loaded)} loaded")


main()
