"""A NIC inside the virtual machine, on a VLAN interface. The machine's kernel has 802.1Q, which the one this runs on may
lack, and it is Debian 12's, older than those that take GSO batches. The other end is rxe at the other end of a veth,
with an address of the VLAN."""
import shlex

from guest import GuestFailed
from packed_nic import PREFIX, archive
from sides import Rocemu, Rxe, listens_in

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


class GuestRocemu(Rocemu):
    """A NIC in a virtual machine. Use as a context."""

    def __init__(self, guest, rocemu, kind, tap, addresses, host=None, within=()):
        """`within` are the words that commands start with."""
        super().__init__(rocemu, kind, tap, addresses, host)
        self.guest, self.within, self.scenario = guest, list(within), "interop_scenario"

    def install(self):
        self.guest.unpack(archive(self.rocemu, self.guest.libraries()))

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
