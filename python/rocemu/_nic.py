"""A NIC that is up: what tests do with it."""
from __future__ import annotations

import functools
import json
import os
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Optional, TypeVar, Union

from . import _command, _processes
from ._faults import Fault, FaultState, words
from ._json import from_json
from ._ports import PortReservations
from ._program import Command, Program, Result, as_arguments
from ._status import Link, Status
from ._waiting import source_of, wait_until, what_it_read
from .errors import CommandFailed, NicLost, ProgramFailed, ProgramTimeout, RocemuError

T = TypeVar("T")
Folder = Union[str, "os.PathLike[str]", None]

_LISTEN_TIMEOUT_S = 30.0
_LOG_LINES_SHOWN = 5
# For how long a server may go on after its client, or a client after a server that failed; as
# `rocemu run --server` has it. A server whose client has failed has that long to say something.
_ALONE_TIMEOUT_S = 10.0
_LAST_WORDS_TIMEOUT_S = 2.0
_PAUSE_S = 0.005


class Pair(NamedTuple):
    server: Result
    client: Result


class LinkChange:
    """Impairments that have been set. As a context manager it sets, at its end, what there was
    before."""

    def __init__(self, nic: RunningNic, before: list[Link]) -> None:
        self._nic, self._before = nic, before

    def restore(self) -> None:
        # At once where both directions were alike: nobody sees half a link in between.
        directions: dict[tuple[str, str], list[str]] = {}
        for link in self._before:
            directions.setdefault((link.device, link.spec), []).append(link.direction)
        for (device, spec), of in directions.items():
            self._nic._set_link(device, of[0] if len(of) == 1 else "both", spec)

    def __enter__(self) -> LinkChange:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.restore()


