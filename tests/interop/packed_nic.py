"""A NIC with all that it needs, as a tar file to be unpacked in a virtual machine."""
import io
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

from machine_kind import AMD64

PREFIX = "usr/local/rocemu"
# Of DPDK, for cards; those that are linked in come with the NIC.
DRIVERS = ["bus_pci", "net_e1000", "net_virtio", "net_vmxnet3"]


def stripped(path, scratch, kind):
    """Without debug information, where strip is to be had."""
    copy = Path(scratch) / path.name
    try:
        subprocess.run([f"{kind.triplet}-strip", "-o", str(copy), str(path)], check=True, capture_output=True)
        return copy
    except (OSError, subprocess.CalledProcessError):
        return path


def needed(files, folders):
    """The libraries that the files want, and those that these want, by name. What is in none of the folders is left out."""
    found, waiting = {}, list(files)
    while waiting:
        text = subprocess.run(["readelf", "--dynamic", waiting.pop()], check=True, capture_output=True, text=True).stdout
        for name in re.findall(r"\(NEEDED\) .*\[(.+)\]", text):
            path = next((folder / name for folder in folders if (folder / name).exists()), None)
            if path is not None and name not in found:
                found[name] = path
                waiting.append(path)
    return found


def archive(rocemu, has, kind=AMD64, root=Path("/"), programs=(), documents=()):
    """The NIC of the command `rocemu`, the libraries that the machine has not, more programs, into PREFIX/bin, and
    documents, into PREFIX/share. `root` has the libraries that they were linked with."""
    folder = Path(rocemu).resolve().parent
    libraries = next(path for path in (folder.parent / "lib", *folder.parent.glob("lib/**/rocemu"))
                     if (path / "librocemu-preload.so").exists())
    system = [root / kind.library_folder(), root / "lib" / kind.triplet]
    drivers = [path for pattern in DRIVERS for path in system[0].glob(f"dpdk/pmds-*/librte_{pattern}.so.*.*")]
    executables = [folder / "rocemu", folder / "rocemud", *map(Path, programs)]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar, tempfile.TemporaryDirectory() as scratch:
        for path in executables:
            tar.add(stripped(path, scratch, kind), f"{PREFIX}/bin/{path.name}")
        for path in (libraries / "librocemu-preload.so", *libraries.glob("librocemu-rdmav*.so")):
            tar.add(path.resolve(), f"{PREFIX}/lib/{path.name}")
        for path in map(Path, documents):
            tar.add(path, f"{PREFIX}/share/{path.name}")
        for path in drivers:
            tar.add(path.resolve(), f"{path.relative_to(root)}")
        for name, path in needed([*executables, *drivers], system).items():
            if path.resolve() in drivers:  # A second copy would be a second driver.
                link = tarfile.TarInfo(f"{kind.library_folder()}/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, f"/{path.resolve().relative_to(root)}"
                tar.addfile(link)
            elif name not in has:
                tar.add(path.resolve(), f"{kind.library_folder()}/{name}")
    return packed.getvalue()
