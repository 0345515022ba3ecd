"""Faults on request (docs/faults.md): `rocemu fault`, typed."""
from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Optional, Union

from ._waiting import wait_until

if TYPE_CHECKING:
    from ._nic import RunningNic


@dataclass(frozen=True)
class FaultState:
    """A fault as `rocemu fault list` shows it."""
    id: int
    device: str
    fault: str
    """What goes wrong: "port-down"."""
    text: str = ""
    """All of it, as on the command line."""
    state: str = ""
    """waiting, active or over."""
    strikes: int = 0
    """How often it has struck."""


class Fault:
    """What was asked to go wrong: one fault, or those of a family's quirks. In a `with` statement it
    is taken back at the end."""

    def __init__(self, nic: RunningNic, ids: tuple[int, ...]) -> None:
        self._nic = nic
        self.ids = ids

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.clear()

    def states(self) -> list[FaultState]:
        """Of those that have not been taken back."""
        return [fault for fault in self._nic.faults() if fault.id in self.ids]

    @property
    def strikes(self) -> int:
        return sum(fault.strikes for fault in self.states())

    def wait_for_strike(self, timeout: float = 10) -> None:
        """Waits until it has struck for the first time."""
        wait_until(lambda: self.strikes > 0, timeout, what=f"faults {self.ids} to strike",
                   last_seen=lambda: repr(self.states()))

    def clear(self) -> None:
        """Takes it back: from now on it does not strike."""
        for state in self.states():
            self._nic.clear_fault(state.id)


def words(keys: dict[str, Union[str, int, float]]) -> list[str]:
    """`for_="1s"` is for=1s: that word is Python's own."""
    return [f"{name.rstrip('_')}={value}" for name, value in keys.items()]
