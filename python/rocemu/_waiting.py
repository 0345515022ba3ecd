"""Waiting for conditions: tests poll here, with a deadline, and need no sleeps of their own."""
from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable
from typing import Any, Optional, TypeVar

from .errors import WaitTimeout

T = TypeVar("T")

# A look at a NIC takes some 10 ms of one core: this leaves the programs most of it.
_PAUSE_S = 0.02
_MOST_SHOWN = 300


def wait_until(condition: Callable[[], T], timeout: float = 10, *, what: str = "",
               last_seen: Optional[Callable[[], str]] = None) -> T:
    """Calls `condition` until what it returns is true, and returns that. After `timeout` seconds
    raises WaitTimeout, which names `what` was waited for (else the condition's source) and what was
    seen last. The condition is called once at least, and once more at the end."""
    deadline = time.monotonic() + timeout
    while True:
        late = time.monotonic() >= deadline
        value = condition()
        if value:
            return value
        if late:
            break
        time.sleep(min(_PAUSE_S, max(0.0, deadline - time.monotonic())))
    seen = last_seen() if last_seen is not None else f"it returned {_short(repr(value))}"
    raise WaitTimeout(f"waited {timeout:g} s for {what or source_of(condition)}; last seen: {seen}")


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + " ..."


def source_of(condition: Callable[..., object]) -> str:
    """The source of a condition, on one line; its name where there is no source."""
    try:
        return _short(" ".join(inspect.getsource(condition).split()))
    except (OSError, TypeError):
        return getattr(condition, "__name__", repr(condition))


class Recorder:
    """Stands in for an object that a condition looks at, and notes which plain values it read
    there: those are what the condition depends on."""

    def __init__(self, subject: Any, path: str = "", notes: Optional[dict[str, Any]] = None) -> None:
        self._subject, self._path = subject, path
        self.notes: dict[str, Any] = {} if notes is None else notes

    def _note(self, path: str, value: Any) -> Any:
        if dataclasses.is_dataclass(value) or isinstance(value, (tuple, dict)):
            return Recorder(value, path, self.notes)
        if not callable(value):
            self.notes[path] = value
        return value

    def __getattr__(self, name: str) -> Any:
        return self._note(f"{self._path}.{name}".lstrip("."), getattr(self._subject, name))

    def __getitem__(self, key: Any) -> Any:
        return self._note(f"{self._path}[{key!r}]", self._subject[key])

    def __iter__(self) -> Any:
        len(self)
        return (self._note(f"{self._path}[{i}]", each) for i, each in enumerate(self._subject))

    def __len__(self) -> int:
        self.notes[f"len({self._path})"] = len(self._subject)
        return len(self._subject)

    def __sub__(self, other: Any) -> Any:
        plain = other._subject if isinstance(other, Recorder) else other
        return self._note(f"({self._path} - earlier)", self._subject - plain)


def what_it_read(condition: Callable[[Any], object], subject: Any) -> str:
    """The values in `subject` that `condition` looks at, as text; empty when that cannot be seen."""
    recorder = Recorder(subject)
    try:
        condition(recorder)
    except Exception:  # A stand-in may be too little for what it does.
        pass
    return ", ".join(f"{path} = {_short(repr(value))}" for path, value in recorder.notes.items())
