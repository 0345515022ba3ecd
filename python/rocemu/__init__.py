"""rocemu for those who write tests: NICs, programs on them, and what happens there.

    with rocemu.Nic(devices=2, impair="loss=1%") as nic:
        nic.run_pair("ib_write_bw -d rocemu0", "ib_write_bw -d rocemu1 localhost")
        assert nic.status()["rocemu1"].counters.retransmitted_frames > 0

docs/python.md is the page about it, and pytest_plugin.py has the fixtures.
"""
from ._command import find_command, has_command
from ._faults import Fault, FaultState
from ._findings import Backtrace, Finding, Frame
from ._nic import LinkChange, Pair, RunningNic
from ._owned import Nic
from ._program import Program, Result
from ._status import (Connection, ConnectionManagement, Counters, Device, Impairments, Link, Listener,
                      Objects, PortCounters, Qp, Status)
from ._waiting import wait_until
from .errors import (CommandFailed, CommandNotFound, FindingsReported, NicLost, ProgramFailed,
                     ProgramTimeout, RocemuError, WaitTimeout)

__all__ = [
    "Backtrace", "CommandFailed", "CommandNotFound", "Connection", "ConnectionManagement",
    "Counters", "Device", "Fault", "FaultState", "Finding", "FindingsReported", "Frame",
    "Impairments", "Link", "LinkChange", "Listener", "Nic", "NicLost", "Objects", "Pair",
    "PortCounters", "Program", "ProgramFailed", "ProgramTimeout", "Qp", "Result", "RocemuError",
    "RunningNic", "Status", "WaitTimeout", "find_command", "has_command", "wait_until",
]
