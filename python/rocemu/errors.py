"""What can go wrong, as exceptions whose text says what happened, where, and what was last seen."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._findings import Finding
    from ._program import Result


class RocemuError(Exception):
    """The base of all errors of this package."""


class CommandNotFound(RocemuError):
    """There is no rocemu command, or one that this package does not know how to talk to."""


class CommandFailed(RocemuError):
    """The rocemu command refused; the text is what it said."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
        """Its exit status: docs/configuration.md, "Exit codes"."""


class NicLost(RocemuError):
    """The NIC's process has ended, or its `with` block has."""


class ProgramFailed(RocemuError):
    """A program ended with another exit status than was expected."""

    def __init__(self, message: str, results: Sequence[Result]) -> None:
        super().__init__(message)
        self.results = tuple(results)
        """Of the program, or of server and client."""


class ProgramTimeout(RocemuError, TimeoutError):
    """A program did not end in time. It has been ended."""


class WaitTimeout(RocemuError, TimeoutError):
    """A condition did not come to hold in time."""


class FindingsReported(RocemuError):
    """The checker has found misuse of verbs."""

    def __init__(self, message: str, findings: Sequence[Finding]) -> None:
        super().__init__(message)
        self.findings = tuple(findings)
