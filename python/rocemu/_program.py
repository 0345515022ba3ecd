"""Programs on a NIC: started, waited for, ended, and what they said."""
from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Optional, Union

from . import _processes
from ._waiting import wait_until
from .errors import ProgramFailed, ProgramTimeout, WaitTimeout

Command = Union[str, Sequence[Union[str, "os.PathLike[str]"]]]

_PAUSE_S = 0.005
_END_TIMEOUT_S = 2.0  # of SIGTERM
_LINES_SHOWN = 20


def as_arguments(command: Command) -> list[str]:
    """A text is split as by a shell, but nothing in it is expanded."""
    arguments = shlex.split(command) if isinstance(command, str) else [os.fspath(a) for a in command]
    if not arguments:
        raise ValueError("an empty command")
    return arguments


@dataclass(frozen=True)
class Result:
    """A program that has ended."""
    command: tuple[str, ...]
    status: int
    """Its exit status, or -N when signal N ended it."""
    stdout: str
    stderr: str
    duration_s: float
    was_ended: bool = False
    """By this package, as it went on."""

    @property
    def output(self) -> str:
        """stdout and stderr, one after the other."""
        return self.stdout + self.stderr

    def __str__(self) -> str:
        return f"{shlex.join(self.command)}: {describe_status(self.status)}\n{self.tail()}"

    def tail(self) -> str:
        return _tail("stdout", self.stdout) + _tail("stderr", self.stderr)


def describe_status(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    return f"ended by signal {-status} ({signal.Signals(-status).name})"


def _tail(name: str, text: str) -> str:
    lines = text.splitlines()
    left_out = len(lines) - _LINES_SHOWN
    if left_out > 0:
        lines = [f"... {left_out} lines before", *lines[left_out:]]
    return "".join(f"  {name}| {line}\n" for line in lines)


class Program:
    """A program that runs on a NIC, in a session of its own. Its output goes to files without names,
    so that it never waits for somebody to read it, and can be looked at at any time."""

    def __init__(self, launcher: Sequence[str], command: Command, *, env: Mapping[str, str],
                 cwd: Union[str, os.PathLike[str], None], input: Optional[str],
                 context: Callable[[], str]) -> None:
        """`context` says what happened to the NIC meanwhile, for messages."""
        self.command = tuple(as_arguments(command))
        self.context = context
        self._stdout, self._stderr = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self._began = time.monotonic()
        self._result: Optional[Result] = None
        with tempfile.TemporaryFile() as stdin:
            stdin.write((input or "").encode())
            stdin.seek(0)
            self._process = subprocess.Popen(
                [*launcher, *self.command], stdin=stdin, stdout=self._stdout, stderr=self._stderr,
                cwd=cwd, env={**os.environ, **env}, start_new_session=True)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.end()

    def __repr__(self) -> str:
        state = "runs" if self._process.poll() is None else describe_status(self._process.returncode)
        return f"<Program {shlex.join(self.command)}: {state}>"

    @property
    def pid(self) -> int:
        return self._process.pid

    @staticmethod
    def _read(file: IO[bytes]) -> str:
        # The position is shared with the program, so it is left where it is.
        size = os.fstat(file.fileno()).st_size
        return os.pread(file.fileno(), size, 0).decode(errors="replace")

    @property
    def stdout(self) -> str:
        """What it has said until now."""
        return self._result.stdout if self._result else self._read(self._stdout)

    @property
    def stderr(self) -> str:
        return self._result.stderr if self._result else self._read(self._stderr)

    def poll(self) -> Optional[Result]:
        """The result, or None while it runs."""
        if self._result is None and self._process.poll() is not None:
            self._finish(was_ended=False)
        return self._result

    def _finish(self, was_ended: bool) -> None:
        self._result = Result(self.command, self._process.returncode, self._read(self._stdout),
                              self._read(self._stderr), time.monotonic() - self._began, was_ended)
        self._stdout.close()
        self._stderr.close()

    def wait(self, timeout: float = 60, *, expect: Optional[int] = 0) -> Result:
        """Waits for its end. Raises ProgramTimeout after `timeout` seconds, when it has been ended,
        and ProgramFailed when its exit status is not `expect`; None is for any."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise ProgramTimeout(self.describe_timeout(timeout))
            time.sleep(_PAUSE_S)
        assert self._result is not None
        if expect is not None and self._result.status != expect:
            raise ProgramFailed(self.describe_failure(expect), [self._result])
        return self._result

    def describe_failure(self, expect: int = 0) -> str:
        assert self._result is not None
        wanted = "" if expect == 0 else f", not {expect}"
        return (f"{shlex.join(self.command)}: {describe_status(self._result.status)}{wanted}\n"
                f"{self._result.tail()}{self.context()}")

    def describe_timeout(self, timeout: float) -> str:
        doing = ", ".join(f"process {pid} {_processes.doing(pid)}"
                          for pid in _processes.of_session(self.pid))
        context = self.context()
        result = self.end()
        return (f"{shlex.join(self.command)} did not end within {timeout:g} s, and was ended: "
                f"{doing}\n{result.tail()}{context}")

    def wait_for_output(self, pattern: str, timeout: float = 10) -> re.Match[str]:
        """Waits until a regular expression is found in its stdout or stderr, and returns the match.
        Programs that write to a file mostly do so when a buffer is full or they end: for those
        that do not flush, start them by stdbuf(1) or wait for something else."""
        expression = re.compile(pattern, re.MULTILINE)

        def look() -> Optional[re.Match[str]]:
            ended = self.poll() is not None
            found = expression.search(self.stdout) or expression.search(self.stderr)
            if found is None and ended:
                raise WaitTimeout(f"{pattern!r} is not in the output of " + self.describe_failure())
            return found

        found = wait_until(look, timeout, what=f"{pattern!r} in the output of "
                           f"{shlex.join(self.command)}", last_seen=self.last_seen)
        assert found is not None
        return found

    def last_seen(self) -> str:
        return f"\n{_tail('stdout', self.stdout)}{_tail('stderr', self.stderr)}{self.context()}"

    def send_signal(self, number: int) -> None:
        """To all its processes. Does nothing when it has ended."""
        if self.poll() is None:
            os.killpg(self._process.pid, number)

    def end(self) -> Result:
        """SIGTERM, 2 s, SIGKILL to all its processes, if it has not ended by itself."""
        was_ended = self.poll() is None
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is not None:
                break
            self.send_signal(number)
            try:
                self._process.wait(_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                continue
        self._process.wait()
        self._kill_session()
        if self._result is None:
            self._finish(was_ended)
        assert self._result is not None
        return self._result

    def _kill_session(self) -> None:
        """Returns when nothing of it is left."""
        deadline = time.monotonic() + _END_TIMEOUT_S
        while time.monotonic() < deadline:
            left = [pid for pid in _processes.of_session(self._process.pid) if _processes.is_alive(pid)]
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(_PAUSE_S)
