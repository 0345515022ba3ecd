"""A NIC inside the virtual machine, on a VLAN interface. The machine's kernel has 802.1Q, which the one this runs on may
lack, and it is Debian 12's, older than those that take GSO batches. The other end is rxe at the other end of a veth,
with an address of the VLAN."""
import io
import json
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
    needed = subprocess.run(["ldd", str(folder / "rocemud"), str(folder / "rocemu")], check=True, capture_output=True,
                            text=True).stdout
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar, tempfile.TemporaryDirectory() as scratch:
        for name in ("rocemu", "rocemud"):
            tar.add(stripped(folder / name, scratch), f"{PREFIX}/bin/{name}")
        for path in (libraries / "librocemu-preload.so", *libraries.glob("librocemu-rdmav*.so")):
            tar.add(path.resolve(), f"{PREFIX}/lib/{path.name}")
        for path in {Path(found) for found in re.findall(r"=> (/\S+)", needed)}:
            if path.name not in has:
                tar.add(path.resolve(), f"{LIBRARIES}/{path.name}")
    return packed.getvalue()


class VlanRxe(Rxe):
    device = "rxe1"

    def __init__(self, guest):
        super().__init__(guest, RXE_ADDRESSES)

    def set_mtu(self, mtu):
        self.guest.run(f"ip link set v1 mtu {mtu}; ip link set v1.77 mtu {mtu}")


class VlanRocemu(Rocemu):
    """Use as a context."""

    def __init__(self, guest, rocemu, mtu):
        super().__init__(rocemu, "vlan", "v0.77", NIC_ADDRESSES)
        self.guest, self.mtu = guest, mtu

    def __enter__(self):
        has = set(self.guest.run(f"ls /lib/x86_64-linux-gnu /{LIBRARIES}").split())
        self.guest.unpack(archive(self.rocemu, has))
        self.guest.run(SET_UP.format(mtu=self.mtu, rxe4=RXE_ADDRESSES[4], rxe6=RXE_ADDRESSES[6], nic4=NIC_ADDRESSES[4],
                                     nic6=NIC_ADDRESSES[6]))
        self._rocemu("up", "--name", self.nic, "--port", f"rocemu0={self.tap}")
        return self

    def __exit__(self, *_):
        try:
            self._rocemu("down", "--name", self.nic)
        except GuestFailed:
            pass

    def _words(self, *words):
        return shlex.join(["ip", "netns", "exec", SPACE, f"/{PREFIX}/bin/rocemu", *words])

    def _rocemu(self, *words):
        return self.guest.run(self._words(*words))

    def start(self, command):
        return self.guest.start("exec " + self._words("exec", "--name", self.nic, "--", *shlex.split(command)))

    def ready(self, row):
        if row.listens == "tcp":
            table = self.guest.run(f"ip netns exec {SPACE} cat /proc/net/tcp /proc/net/tcp6")
            return listens_in(table, row.tcp_port)
        return bool(json.loads(self._rocemu("status", "--name", self.nic, "--json"))["connection_management"]["listeners"])

    def change_mtu(self, mtu):
        self.guest.run(f"ip netns exec {SPACE} sh -c 'ip link set v0 mtu {mtu}; ip link set v0.77 mtu {mtu}'")
