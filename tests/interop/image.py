#!/usr/bin/python3 -B
"""image.py [--force]: makes the kernel and the initramfs of the virtual machine that the NIC is tested against, and
prints the directory they are in.

Debian's stock kernel with rdma_rxe, and Debian's RDMA programs. Some 100 MB come from the package mirror, once: the
image is kept in $ROCEMU_INTEROP_CACHE (default ~/.cache/rocemu-interop) under a name made of all that goes into it.
Neither root nor a change of the system is needed. $ROCEMU_INTEROP_KERNEL names another kernel package."""
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from machine_kind import AMD64

HERE = Path(__file__).resolve().parent
PACKAGES = ["busybox-static", "dash", "ibverbs-providers", "ibverbs-utils", "iproute2", "kmod", "perftest", "qperf",
            "rdmacm-utils"]
BARE_PACKAGES = ["rdma-core"]  # unpacked without what they depend on (udev, perl)
UNNEEDED_PACKAGES = ("debconf_", "dpkg_", "perl-base_", "systemd_", "udev_")
MODULES = ["ib_umad", "ib_uverbs", "rdma_rxe", "rdma_ucm", "sch_netem", "uio_pci_generic", "veth", "vfio_iommu_type1",
           "vfio_pci", "virtio_net", "virtio_pci", "8021q"]
UNNEEDED_FOLDERS = ["usr/share/bash-completion", "usr/share/doc", "usr/share/lintian", "usr/share/locale",
                    "usr/share/man", "usr/share/perl5"]
UNNEEDED_OF_LIBRARIES = ["gconv", "perl-base"]
TOOLS = {"apt-get": "apt", "cpio": "cpio", "depmod": "kmod", "dpkg-deb": "dpkg", "modprobe": "kmod", "xz": "xz-utils"}


class ImageUnavailable(Exception):
    """Why there is no image and none can be made."""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          **options)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise ImageUnavailable(f"{command[0]} {' '.join(map(str, command[1:4]))} ... failed: "
                               f"{lines[-1] if lines else done.returncode}")
    return done.stdout.decode(errors="replace")


def directory(kind):
    base = Path(os.environ.get("ROCEMU_INTEROP_CACHE", Path.home() / ".cache/rocemu-interop"))
    parts = hashlib.sha256(json.dumps([kind.kernel, PACKAGES, BARE_PACKAGES, MODULES, kind.modules]).encode())
    for file in sorted([*HERE.glob("guest/*"), HERE / "image.py"]):
        parts.update(file.read_bytes())
    return base / f"{kind.kernel}-{parts.hexdigest()[:12]}"


class Apt:
    """apt for the machine's architecture that takes no package for installed, locks nothing and writes nothing outside
    `work`. Lists of another architecture than this system's are fetched."""

    def __init__(self, work, kind):
        state = work / "dpkg-status"
        state.touch()
        for folder in ("archives", "lists"):
            (work / folder / "partial").mkdir(parents=True, exist_ok=True)
        self.words = ["-o", f"Dir::State::status={state}", "-o", f"Dir::Cache::archives={work}/archives",
                      "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=", "-o", "Debug::NoLocking=1",
                      "-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=3"]
        if run("dpkg", "--print-architecture").strip() != kind.architecture:
            self.words += ["-o", f"APT::Architecture={kind.architecture}", "-o", f"APT::Architectures={kind.architecture}",
                           "-o", f"Dir::State::lists={work}/lists"]
            self.get("update")

    def get(self, *words, **options):
        run("apt-get", "-qq", "-y", "--no-install-recommends", *self.words, *words, **options)

    def kernel_package(self, kernel):
        """A meta package is resolved to the kernel it stands for."""
        depends = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", *self.words, "depends", kernel))
        return depends[1] if depends else kernel


