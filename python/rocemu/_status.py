"""What a NIC shows of itself: `rocemu status --json` and `rocemu link show --json`, typed.

Names are those of the JSON. Counts are from the NIC's start, of a QP from its making, and of a link
from the last change of its impairments.
"""
from __future__ import annotations

import dataclasses
import ipaddress
from dataclasses import dataclass, field
from typing import Any, Optional, Union


@dataclass(frozen=True)
class Counters:
    """Of the transport, for a device or for one QP."""
    rx_frames: int = 0
    rx_malformed: int = 0
    rx_icrc_errors: int = 0
    rx_no_qp: int = 0
    rx_mismatched: int = 0
    qkey_violations: int = 0
    rx_no_receive: int = 0
    rx_dropped: int = 0
    tx_frames: int = 0
    tx_payload_bytes: int = 0
    rx_payload_bytes: int = 0
    retransmitted_frames: int = 0
    duplicate_requests: int = 0
    out_of_sequence: int = 0
    placed_ahead: int = 0
    sequence_naks_sent: int = 0
    sequence_naks_received: int = 0
    rnr_naks_sent: int = 0
    rnr_naks_received: int = 0
    implied_naks: int = 0
    ack_timeouts: int = 0
    early_retransmissions: int = 0
    stale_acks: int = 0
    responder_errors: int = 0
    completions_with_error: int = 0
    req_cqe_error: int = 0
    req_cqe_flush_error: int = 0
    req_remote_access_errors: int = 0
    req_remote_invalid_request: int = 0
    req_transport_retries_exceeded: int = 0
    req_rnr_retries_exceeded: int = 0
    resp_cqe_error: int = 0
    resp_cqe_flush_error: int = 0
    resp_local_length_error: int = 0
    resp_remote_access_errors: int = 0
    rx_write_requests: int = 0
    rx_read_requests: int = 0
    rx_atomic_requests: int = 0
    multicast_sent: int = 0
    multicast_received: int = 0
    np_ecn_marked_roce_packets: int = 0
    np_cnp_sent: int = 0
    rp_cnp_handled: int = 0
    rp_cnp_ignored: int = 0

    def __sub__(self, earlier: Counters) -> Counters:
        """What was counted since `earlier`."""
        return Counters(**{name: count - getattr(earlier, name)
                           for name, count in dataclasses.asdict(self).items()})

    def nonzero(self) -> dict[str, int]:
        return {name: count for name, count in dataclasses.asdict(self).items() if count}


@dataclass(frozen=True)
class PortCounters:
    """Of Ethernet frames at a device's port."""
    rx_frames: int = 0
    rx_bytes: int = 0
    tx_frames: int = 0
    tx_bytes: int = 0
    dropped_unknown_destination: int = 0
    dropped_queue_full: int = 0
    dropped_malformed: int = 0
    dropped_impairment_loss: int = 0
    dropped_impairment_queue: int = 0
    dropped_impairment_outage: int = 0
    dropped_refused_by_kernel: int = 0
    dropped_network: int = 0


@dataclass(frozen=True)
class Objects:
    """How many objects of verbs programs hold on a device."""
    contexts: int = 0
    pds: int = 0
    mrs: int = 0
    mapped_mrs: int = 0
    cqs: int = 0
    qps: int = 0
    channels: int = 0
    ahs: int = 0
    srqs: int = 0
    xrcds: int = 0


