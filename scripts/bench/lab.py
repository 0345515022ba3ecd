"""What measurements run in: a NIC that is up, the programs' environment, and pairs of programs."""
import contextlib
import json
import os
import re
import resource
import shlex
import subprocess
import tempfile
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e/tools"))
from pairs import End, Pair, PairFailed, choose_port, listens, port_in_use  # noqa: E402

LIMIT_SECONDS = 120


class MeasurementFailed(Exception):
    pass


class NotMeasured(Exception):
    """What it takes is not here, and need not be."""


def output_of(command, environment=None):
    done = subprocess.run([str(part) for part in command], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS, check=False)
    if done.returncode != 0:
        raise MeasurementFailed(f"{shlex.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Build:
    """Where the programs of ours are."""

    def __init__(self, directory):
        self.rocemu = Path(directory) / "bin/rocemu"
        self.bench = Path(directory) / "tests/bench"


class Nic:
    """A NIC with two devices that is up as long as this object is used as a context.

    settings: its configuration file, TOML. options: others of `rocemu up`."""

    made = 0

    def __init__(self, build, settings="", options=()):
        self.build = build
        self.settings = settings
        self.options = options
        Nic.made += 1
        self.name = f"bench-{os.getpid()}-{Nic.made}"

    def __enter__(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(self.settings)
            file.flush()
            output_of([self.build.rocemu, "up", "--name", self.name, "--config", file.name, *self.options])
        self.environment = dict(os.environ)
        for name, value in re.findall(r"^export (\w+)=(.*)$", output_of([self.build.rocemu, "env", "--name", self.name]), re.M):
            self.environment[name] = " ".join(shlex.split(value.rstrip(";")))
        return self

    def __exit__(self, *_):
        subprocess.run([self.build.rocemu, "down", "--name", self.name], stdout=subprocess.DEVNULL, check=False)

    def status(self):
        return json.loads(output_of([self.build.rocemu, "status", "--name", self.name, "--json"]))

    def pid(self):
        return self.status()["pid"]


def private_bytes(pid):
    """Memory of the process that is its own: no queue memory, which it shares with programs."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise MeasurementFailed(f"/proc/{pid}/status has no RssAnon")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class ProcessorTime:
    """The seconds that a NIC and the programs that are started and have ended meanwhile take. Use as a context."""

    def __init__(self, pid):
        self._pid = pid
        self.seconds = None

    def _now(self):
        programs = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cpu_seconds(self._pid) + programs.ru_utime + programs.ru_stime

    def __enter__(self):
        self._start = self._now()
        return self

    def __exit__(self, *_):
        self.seconds = self._now() - self._start


@contextlib.contextmanager
def on_processors(processors):
    """What is started in it runs on these alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def perftest(program, arguments, devices, environment):
    """The last line of the table that the client of a perftest program prints, as numbers."""
    with Pair(program, ["-F", *map(str, arguments)], *devices, environment=environment) as pair:
        pair.run(LIMIT_SECONDS)
        rows = [line.split() for line in pair.client.output().splitlines() if re.match(r"^ *[0-9]+ +[0-9]", line)]
    if not rows:
        raise MeasurementFailed(f"{program} printed no table:\n{pair.report()}")
    return [float(cell) for cell in rows[-1]]


def wait_until(what, condition):
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            raise MeasurementFailed(f"in vain for 10 s: {what}")
        time.sleep(0.02)


def server_and_client(server_command, client_command, port):
    """Runs both; the client starts when the server listens. What the client printed."""
    server = End("server", [str(part) for part in server_command])
    try:
        deadline = time.monotonic() + 10
        while not listens(server.process.pid, port):
            if time.monotonic() > deadline or server.code() is not None:
                raise MeasurementFailed(f"does not listen: {server.report()}")
            time.sleep(0.02)
        return output_of(client_command)
    finally:
        server.kill()
