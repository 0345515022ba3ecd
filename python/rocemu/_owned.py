"""A NIC of one's own, for as long as a test needs it."""
from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Optional, Union

from . import _command, _findings, _processes
from ._findings import Finding
from ._nic import Folder, RunningNic
from .errors import CommandFailed

_START_TIMEOUT_S = 60.0  # rocemu gives up before
_END_TIMEOUT_S = 30.0
_REASON_TIMEOUT_S = 0.5
_PAUSE_S = 0.01
_KEEPER = str(Path(__file__).with_name("_keeper.py"))

Texts = Union[str, Sequence[str], None]
Switch = Union[bool, str]


def _each(option: str, values: Texts) -> list[str]:
    texts = [values] if isinstance(values, str) else list(values or ())
    return [word for text in texts for word in (option, text)]


def _number(option: str, value: Optional[int]) -> list[str]:
    return [] if value is None else [option, str(value)]


def _switch(option: str, value: Switch) -> list[str]:
    if isinstance(value, str):
        return [f"{option}={value}"]
    return [option] if value else []


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _REASON_TIMEOUT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)


class Nic(RunningNic):
    """A NIC that is made here and ends with the `with` statement, with close(), or with this process,
    whatever way that ends; all programs that it was shown to end with it. It is private, so that any
    number of tests can have NICs at the same time."""

    def __init__(self, devices: Optional[int] = None, *, impair: Texts = None, fault: Texts = None,
                 port: Texts = None, congestion: Texts = None, recovery: Optional[str] = None,
                 network: Folder = None, config: Folder = None,
                 pcap: Union[Folder, Literal[False]] = None, pcap_limit_mb: Optional[int] = None,
                 log_level: Optional[str] = None, check: Switch = False, shake: Switch = False,
                 options: Sequence[str] = ()) -> None:
        """Starts it, by `rocemu run`, whose options these are; those that may be given several times
        are sequences or one text, those that need no value may be True. `options` are more of
        them, as on the command line. Raises CommandFailed with what rocemu says."""
        arguments = [*_number("--devices", devices), *_number("--pcap-limit-mb", pcap_limit_mb),
                     *_each("--impair", impair), *_each("--fault", fault), *_each("--port", port),
                     *_each("--congestion", congestion), *_switch("--check", check),
                     *_switch("--shake", shake)]
        for option, value in (("--recovery", recovery), ("--network", network),
                              ("--config", config), ("--pcap", pcap), ("--log-level", log_level)):
            if value:
                arguments += [option, os.fspath(value)]
        self._environment = {}
        self._owner = os.getpid()
        self._last_log = ""
        self._last_findings: list[Finding] = []
        self._taken = 0
        self.pcap = Path(os.path.abspath(pcap)) if pcap else None
        self._said = tempfile.TemporaryFile()
        self._holder = subprocess.Popen(
            [_command.usable_command(), "run", *arguments, *options, "--", sys.executable, "-I", "-S",
             _KEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
            start_new_session=True)
        try:
            answer = self._hear(_START_TIMEOUT_S)
            state_dir = Path(answer["state_dir"])
            self._daemon = int((state_dir / "pid").read_text())
            super().__init__(socket=state_dir / "nic.sock")
            self._environment = answer["environment"]
        except BaseException:
            self._let_go()
            self._abandon()
            raise

    def _hear(self, timeout: float) -> dict[str, Any]:
        """The keeper's next line. Raises CommandFailed when none comes."""
        assert self._holder.stdout is not None
        if select.select([self._holder.stdout], [], [], timeout)[0]:
            line = self._holder.stdout.readline()
            if line:
                answer: dict[str, Any] = json.loads(line)
                return answer
            self._holder.wait(_END_TIMEOUT_S)
        raise CommandFailed(self._complaint() or f"the NIC does not answer within {timeout:g} s",
                            self._holder.poll() or -1)

    def _complaint(self) -> str:
        size = os.fstat(self._said.fileno()).st_size
        return os.pread(self._said.fileno(), size, 0).decode(errors="replace").strip()

    def _let_go(self) -> None:
        """By a byte: a process that the test has forked may hold the pipe as well."""
        assert self._holder.stdin is not None
        try:
            self._holder.stdin.write(b"\n")
            self._holder.stdin.close()
        except OSError:
            pass  # It has ended by itself.

    def _abandon(self) -> None:
        assert self._holder.stdin is not None and self._holder.stdout is not None
        try:
            self._holder.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._holder.kill()
            self._holder.wait()
        self._holder.stdout.close()
        self._said.close()

    def __enter__(self) -> Nic:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return self._said.closed

    def _why_gone(self, failure: CommandFailed) -> Optional[str]:
        if self.closed:
            return "the NIC has been closed"
        # A process that ends closes its sockets first.
        if "does not answer" in str(failure):
            _wait(lambda: not _processes.is_alive(self._daemon))
        if _processes.is_alive(self._daemon):
            return None
        _wait(lambda: bool(self._complaint()))  # `rocemu run` says why it is gone, a moment after.
        return self._complaint() or "the NIC's process has ended"

    def log(self) -> str:
        """What the NIC has logged until now, also after its end."""
        if not self.closed:
            self._last_log = super().log() or self._last_log
        return self._last_log

    def findings(self) -> list[Finding]:
        """What the checker has found until now, also after the NIC's end, in programs of a NIC with
        `check` (docs/check.md); but for those that have been taken. Raises CommandFailed for a NIC
        without: none is not none found."""
        if not self.checks:
            raise CommandFailed("the NIC was made without check: nothing was looked for", 1)
        self._read_findings()
        return self._last_findings[self._taken:]

    @property
    def checks(self) -> bool:
        """Whether the NIC was made with `check`."""
        return "ROCEMU_CHECK_DIR" in self._environment

    def _read_findings(self) -> None:
        if self.checks and not self.closed:
            self._last_findings = _findings.read(Path(self._environment["ROCEMU_CHECK_DIR"]))

    def take_findings(self) -> list[Finding]:
        """As findings(), which then has them no more: for tests that expect some."""
        taken = self.findings()
        self._taken += len(taken)
        return taken

    def close(self) -> None:
        """Ends the programs that were started here, then the NIC. Programs that these have left
        behind are killed, and there is a ResourceWarning. May be called again."""
        if self.closed or os.getpid() != self._owner:
            return
        self._end_programs()
        self.log()
        self._read_findings()
        self._let_go()
        try:
            killed = self._hear(_END_TIMEOUT_S).get("killed")
        finally:
            self._abandon()
        if killed:
            warnings.warn(f"{len(killed)} processes still ran on the NIC and were killed: "
                          f"{', '.join(map(str, killed))}", ResourceWarning, stacklevel=2)