class RunningNic:
    """A NIC that is up, whoever has started it: `rocemu up`, a `rocemu run` around the tests, or a
    Nic. Names and state directories are those of docs/configuration.md."""

    def __init__(self, name: Optional[str] = None, *, socket: Folder = None) -> None:
        """The NIC with that name, or behind that nic.sock; with neither, that of $ROCEMU_DIR, else
        the one named 'default'. Raises CommandFailed when there is none."""
        self._command = _command.usable_command()
        self._which = (["--socket", os.fspath(socket)] if socket is not None
                       else ["--name", name] if name is not None else [])
        self._programs: dict[Program, Status] = {}  # with what there was before each
        self._environment: dict[str, str] = {}  # of all of them
        self._ports = PortReservations()
        status = self.status()
        self.name = status.name
        self.state_dir = Path(status.state_dir)
        self._which = ["--socket", str(self.state_dir / "nic.sock")]

    # ---- what it shows ----

    def _ask(self, *arguments: str) -> str:
        """The answer of the rocemu command. Raises NicLost when the NIC is gone."""
        try:
            return _command.call(self._command, arguments)
        except CommandFailed as failure:
            reason = self._why_gone(failure)
            if reason is None:
                raise
            raise NicLost(f"{reason}; {failure}") from failure

    def _why_gone(self, failure: CommandFailed) -> Optional[str]:
        """Why there is no NIC any more, as a failure has shown; None while there is one, as far as is
        known."""
        return None

    def _ask_json(self, *arguments: str) -> Any:
        return json.loads(self._ask(*arguments))

    def status(self) -> Status:
        """All that `rocemu status` shows: devices, addresses, objects, QPs, counters."""
        data = self._ask_json("status", *self._which, "--json")
        return from_json(Status, {**data, "json": data})

    def links(self) -> list[Link]:
        """Impairments and their counts, for each direction of each device's link."""
        shown = self._ask_json("link", "show", *self._which, "--json")
        return [from_json(Link, link) for link in shown]

    def link(self, device: str, direction: str = "tx") -> Link:
        for link in self.links():
            if (link.device, link.direction) == (device, direction):
                return link
        raise LookupError(f"the NIC has no link {device} {direction}")

    def log(self) -> str:
        """What the NIC has logged until now."""
        try:
            return (self.state_dir / "log").read_text(errors="replace")
        except OSError:
            return ""

    # ---- the network ----

    def impair(self, device: str, spec: str, direction: str = "tx") -> LinkChange:
        """Sets what a link does to frames (docs/impairments.md), as `rocemu link set` does: in place
        of what was set, in direction "tx", "rx" or "both", and for all devices where `device` is
        "all". In a `with` statement it is set for that block."""
        before = [link for link in self.links() if device in ("all", link.device)
                  and direction in ("both", link.direction)]
        self._set_link(device, direction, spec)
        return LinkChange(self, before)

    def _set_link(self, device: str, direction: str, spec: str) -> None:
        self._ask("link", "set", *self._which, device, direction, spec)

    def cut(self, device: str) -> LinkChange:
        """Loses all frames of a device, in both directions, until mend(), or in a `with` statement
        for that block. The port stays ACTIVE, as behind a switch that is dead."""
        return self.impair(device, "loss=100%", "both")

    def mend(self, device: str = "all") -> None:
        """Makes links perfect again."""
        self.impair(device, "none", "both")

    # ---- faults ----

    def fault(self, device: str, what: str, **keys: Union[str, int, float]) -> Fault:
        """Lets something go wrong with a device, or with "all", as `rocemu fault` does: what, whose
        and when are those of docs/faults.md, as in fault("rocemu0", "port-down", for_="200ms")."""
        answer = self._ask_json("fault", *self._which, "--json", device, what, *words(keys))
        return Fault(self, tuple(answer["ids"]))

    def faults(self) -> list[FaultState]:
        """All that have not been taken back."""
        shown = self._ask_json("fault", *self._which, "--json", "list")
        return [from_json(FaultState, fault) for fault in shown]

    def clear_fault(self, which: Union[int, Literal["all"]]) -> None:
        """Takes a fault back, by its id, or all of them."""
        self._ask("fault", *self._which, "clear", str(which))

    # ---- programs ----

    def start(self, command: Command, *, input: Optional[str] = None,
              env: Optional[Mapping[str, str]] = None, cwd: Folder = None,
              share_memory: bool = False) -> Program:
        """Starts a program that sees the NIC's devices. `input` is what it reads, `env` is added to
        the environment. It is ended with the NIC at the latest."""
        launcher = [self._command, "exec", *self._which,
                    *(["--share-memory"] if share_memory else []), "--"]
        # `rocemu exec` sets this for the program; until then it says whose program it will be.
        environment = {**self._environment, **(env or {}), "ROCEMU_DIR": str(self.state_dir)}
        if env and "LD_PRELOAD" in env and "LD_PRELOAD" in self._environment:
            environment["LD_PRELOAD"] = f"{env['LD_PRELOAD']}:{self._environment['LD_PRELOAD']}"
        before = self.status()
        program = Program(launcher, as_arguments(command), env=environment, cwd=cwd, input=input,
                          context=functools.partial(self._what_happened_since, before))
        self._programs[program] = before
        return program

    def run(self, command: Command, *, timeout: float = 60, expect: Optional[int] = 0,
            input: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
            cwd: Folder = None, share_memory: bool = False) -> Result:
        """Runs a program to its end; start() and Program.wait() say the rest."""
        with self.start(command, input=input, env=env, cwd=cwd, share_memory=share_memory) as program:
            return program.wait(timeout, expect=expect)

    def run_pair(self, server: Command, client: Command, *, timeout: float = 60,
                 expect: Optional[int] = 0, env: Optional[Mapping[str, str]] = None,
                 cwd: Folder = None) -> Pair:
        """Starts the server, and when it listens the client, and waits for both. `timeout` and
        `expect` are the client's. A server that goes on for 10 s after the client's end is ended,
        which is no failure; one that fails is, unless `expect` is None."""
        with self.start(server, env=env, cwd=cwd) as serving:
            self.wait_listening(serving)
            with self.start(client, env=env, cwd=cwd) as asking:
                return self._wait_for_pair(serving, asking, timeout, expect)

    def _wait_for_pair(self, serving: Program, asking: Program, timeout: float,
                       expect: Optional[int]) -> Pair:
        deadline = time.monotonic() + timeout
        while asking.poll() is None and time.monotonic() < deadline:
            served = serving.poll()
            if expect is not None and served is not None and served.status != 0:
                deadline = min(deadline, time.monotonic() + _ALONE_TIMEOUT_S)
            time.sleep(_PAUSE_S)
        served, client = serving.poll(), asking.poll()
        server_failed = served is not None and served.status != 0 and expect is not None
        if client is None and not server_failed:
            raise ProgramTimeout(f"{asking.describe_timeout(timeout)}\n{serving.end()}")
        client = client or asking.end()
        went_well = expect is None or client.status == expect
        server = self._end_of_server(serving, _ALONE_TIMEOUT_S if went_well else _LAST_WORDS_TIMEOUT_S)
        if expect is not None and server.status != 0 and not server.was_ended:
            went_well = False
        if not went_well:
            raise ProgramFailed(f"{client}\n{server}\n{asking.context()}", [server, client])
        return Pair(server, client)

    @staticmethod
    def _end_of_server(serving: Program, timeout: float) -> Result:
        deadline = time.monotonic() + timeout
        while serving.poll() is None and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        return serving.end()

    # ---- waiting ----

    def wait_until(self, condition: Callable[[Status], T], timeout: float = 10, *,
                   what: str = "") -> T:
        """Looks at status() until `condition` of it is true, and returns what that returned. After
        `timeout` seconds raises WaitTimeout with the values that the condition looked at last."""
        last: list[Status] = []

        def look() -> T:
            last[:] = [self.status()]
            return condition(last[0])

        return wait_until(look, timeout, what=what or source_of(condition),
                          last_seen=lambda: what_it_read(condition, last[0]) or "nothing of the NIC")

    def wait_listening(self, program: Program, timeout: float = _LISTEN_TIMEOUT_S) -> None:
        """Waits until a program that was started listens, by TCP or by the NIC's connection manager.
        Raises WaitTimeout, and ProgramFailed when it ends instead."""
        known = self._programs[program].connection_management.listeners

        def listens() -> bool:
            if program.poll() is not None:
                raise ProgramFailed("before it listened: " + program.describe_failure(),
                                    [program.end()])
            return (_processes.listens_on_tcp(_processes.of_session(program.pid)) or
                    len(self.status().connection_management.listeners) > len(known))

        wait_until(listens, timeout, what=f"{shlex.join(program.command)} to listen",
                   last_seen=program.last_seen)

    # ---- the rest ----

    def tcp_port(self) -> int:
        """A TCP port that is free and stays reserved for this NIC's programs: for servers of tests
        that run at the same time, which share the machine's ports."""
        return self._ports.reserve()

    def _what_happened_since(self, before: Status) -> str:
        """For messages: what was counted since then, and the end of the log."""
        lines = []
        try:
            for device in self.status().devices:
                counts = (device.counters - before[device.name].counters).nonzero()
                if counts:
                    shown = ", ".join(f"{name} {count}" for name, count in counts.items())
                    lines.append(f"  NIC| {device.name}: {shown}")
        except RocemuError as error:
            lines.append(f"  NIC| {error}")
        lines += [f"  log| {line}" for line in self.log().splitlines()[-_LOG_LINES_SHOWN:]]
        return "\n".join(lines)

    def _end_programs(self) -> None:
        for program in self._programs:
            program.end()
        self._ports.close()
