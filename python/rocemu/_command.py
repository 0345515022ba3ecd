"""The rocemu command: where it is, and what it answers.

Everything this package knows of a NIC comes from there. The command's options and its JSON are the
documented interface (docs/control.md); the socket behind it belongs to one build of rocemu.
"""
from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import CommandFailed, CommandNotFound

# The version of the command's JSON (docs/control.md) that this package reads.
JSON_VERSION = 1

# The command itself waits 5 s for a NIC, and up to 30 s for one to start or to end.
_TIMEOUT_S = 60.0


def find_command() -> str:
    """The path of the command: $ROCEMU, else the one that was built or installed together with this
    package, else the first on PATH. Raises CommandNotFound."""
    named = os.environ.get("ROCEMU")
    if named:
        found = shutil.which(named)
        if found is None:
            raise CommandNotFound(f"$ROCEMU is {named}, which cannot be run")
        return os.path.abspath(found)
    # PREFIX/lib/python3/dist-packages/rocemu, and BUILD/python/rocemu.
    folders = Path(os.path.abspath(__file__)).parent.parents
    for prefix in (folders[min(3, len(folders) - 1)], folders[min(1, len(folders) - 1)]):
        candidate = prefix / "bin" / "rocemu"
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("rocemu")
    if found is None:
        raise CommandNotFound(
            "there is no rocemu command: it is not beside this package and not on PATH; "
            "set $ROCEMU to its path")
    return os.path.abspath(found)


def call(command: str, arguments: Sequence[str]) -> str:
    """Runs the command and returns what it prints. Raises CommandFailed with what it says."""
    try:
        ended = subprocess.run([command, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, errors="replace", timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise CommandFailed(f"{' '.join([command, *arguments])} does not end", -1) from None
    if ended.returncode != 0:
        said = ended.stderr.strip() or f"exit status {ended.returncode}"
        raise CommandFailed(f"{said} (of: rocemu {' '.join(arguments)})", ended.returncode)
    return ended.stdout


def call_json(command: str, arguments: Sequence[str]) -> Any:
    """As call(), for what is printed as JSON."""
    return json.loads(call(command, arguments))


@functools.lru_cache(maxsize=None)
def usable_command() -> str:
    """As find_command(), once for each process; raises CommandNotFound also when that command
    speaks another version of JSON."""
    command = find_command()
    try:
        version = call_json(command, ["version", "--json"]).get("json_version", 0)
    except (CommandFailed, OSError, ValueError) as error:
        raise CommandNotFound(f"{command} does not answer as the rocemu command: {error}") from error
    if version != JSON_VERSION:
        raise CommandNotFound(
            f"{command} speaks version {version} of its JSON, and this package {JSON_VERSION}; "
            "use those of one build of rocemu")
    return command


@functools.lru_cache(maxsize=None)
def has_command(name: str) -> bool:
    """True when the rocemu command has a subcommand of that name, or ('run --check') an option."""
    subcommand, _, option = name.partition(" ")
    help_text = call(usable_command(), ["--help"])
    if re.search(rf"^ +{re.escape(subcommand)}\b", help_text, re.MULTILINE) is None:
        return False
    return option in call(usable_command(), [subcommand, "--help"])