def copy_modules(kernel_root, version, modules, root):
    run("depmod", "-b", kernel_root, version)
    needed = set()
    for module in modules:
        for line in run("modprobe", "-d", kernel_root, "-S", version, "--show-depends", module).splitlines():
            if line.startswith("insmod"):
                needed.add(Path(line.split()[1]))
    for module in needed:
        copy = root / module.relative_to(kernel_root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(module, copy)
        if copy.suffix == ".xz":
            run("xz", "-d", copy)
    for file in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(kernel_root / "lib/modules" / version / file, root / "lib/modules" / version / file)
    run("depmod", "-b", root, version)


def add_busybox(root, kind):
    """For every command that no package brought. /bin/sh is dash: busybox's would prefer its own ip."""
    folders = ("bin", "sbin", "usr/bin", "usr/sbin")
    for applet in run(*kind.emulator, root / "bin/busybox", "--list").split():
        if applet != "sh" and not any(os.path.lexists(root / folder / applet) for folder in folders):
            os.symlink("/bin/busybox", root / "bin" / applet)
    for link, target in (("bin/sh", "dash"), ("sbin/init", "/bin/busybox")):
        if not os.path.lexists(root / link):
            os.symlink(target, root / link)


def add_own_files(root):
    for folder in ("dev", "etc", "interop", "proc", "root", "run", "sys", "tmp", "usr/local/bin"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for file in ("agent", "boot"):
        shutil.copy(HERE / "guest" / file, root / "interop" / file)
        (root / "interop" / file).chmod(0o755)
    shutil.copy(HERE / "guest/inittab", root / "etc/inittab")
    for name, text in {"passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n",
                       "group": "root:x:0:\nnogroup:x:65534:\n",
                       "hosts": "127.0.0.1 localhost\n", "nsswitch.conf": "hosts: files\n"}.items():
        (root / "etc" / name).write_text(text, encoding="ascii")


def build(work, kind):
    root, kernel_folder = work / "root", work / "kernel"
    for folder in (root, kernel_folder):
        folder.mkdir(parents=True)
    apt = Apt(work, kind)
    kernel = apt.kernel_package(kind.kernel)
    apt.get("-d", "install", *PACKAGES)
    apt.get("download", kernel, *BARE_PACKAGES, cwd=kernel_folder)
    bare = [package for name in BARE_PACKAGES for package in kernel_folder.glob(f"{name}_*.deb")]
    for package in [*sorted(work.glob("archives/*.deb")), *bare]:
        if not package.name.startswith(UNNEEDED_PACKAGES):
            run("dpkg-deb", "-x", package, root)
    kernel_root = kernel_folder / "unpacked"
    run("dpkg-deb", "-x", next(kernel_folder.glob(f"{kernel}_*.deb")), kernel_root)
    version = next((kernel_root / "lib/modules").iterdir()).name
    shutil.copy(kernel_root / "boot" / f"vmlinuz-{version}", work / "vmlinuz")
    copy_modules(kernel_root, version, [*MODULES, *kind.modules], root)
    for folder in [*UNNEEDED_FOLDERS, *(f"{kind.library_folder()}/{name}" for name in UNNEEDED_OF_LIBRARIES)]:
        shutil.rmtree(root / folder, ignore_errors=True)
    add_own_files(root)
    add_busybox(root, kind)
    files = "\n".join(sorted(str(path.relative_to(root)) for path in root.rglob("*"))) + "\n"
    with open(work / "initrd", "wb") as initrd:
        subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=root, input=files.encode(),
                       stdout=initrd, check=True)
    (work / "version").write_text(version + "\n", encoding="ascii")
    for folder in (root, kernel_folder, work / "archives", work / "lists"):
        shutil.rmtree(folder)


@contextlib.contextmanager
def locked(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def get(kind=AMD64, force=False):
    """The directory with vmlinuz, initrd and version; makes the image when it is not there."""
    image = directory(kind)
    for tool, package in [*TOOLS.items(), *((tool, "qemu-user") for tool in kind.emulator)]:
        if not (image / "initrd").exists() and shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            raise ImageUnavailable(f"{tool} is missing (Debian package {package})")
    with locked(image.with_suffix(".lock")):
        if force or not (image / "initrd").exists():
            work = image.with_suffix(".part")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            try:
                build(work, kind)
            except (OSError, StopIteration, subprocess.SubprocessError) as failure:
                raise ImageUnavailable(f"{type(failure).__name__}: {failure}") from failure
            shutil.rmtree(image, ignore_errors=True)
            work.rename(image)
    return image


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    try:
        print(get(force="--force" in sys.argv[1:]))
    except ImageUnavailable as why:
        sys.exit(f"image.py: {why}")
