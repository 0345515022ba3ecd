"""Starts the two ends of an RDMA test program that meet over TCP (perftest, ibv_rc_pingpong, ...).

The server end has no host name among its arguments, the client end has; both take -d DEVICE and
-p TCP_PORT. The client is started when the server really listens: /proc tells, so no connection is
spent on finding out and nothing is left to a fixed sleep."""
import os
import random
import re
import subprocess
import tempfile
import time

FIRST_PORT, LAST_PORT = 20000, 29999  # below what the kernel hands out to clients
LISTENING = "0A"
POLL_SECONDS = 0.02
START_SECONDS = 30
PORT_TRIES = 5


class PairFailed(Exception):
    pass


def tcp_sockets():
    """(state, local port, inode) of every TCP socket of this network namespace."""
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(path, encoding="ascii") as table:
                rows = table.readlines()[1:]
        except FileNotFoundError:  # no IPv6
            continue
        for row in rows:
            columns = row.split()
            yield columns[3], int(columns[1].rsplit(":", 1)[1], 16), columns[9]


def port_in_use(port):
    return any(local == port for _, local, _ in tcp_sockets())


def listens(pid, port):
    """Whether that very process has the listening socket of that port."""
    inodes = {f"socket:[{inode}]" for state, local, inode in tcp_sockets() if (state, local) == (LISTENING, port)}
    if not inodes:
        return False
    try:
        return any(os.readlink(entry.path) in inodes for entry in os.scandir(f"/proc/{pid}/fd"))
    except OSError:  # the process or a descriptor has gone meanwhile
        return False


def choose_port():
    for _ in range(1000):
        port = random.randint(FIRST_PORT, LAST_PORT)
        if not port_in_use(port):
            return port
    raise PairFailed(f"no free TCP port from {FIRST_PORT} to {LAST_PORT}")


class End:
    """One running end, its output kept in a file."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.command = command
        self._output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._output,
                                        stderr=subprocess.STDOUT, env=environment)

    def output(self):
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def code(self):
        """The exit code, negative for a signal, or None while it runs."""
        return self.process.poll()

    def wait(self, seconds):
        """The exit code, or None when it does not end in time."""
        try:
            return self.process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def report(self):
        return f"--- {self.name}: {' '.join(self.command)} (exit code {self.code()})\n{self.output()}"


class Pair:
    """A server and a client of `program`. Use as a context: leaving it kills what still runs."""

    def __init__(self, program, arguments, server_device, client_device, environment=None):
        self.program, self.arguments = program, list(arguments)
        self.devices = {"server": server_device, "client": client_device}
        self.environment = environment
        self.server = self.client = None
        self.port = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for end in self.ends():
            end.kill()

    def ends(self):
        return [end for end in (self.server, self.client) if end]

    def report(self):
        return "\n".join(end.report() for end in self.ends())

    def _start(self, name, host):
        command = [self.program, *self.arguments, "-d", self.devices[name], "-p", str(self.port), *host]
        return End(name, command, self.environment)

    def start_server(self):
        """Returns when the server listens. Another program may take the port first: then another port."""
        for _ in range(PORT_TRIES):
            self.port = choose_port()
            self.server = self._start("server", [])
            deadline = time.monotonic() + START_SECONDS
            while self.server.code() is None and time.monotonic() < deadline:
                if listens(self.server.process.pid, self.port):
                    return
                time.sleep(POLL_SECONDS)
            if self.server.code() is None or not re.search(r"in use|[Cc]ouldn't listen", self.server.output()):
                break
        raise PairFailed(f"the server does not listen on port {self.port}")

    def start_client(self):
        self.client = self._start("client", ["localhost"])

    def run(self, seconds):
        """Both ends to success, or PairFailed. When one fails the other has a few seconds left."""
        self.start_server()
        self.start_client()
        deadline = time.monotonic() + seconds
        while any(end.code() is None for end in self.ends()):
            if time.monotonic() > deadline:
                running = [end.name for end in self.ends() if end.code() is None]
                raise PairFailed(f"{' and '.join(running)} did not end within {seconds} s")
            if any(end.code() not in (None, 0) for end in self.ends()):
                deadline = min(deadline, time.monotonic() + 5)
            time.sleep(POLL_SECONDS)
        failed = [f"{end.name} ended with {end.code()}" for end in self.ends() if end.code() != 0]
        if failed:
            raise PairFailed(", ".join(failed))
