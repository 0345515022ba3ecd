"""What a Debian knows of its packages: which a file is of, version, licence, copyright."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Debian's short names (copyright format 1.0) that SPDX writes otherwise; what stands on neither side is written as it is.
SPDX_NAMES = {"bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "expat": "MIT", "bsl-1.0": "BSL-1.0",
              "cc0-1.0": "CC0-1.0", "isc": "ISC", "lgpl-2.1": "LGPL-2.1-only", "lgpl-2.1+": "LGPL-2.1-or-later",
              "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later"}


@dataclass(frozen=True)
class Root:
    """Where a Debian is: /, or a folder that one was unpacked into."""
    path: Path

    def inside(self, file):
        """The file's path as this Debian has it."""
        return "/" + str(Path(os.path.realpath(file)).relative_to(os.path.realpath(self.path)))

    def dpkg_query(self, *arguments):
        command = ["dpkg-query", f"--admindir={self.path / 'var/lib/dpkg'}", *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Package:
    root: Root
    name: str
    version: str
    source: str
    source_version: str
    architecture: str
    homepage: str

    def copyright(self):
        path = self.root.path / "usr/share/doc" / self.name / "copyright"
        return path.read_text(errors="replace")

    def stanzas(self):
        """Of a copyright file in the machine-readable format, its stanzas as dictionaries; of another, none."""
        if not self.copyright().startswith("Format:"):
            return []
        field = re.compile(r"^([A-Za-z-]+):((?:.*\n?)(?:[ \t].*\n?)*)", re.MULTILINE)
        return [{name: value.strip() for name, value in field.findall(part)}
                for part in re.split(r"\n[ \t]*\n+(?=[A-Z][a-z-]+[^\n]*:)", self.copyright())]

    def licence(self):
        """Of all files but for those that are named otherwise: Debian's name, and SPDX's or None."""
        stanzas = [stanza for stanza in self.stanzas() if "*" in stanza.get("Files", "").split()]
        name = stanzas[0]["License"].splitlines()[0].strip() if stanzas else None
        return name, SPDX_NAMES.get((name or "").lower())


def owners(root, files):
    """The packages that these files are of. One file after another is asked for, and all of its package are known then:
    to ask for a thousand at once takes dpkg ten seconds."""
    left = {root.inside(path) for path in files}
    found = set()
    while left:
        path = min(left)
        # What /lib has is in /usr/lib now, and dpkg may know it by either name.
        said = root.dpkg_query("--search", path) or root.dpkg_query("--search", path.removeprefix("/usr"))
        if not said:
            raise SystemExit(f"sbom: {path} is of no package of the Debian in {root.path}")
        name = said.split(": ")[0].split(",")[0]
        listed = root.dpkg_query("--listfiles", name).splitlines()
        left -= {path, *listed, *(f"/usr{file}" for file in listed)}
        found.add(described(root, name))
    return found


def described(root, name):
    fields = "${Package}\t${Version}\t${source:Package}\t${source:Version}\t${Architecture}\t${Homepage}"
    return Package(root, *root.dpkg_query("--show", f"--showformat={fields}", name).split("\t"))
