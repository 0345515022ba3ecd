"""What tests between hosts of `rocemu lab` have in common: a lab, commands and programs on its hosts, and when such a
test cannot be run. ROCEMU names the rocemu command to use."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from program_cases import ROCEMU, as_ordinary_user, skip

LIMIT_SECONDS = 60
LISTENS_AT = ":4853 [0-9A-F]+:0000 0A"  # perftest's and the pingpongs' port, 18515, in /proc/net/tcp


class Failed(Exception):
    pass


def words_as_user(script):
    """The script's arguments; with --user in front the script runs once more, as an ordinary user, and this one ends."""
    words = sys.argv[1:]
    if words[:1] == ["--user"]:
        sys.exit(as_ordinary_user(os.path.abspath(script), words[1:]))
    return words


def need(**packages):
    """Programs and the Debian packages they are in, and that namespaces can be made."""
    for program, package in packages.items():
        if shutil.which(program) is None:
            skip(f"{program} is missing (Debian package {package})")
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    if subprocess.run(["unshare", *user, "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        skip("no namespaces can be made here")


def wait_until(what, condition):
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what} did not come about")
        time.sleep(0.05)


class Running:
    """A program, its output kept in a file."""

    def __init__(self, words):
        self.words = words
        self._output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT)

    def output(self):
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def end(self):
        """Its exit code."""
        try:
            return self.process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{' '.join(self.words)} does not end: {self.output()}") from late

    def must_end_well(self):
        if self.end() != 0:
            raise Failed(f"{' '.join(self.words)} ended with {self.process.returncode}: {self.output()}")
        return self.output()

    def kill(self):
        self.process.kill()
        self.process.wait()


class Lab:
    """Two hosts, h1 and h2. Use as a context: leaving it takes the lab down, whatever has happened."""

    def __init__(self, name, *words):
        self.name = f"{name}{os.getpid()}"
        self._words = words
        self._folder = None

    def __enter__(self):
        subprocess.run([ROCEMU, "lab", "up", "--name", self.name, "--hosts", "2", *self._words], check=True,
                       timeout=LIMIT_SECONDS, stdout=subprocess.DEVNULL)
        self._folder = Path(self.on("h1", "printenv", "ROCEMU_LAB").strip())
        return self

    def __exit__(self, *_):
        subprocess.run([ROCEMU, "lab", "down", "--name", self.name], check=False, timeout=LIMIT_SECONDS,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def down(self):
        """Takes it down, and fails when anything of it is left."""
        pids = [Path("/proc") / file.read_text(encoding="ascii").strip() for file in (self._folder / "pids").glob("*")]
        subprocess.run([ROCEMU, "lab", "down", "--name", self.name], check=True, timeout=LIMIT_SECONDS,
                       stdout=subprocess.DEVNULL)
        wait_until(f"the end of the processes {pids}", lambda: not any(is_alive(pid) for pid in pids))
        if self._folder.exists():
            raise Failed("lab down left files")

    def command(self, host, *words):
        return [ROCEMU, "lab", "exec", "--name", self.name, host, "--", *words]

    def on(self, host, *words):
        """What a program that ends prints."""
        done = subprocess.run(self.command(host, *words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=LIMIT_SECONDS, check=False)
        if done.returncode != 0:
            raise Failed(f"{host}: {' '.join(words)}: {done.stdout}")
        return done.stdout

    def start(self, host, *words):
        return Running(self.command(host, *words))

    def status(self, host):
        return json.loads(self.on(host, ROCEMU, "status", "--json"))

    def device(self, host):
        """What the status says of the NIC's only device: `counters`, `port` and more."""
        return self.status(host)["devices"][0]

    def server(self, *words):
        """Starts a server of perftest or ibverbs-utils on h1; returns when it listens."""
        running = self.start("h1", *words)
        wait_until(f"{words[0]}'s listening",
                   lambda: re.search(LISTENS_AT, self.on("h1", "cat", "/proc/net/tcp", "/proc/net/tcp6")))
        return running

    def pair(self, *words, address="h1"):
        """Runs such a program on both hosts; returns what the client prints."""
        server = self.server(*words)
        try:
            printed = self.on("h2", *words, address)
            server.must_end_well()
            return printed
        finally:
            server.kill()


def is_alive(pid):
    try:
        return "Z (zombie)" not in (pid / "status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
