"""What /proc shows of the processes of a program."""
from __future__ import annotations

import os
from pathlib import Path

_TCP_LISTEN = "0A"


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def of_session(session: int) -> list[int]:
    """The processes of a session: a program and all that it has started, also what has been left
    by its parent, but for what has made a session of its own."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if os.getsid(pid) == session:
                found.append(pid)
        except OSError:
            pass
    return found


def _sockets(pid: int) -> set[str]:
    inodes = set()
    try:
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            if target.startswith("socket:["):
                inodes.add(target[len("socket:["):-1])
    except OSError:
        pass  # It ends just now.
    return inodes


def listens_on_tcp(pids: list[int]) -> bool:
    for pid in pids:
        inodes = _sockets(pid)
        for table in ("tcp", "tcp6") if inodes else ():
            try:
                lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
            except OSError:
                continue
            rows = [line.split() for line in lines]
            if any(row[3] == _TCP_LISTEN and row[9] in inodes for row in rows):
                return True
    return False


def doing(pid: int) -> str:
    """What a process is about, as the kernel has it: "sleeping in do_poll"."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        state = next(line for line in status.splitlines() if line.startswith("State:"))
        where = Path(f"/proc/{pid}/wchan").read_text().strip()
    except (OSError, StopIteration):
        return "gone"
    name = state.split("(")[-1].rstrip(")")
    return name if where in ("", "0") else f"{name} in {where}"
