"""A NIC of rocemu on a network card of a virtual machine that DPDK has taken from its kernel (pci: ports), and which
cards qemu has."""
import dataclasses
import time

from guest import GuestFailed, VIRTIO
from guest_nic import GuestRocemu

SLOT, CARD = "port8", "card"  # qemu's names for the slot, a hotplug one, and for the card in it
ADDRESS = "0000:01:00.0"
MAC = "52:54:00:77:00:01"
PEER_MAC = "52:54:00:77:00:02"
# Bound as driverctl(8) does it, which the machine has not.
BIND = """set -e
cd /sys/bus/pci/devices/{address}
modprobe {driver}
[ ! -e driver ] || echo {address} > driver/unbind
echo {driver} > driver_override
echo {address} > /sys/bus/pci/drivers_probe
[ "$(basename $(readlink driver))" = {driver} ]
"""
HUGEPAGES = 160


@dataclasses.dataclass(frozen=True)
class Card:
    """A kind of network card."""
    model: str
    device: str  # as qemu's -device has it
    # Behind an IOMMU one frame in some hundreds does not leave the machine. Suspected, and not proved: qemu maps a fragment
    # of a frame for sending as one piece (net_tx_pkt_add_raw_fragment), and drops the frame when its pages are not next to
    # each other in the machine's memory. Rows allow for frames that are sent again then.
    loses_frames: bool = True


# A card of virtio obeys the machine's IOMMU on request only.
CARDS = {card.model: card for card in (
    Card("e1000e", "e1000e,romfile="), Card("igb", "igb,romfile="), Card("vmxnet3", "vmxnet3,romfile="),
    Card("virtio-net-pci", VIRTIO + ",disable-legacy=on,iommu_platform=on", loses_frames=False))}


def machine_words(with_iommu):
    """qemu's, and the kernel's. Addresses as wide as a process has them, since DPDK maps memory where the process has it,
    and AddressSanitizer leaves it the far end alone."""
    return (["-device", "intel-iommu,aw-bits=48"], "intel_iommu=on") if with_iommu else ([], "")


def card_words(card, netdev):
    return ["-device", f"pcie-root-port,id={SLOT},bus=pcie.0,chassis=1,addr=8",
            "-device", f"{card.device},id={CARD},bus={SLOT},netdev={netdev},mac={MAC}"]


class PciRocemu(GuestRocemu):
    """Use as a context."""

    def __init__(self, guest, rocemu, addresses, host, driver="vfio-pci"):
        super().__init__(guest, rocemu, "pci", ADDRESS, addresses, host)
        self.driver = driver
        self.is_up = False

    def __enter__(self):
        self.install()
        if self.driver != "vfio-pci":
            self.guest.run(f"sysctl -qw vm.nr_hugepages={HUGEPAGES}")
        self.bind()
        return self

    def bind(self):
        self.guest.run(BIND.format(address=ADDRESS, driver=self.driver))

    def up(self, *options):
        network = ",".join(["+".join((f"{self.addresses[4]}/24", f"{self.addresses[6]}/64")), *options])
        self._rocemu("up", "--name", self.nic, "--port", f"rocemu0=pci:{ADDRESS}@{network}")
        self.is_up = True

    def down(self):
        if self.is_up:
            self.is_up = False
            self._rocemu("down", "--name", self.nic)

    def __exit__(self, *_):
        self.down()

    def change_mtu(self, mtu):
        """The card's is set when the NIC starts."""
        self.down()
        self.up(f"mtu={mtu}")
        self.wait_for_port("ACTIVE")

    def ready(self, row):
        if row.listens in ("tcp", "cm"):
            return super().ready(row)
        joined = self.status()["connection_management"]["groups"] != 0
        time.sleep(1)  # what it attaches its QP in
        return joined

    def wait_for_port(self, state, seconds=30):
        deadline = time.monotonic() + seconds
        while (seen := self.status()["devices"][0]["port_state"]) != state:
            if time.monotonic() > deadline:
                raise GuestFailed(f"the port is {seen} still, and not {state}:\n{self.log()}")
            time.sleep(0.2)

    def log(self):
        return self.guest.run(f"tail -n 20 /run/rocemu/{self.nic}/log /dev/shm/rocemu/{self.nic}/log 2>/dev/null; true")


class PeerRocemu(GuestRocemu):
    """A NIC in the other machine, on its kernel's interface, in rxe's place. Use as a context."""

    name = "peer"

    def __init__(self, guest, rocemu, addresses, host):
        super().__init__(guest, rocemu, "interface", "eth0", addresses, host)

    def __enter__(self):
        self.install()
        self.guest.run("rdma link delete rxe0; modprobe -r rdma_rxe")  # which has the UDP port as long as it is there
        self._rocemu("up", "--name", self.nic, "--port", f"rocemu0={self.tap}")
        return self

    def can_run(self, row):
        return row.listens in ("tcp", "cm")

    def change_mtu(self, mtu):
        self.guest.run(f"ip link set eth0 mtu {mtu}")
