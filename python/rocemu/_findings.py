"""What the checker has found (docs/check.md): the lines that checked programs append to findings.jsonl."""
from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from ._json import from_json

FILE = "findings.jsonl"


@dataclass(frozen=True)
class Frame:
    """A call on a stack."""
    function: str = ""
    file: str = ""
    line: int = 0
    module: str = ""
    offset: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file else f"{self.module}+{self.offset:#x}"
        return f"{self.function or '?'}  {where}"


@dataclass(frozen=True)
class Backtrace:
    """Where in the program something happened, from the innermost call on."""
    label: str = ""
    thread: int = 0
    frames: tuple[Frame, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"  {self.label}:", *(f"    #{number} {frame}"
                                                for number, frame in enumerate(self.frames))])


@dataclass(frozen=True)
class Finding:
    """A misuse of verbs by a program."""
    name: str
    """Of the check: "send-buffer-changed"."""
    sentence: str = ""
    why: str = ""
    advice: str = ""
    verb: str = ""
    program: str = ""
    process: int = 0
    thread: int = 0
    objects: tuple[str, ...] = ()
    backtraces: tuple[Backtrace, ...] = ()
    """That of the call first."""
    times: int = 1
    """In how many processes it was found."""

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.program}[{self.process}], in {self.verb or 'the end'}",
                 f"  {self.sentence}", *map(str, self.backtraces)]
        lines += [f"  Why: {self.why}"] if self.why else []
        lines += [f"  To do: {self.advice}"] if self.advice else []
        return "\n".join(lines)

    def _identity(self) -> tuple[object, ...]:
        where = self.backtraces[0].frames if self.backtraces else self.sentence
        return self.name, self.verb, where


def read(folder: Path) -> list[Finding]:
    """In the order in which they were found; what several processes found is one."""
    try:
        lines = (folder / FILE).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    found: dict[tuple[object, ...], Finding] = {}
    for line in lines:
        try:
            finding = from_json(Finding, json.loads(line))
        except (ValueError, TypeError, AttributeError):
            continue  # Half a line, of a program that was killed, or of one that means harm.
        known = found.setdefault(finding._identity(), finding)
        if known is not finding:
            found[finding._identity()] = dataclasses.replace(known, times=known.times + 1)
    return list(found.values())
