"""TCP ports for the programs of tests that run at the same time."""
from __future__ import annotations

import itertools
import random
import socket

from .errors import RocemuError

# Below the ports that Linux gives to clients by itself, and above most services.
_FIRST, _LAST = 20000, 29999


class PortReservations:
    """Ports that no other holder of reservations is given while this one lives, on this machine and
    in this network namespace. A reservation is a name in the abstract namespace of unix sockets,
    which has the same scope as the ports, and which the kernel takes back with the process."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []
        self._random = random.Random()  # apart from the test's own, which may be seeded

    def reserve(self) -> int:
        # From anywhere on, as others have reserved from elsewhere.
        first = self._random.randrange(_FIRST, _LAST + 1)
        for port in itertools.chain(range(first, _LAST + 1), range(_FIRST, first)):
            holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                holder.bind(f"\0rocemu-tcp-port-{port}")
                with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as attempt:
                    attempt.bind(("", port))
            except OSError:
                holder.close()
                continue
            self._held.append(holder)
            return port
        raise RocemuError(f"no TCP port from {_FIRST} to {_LAST} is free")

    def close(self) -> None:
        for holder in self._held:
            holder.close()
        self._held.clear()
