"""What of other projects is in an installed tree: found in what the build has read and linked, not listed by hand."""

import re
import subprocess
from pathlib import Path

import debian

# What the kernel's headers say is a boundary, not a part.
KERNEL = "linux"


def output(*command, cwd=None):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout


def read_and_linked(build):
    """The system's headers that any object was compiled with, and archives on the link lines of what is installed."""
    headers = set(re.findall(r"^ +(/usr/\S+)$", output("ninja", "-t", "deps", cwd=build), re.MULTILINE))
    links = output("ninja", "-t", "commands", "rocemu", "rocemud", "rocemu_check", cwd=build)
    return headers | set(re.findall(r"/usr/[^\s,]+\.a\b", links))


def elf_files(tree):
    return [path for path in sorted(Path(tree).rglob("*"))
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"]


def needed(tree):
    """Libraries that what is in the tree wants to be loaded, and that are not in it."""
    files = elf_files(tree)
    names = {name for path in files for name in re.findall(r"NEEDED +(\S+)", output("objdump", "-p", path))}
    return names - {path.name for path in files}


def in_system(names):
    """Where this machine has libraries; those that it does not have are its own."""
    return [path for path in (output("cc", f"-print-file-name={name}").strip() for name in sorted(names)) if "/" in path]


def found(build, tree):
    """Three lists of packages: compiled in, copied beside, loaded from the system. Each source is in one of them."""
    loaded = debian.owners(in_system(needed(tree)))
    copied = debian.owners(in_system(path.name for path in elf_files(tree)))
    elsewhere = {package.source for package in loaded | copied} | {KERNEL}
    compiled_in = {package for package in debian.owners(read_and_linked(build)) if package.source not in elsewhere}
    return [sorted(packages, key=lambda package: package.name) for packages in (compiled_in, copied, loaded)]
