"""A NIC inside the virtual machine, on a VLAN interface. The machine's kernel has 802.1Q, which the one this runs on may
lack, and it is Debian 12's, older than those that take GSO batches. The other end is rxe at the other end of a veth,
with an address of the VLAN."""
import io
import re
import shlex
import subprocess
import tarfile
import tempfile
from pathlib import Path

from guest import GuestFailed
from sides import Rocemu, Rxe, listens_in

PREFIX = "usr/local/rocemu"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# Of DPDK, for cards; those that are linked in come with the NIC.
DRIVERS = ["bus_pci", "net_e1000", "net_virtio", "net_vmxnet3"]
SPACE = "nic"  # the NIC's network namespace
NIC_ADDRESSES = {4: "192.168.78.1", 6: "fd78::1"}
RXE_ADDRESSES = {4: "192.168.78.2", 6: "fd78::2"}
# The addresses are on the VLAN interfaces alone.
SET_UP = """set -e
modprobe -a veth 8021q
mkdir -p /var/run
ip netns add nic
ip link add v1 mtu {mtu} type veth peer name v0 mtu {mtu} netns nic
set_up() {{
  "$@" ip link set lo up
  "$@" ip link set $link up
  "$@" ip link add link $link name $link.77 type vlan id 77
  "$@" ip address add $address4/24 dev $link.77
  "$@" ip address add $address6/64 dev $link.77 nodad
  "$@" ip link set $link.77 up
}}
link=v1 address4={rxe4} address6={rxe6} set_up
link=v0 address4={nic4} address6={nic6} set_up ip netns exec nic
rdma link add rxe1 type rxe netdev v1
"""


def stripped(path, scratch):
    """Without debug information, where strip is to be had."""
    copy = Path(scratch) / path.name
    try:
        subprocess.run(["strip", "-o", str(copy), str(path)], check=True, capture_output=True)
        return copy
    except (OSError, subprocess.CalledProcessError):
        return path


def archive(rocemu, has):
    """The NIC with all that it needs and the guest has not, as a tar file."""
    folder = Path(rocemu).resolve().parent
    libraries = next(path for path in (folder.parent / "lib", *folder.parent.glob("lib/**/rocemu"))
                     if (path / "librocemu-preload.so").exists())
    drivers = [path for pattern in DRIVERS for path in Path(f"/{LIBRARIES}").glob(f"dpdk/pmds-*/librte_{pattern}.so.*.*")]
    needed = subprocess.run(["ldd", *map(str, [folder / "rocemud", folder / "rocemu", *drivers])], check=True,
                            capture_output=True, text=True).stdout
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar, tempfile.TemporaryDirectory() as scratch:
        for name in ("rocemu", "rocemud"):
            tar.add(stripped(folder / name, scratch), f"{PREFIX}/bin/{name}")
        for path in (libraries / "librocemu-preload.so", *libraries.glob("librocemu-rdmav*.so")):
            tar.add(path.resolve(), f"{PREFIX}/lib/{path.name}")
        for path in drivers:
            tar.add(path.resolve(), str(path).lstrip("/"))
        for path in {Path(found) for found in re.findall(r"=> (/\S+)", needed)}:
            if path.resolve() in drivers:  # A second copy would be a second driver.
                link = tarfile.TarInfo(f"{LIBRARIES}/{path.name}")
                link.type, link.linkname = tarfile.SYMTYPE, str(path.resolve())
                tar.addfile(link)
            elif path.name not in has:
                tar.add(path.resolve(), f"{LIBRARIES}/{path.name}")
    return packed.getvalue()


class GuestRocemu(Rocemu):
    """A NIC in a virtual machine. Use as a context."""

    def __init__(self, guest, rocemu, kind, tap, addresses, host=None, within=()):
        """`within` are the words that commands start with."""
        super().__init__(rocemu, kind, tap, addresses, host)
        self.guest, self.within, self.scenario = guest, list(within), "interop_scenario"

    def install(self):
        has = set(self.guest.run(f"ls /lib/x86_64-linux-gnu /{LIBRARIES}").split())
        self.guest.unpack(archive(self.rocemu, has))

    def __exit__(self, *_):
        try:
            self._rocemu("down", "--name", self.nic)
        except GuestFailed:
            pass

    def _words(self, *words):
        return shlex.join([*self.within, f"/{PREFIX}/bin/rocemu", *words])

    def _rocemu(self, *words):
        return self.guest.run(self._words(*words))

    def start(self, command):
        return self.guest.start("exec " + self._words("exec", "--name", self.nic, "--", *shlex.split(command)))

    def ready(self, row):
        if row.listens == "tcp":
            return listens_in(self.guest.run(shlex.join([*self.within, "cat", "/proc/net/tcp", "/proc/net/tcp6"])), row.tcp_port)
        return bool(self.status()["connection_management"]["listeners"])


class VlanRxe(Rxe):
    device = "rxe1"

    def __init__(self, guest):
        super().__init__(guest, RXE_ADDRESSES)

    def set_mtu(self, mtu):
        self.guest.run(f"ip link set v1 mtu {mtu}; ip link set v1.77 mtu {mtu}")


class VlanRocemu(GuestRocemu):
    """Use as a context."""

    def __init__(self, guest, rocemu, mtu):
        super().__init__(guest, rocemu, "vlan", "v0.77", NIC_ADDRESSES, within=["ip", "netns", "exec", SPACE])
        self.mtu = mtu

    def __enter__(self):
        self.install()
        self.guest.run(SET_UP.format(mtu=self.mtu, rxe4=RXE_ADDRESSES[4], rxe6=RXE_ADDRESSES[6], nic4=NIC_ADDRESSES[4],
                                     nic6=NIC_ADDRESSES[6]))
        self._rocemu("up", "--name", self.nic, "--port", f"rocemu0={self.tap}")
        return self

    def can_run(self, row):
        return row.vlan()

    def change_mtu(self, mtu):
        self.guest.run(f"ip netns exec {SPACE} sh -c 'ip link set v0 mtu {mtu}; ip link set v0.77 mtu {mtu}'")
