"""The program of the `rocemu run` that holds a NIC for a Nic. It says where the NIC is, and ends at the
first byte or at the end of its standard input: so the NIC is gone when the test's process is, in
whatever way that ended.
Programs that still run on the NIC then are killed, and named by their process ids.

It is run as a file of its own, with nothing but the standard library.
"""
from __future__ import annotations

import json
import os
import signal
import sys

# Some 5 s: what is killed takes a moment to be gone, and may just have started another.
ATTEMPTS = 500
PAUSE_S = 0.01
# For a program that the test was starting when it died: it has the environment after its exec(2).
START_PAUSE_S = 0.2


def running_on(state_dir: str) -> list[int]:
    """Processes whose environment names the NIC, but for this one."""
    wanted = b"ROCEMU_DIR=" + os.fsencode(state_dir)
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if pid != os.getpid() and wanted in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            pass  # It has ended, or is another user's.
    return found


def kill_what_is_left(state_dir: str) -> list[int]:
    killed: set[int] = set()
    for _ in range(ATTEMPTS):
        left = running_on(state_dir)
        if not left:
            break
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            except OSError:
                pass
        signal.sigtimedwait([], PAUSE_S)
    return sorted(killed)


def checks() -> dict[str, str]:
    """What `rocemu run --check` tells a program, this one, and has to tell those of the test."""
    named = {name: value for name, value in os.environ.items() if name.startswith("ROCEMU_CHECK")}
    return {**named, "LD_PRELOAD": os.environ.get("LD_PRELOAD", "")} if named else {}


def say(answer: dict[str, object]) -> None:
    try:
        print(json.dumps(answer), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Nobody reads it any more.


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    state_dir = os.environ["ROCEMU_DIR"]
    say({"state_dir": state_dir, "environment": checks()})
    is_said = os.read(0, 1) != b""
    killed = kill_what_is_left(state_dir)
    if not is_said:
        signal.sigtimedwait([], START_PAUSE_S)
        kill_what_is_left(state_dir)
    say({"killed": killed})
    return 0


if __name__ == "__main__":
    sys.exit(main())
