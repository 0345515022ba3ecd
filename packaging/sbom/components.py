"""What of other projects is in an installed tree: found in what the build has read and linked, not listed by hand."""

import re
import subprocess
from pathlib import Path

import debian

# What the kernel's headers say is a boundary, not a part; a cross compiler brings its own copy of these and of glibc's.
BOUNDARIES = {"linux", "cross-toolchain-base"}
SYSTEM = debian.Root(Path("/"))


def output(*command, cwd=None):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout


def read_and_linked(build, root):
    """Packages of the root of which any object has read a header, or whose archives are on the link lines of what is
    installed; and this machine's of which the compiler's own headers are, where it is another's."""
    usr = re.escape(str(root.path / "usr"))
    deps = output("ninja", "-t", "deps", cwd=build)
    links = output("ninja", "-t", "commands", "rocemu", "rocemud", "rocemu_check", cwd=build)
    of_root = {*re.findall(rf"^ +({usr}/\S+)$", deps, re.MULTILINE), *re.findall(rf"{usr}/[^\s,]+\.a\b", links)}
    of_compiler = set(re.findall(r"^ +(/usr/\S+)$", deps, re.MULTILINE)) - of_root
    return debian.owners(root, of_root) | debian.owners(SYSTEM, of_compiler)


def elf_files(tree):
    return [path for path in sorted(Path(tree).rglob("*"))
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"]


def needed(tree):
    """Libraries that what is in the tree wants to be loaded, and that are not in it."""
    files = elf_files(tree)
    names = {name for path in files for name in re.findall(r"NEEDED +(\S+)", output("objdump", "-p", path))}
    return names - {path.name for path in files}


def in_system(names, root):
    """Where the root has libraries; those that it does not have are the tree's own."""
    found = ((sorted((root.path / "usr/lib").glob(f"*-linux-gnu/{name}")) + sorted((root.path / "lib").glob(f"*-linux-gnu/{name}")))
             for name in sorted(names))
    return [paths[0] for paths in found if paths]


def found(build, tree, root):
    """Three lists of packages: compiled in, copied beside, loaded from the system. Each source is in one of them."""
    loaded = debian.owners(root, in_system(needed(tree), root))
    copied = debian.owners(root, in_system((path.name for path in elf_files(tree)), root))
    elsewhere = {package.source for package in loaded | copied} | BOUNDARIES
    compiled_in = {package for package in read_and_linked(build, root) if package.source not in elsewhere}
    return [sorted(packages, key=lambda package: package.name) for packages in (compiled_in, copied, loaded)]