@dataclass(frozen=True)
class Qp:
    """A queue pair that a program holds."""
    qpn: int
    service: str = ""
    """RC, UC, UD, XRC_SEND, XRC_RECV or RAW_PACKET."""
    state: str = ""
    """RESET, INIT, RTR, RTS, SQD, SQE or ERR."""
    remote_qpn: int = 0
    """Of connected services; 0 before there is a peer."""
    program: int = 0
    """The process that holds it, as the NIC sees processes; 0: none does."""
    requests: int = 0
    """Taken off the send queue and not completed."""
    unacknowledged_packets: int = 0
    counters: Counters = field(default_factory=Counters)
    waits_for: Optional[str] = None
    """Why it does not go on (docs/top.md); None: it goes on, or has nothing to do."""
    wait_left_us: Optional[float] = None
    """Of a wait that ends by itself."""
    oldest_request_age_us: Optional[float] = None
    """RC and XRC: since the NIC took it off the send queue."""
    posted_requests: int = 0
    """Still in the send queue."""
    completed_requests: int = 0
    answered_messages: int = 0
    """Of the peer: 24 bits."""
    window_packets: Optional[int] = None
    retries: int = 0
    """Since there was progress."""
    posted_receives: int = 0
    unread_completions: int = 0


@dataclass(frozen=True)
class Impairments:
    """As text, of both directions; None for a perfect link."""
    tx: Optional[str] = None
    rx: Optional[str] = None


@dataclass(frozen=True)
class Device:
    name: str
    node_guid: str = ""
    mac: str = ""
    gids: tuple[str, ...] = ()
    mtu: int = 0
    port_state: str = ""
    objects: Objects = field(default_factory=Objects)
    counters: Counters = field(default_factory=Counters)
    qps: tuple[Qp, ...] = ()
    """The first 256."""
    port: PortCounters = field(default_factory=PortCounters)
    impairments: Impairments = field(default_factory=Impairments)

    def _addresses(self) -> list[ipaddress.IPv6Address]:
        return [ipaddress.IPv6Address(gid) for gid in self.gids]

    @property
    def ipv4(self) -> str:
        """Its first IPv4 address. Raises LookupError when there is none."""
        for address in self._addresses():
            if address.ipv4_mapped is not None:
                return str(address.ipv4_mapped)
        raise LookupError(f"{self.name} has no IPv4 address, but {', '.join(self.gids)}")

    @property
    def ipv6(self) -> str:
        """Its first IPv6 address that is not link-local. Raises LookupError when there is none."""
        for address in self._addresses():
            if address.ipv4_mapped is None and not address.is_link_local:
                return str(address)
        raise LookupError(f"{self.name} has no routable IPv6 address, but {', '.join(self.gids)}")


@dataclass(frozen=True)
class Listener:
    """An id of librdmacm that listens."""
    address: str
    any_address: bool = False
    port: int = 0
    port_space: str = ""
    backlog: int = 0
    requests_waiting: int = 0


@dataclass(frozen=True)
class Connection:
    """A connection of the connection manager, as one side sees it."""
    state: str
    device: int = 0
    active: bool = False
    owned: bool = False
    local_address: str = ""
    remote_address: str = ""
    service_port: int = 0
    local_qpn: int = 0
    remote_qpn: int = 0


@dataclass(frozen=True)
class ConnectionManagement:
    channels: int = 0
    ids: int = 0
    groups: int = 0
    listeners: tuple[Listener, ...] = ()
    connections: tuple[Connection, ...] = ()
    in_timewait: int = 0
    events_lost: int = 0


@dataclass(frozen=True)
class Status:
    name: str
    state_dir: str = ""
    version: str = ""
    pid: int = 0
    uptime_s: float = 0.0
    devices: tuple[Device, ...] = ()
    connection_management: ConnectionManagement = field(default_factory=ConnectionManagement)
    json: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that the command said, with what this package has no name for."""

    def __getitem__(self, device: Union[str, int]) -> Device:
        """A device by name, or by number. Raises LookupError."""
        for number, each in enumerate(self.devices):
            if device in (each.name, number):
                return each
        raise LookupError(f"the NIC has no device {device!r}, but "
                          f"{', '.join(each.name for each in self.devices)}")


@dataclass(frozen=True)
class Link:
    """One direction of a device's link: tx is what the device sends, rx what is sent to it."""
    device: str
    direction: str
    spec: str = "none"
    frames: int = 0
    lost: int = 0
    lost_in_outage: int = 0
    lost_in_queue: int = 0
    duplicated: int = 0
    corrupted: int = 0
