#!/usr/bin/env python3
"""documents_test.py CMAKE BUILD: each link between the documents leads somewhere, where they are installed.

Addresses of the network are not looked at, nor are places within a document."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)


def dead_links(folder):
    for document in sorted(folder.rglob("*.md")):
        for target in LINK.findall(CODE.sub("", document.read_text())):
            if not (document.parent / target).exists():
                yield f"{document.relative_to(folder)}: {target}"


def main():
    cmake, build = sys.argv[1:]
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run([cmake, "--install", build, "--component", "documents", "--prefix", prefix],
                       check=True, stdout=subprocess.DEVNULL)
        folder = Path(prefix, "share/doc/rocemu")
        documents = list(folder.rglob("*.md"))
        dead = list(dead_links(folder))
    if len(documents) < 20:
        sys.exit(f"there are only {len(documents)} documents")
    if dead:
        sys.exit("these lead nowhere:\n" + "\n".join(dead))
    print(f"{len(documents)} documents")


main()
