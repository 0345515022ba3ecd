#!/usr/bin/python3 -B
"""Changes of an interface under a NIC while a program sends over it: it goes down and comes back, loses its address,
has its MTU cut, vanishes.

    interface_changes.py [--user] CASE...      (none: all)

--user  as an ordinary user without any capability, in a user namespace (started by root)

Two hosts of rocemu lab; the changes are made on h1, whose events ibv_asyncwatch prints. ROCEMU names the rocemu command
to use. Exit code 77: it cannot be run here."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
ROCEMU = os.environ.get("ROCEMU", "rocemu")
LAB = f"changes{os.getpid()}"
LISTENS_AT = ":4853 [0-9A-F]+:0000 0A"
SECONDS = 6  # of traffic
LONG_TIMEOUT, SHORT_TIMEOUT = "18", "12"  # 8.6 s and 0.13 s until retries are exceeded
LIMIT_SECONDS = 30


class Failed(Exception):
    pass


def on(host, *words, check=True):
    done = subprocess.run([ROCEMU, "lab", "exec", "--name", LAB, host, "--", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=LIMIT_SECONDS, check=False)
    if check and done.returncode != 0:
        raise Failed(f"{host}: {' '.join(words)}: {done.stdout}")
    return done.stdout


class Running:
    """A program on a host, its output kept in a file."""

    def __init__(self, host, *words):
        self.words = words
        self._output = tempfile.TemporaryFile()
        self.process = subprocess.Popen([ROCEMU, "lab", "exec", "--name", LAB, host, "--", *words],
                                        stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT)

    def output(self):
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def end(self):
        try:
            return self.process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{' '.join(self.words)} does not end: {self.output()}") from late

    def kill(self):
        self.process.kill()
        self.process.wait()


def wait_until(what, condition):
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what} did not come about")
        time.sleep(0.1)


def frames_received():
    found = re.search(r'"rx_frames": (\d+)', on("h1", ROCEMU, "status", "--json"))
    return int(found[1])


class Traffic:
    """ib_write_bw from h2 to h1. Entering it waits until data flows."""

    def __init__(self, timeout):
        self.timeout = timeout
        self.server = self.client = None

    def __enter__(self):
        words = ["ib_write_bw", "-F", "-s", "16384", "-D", str(SECONDS), "-u", self.timeout]
        before = frames_received()
        self.server = Running("h1", *words)
        wait_until("the server's listening", lambda: re.search(LISTENS_AT, on("h1", "cat", "/proc/net/tcp", "/proc/net/tcp6")))
        self.client = Running("h2", *words, "10.99.0.1")
        wait_until("traffic", self.flows_from(before + 100))
        return self

    def __exit__(self, *_):
        for end in (self.client, self.server):
            if end is not None:
                end.kill()

    def flows_from(self, frames):
        def flows():
            if self.client.process.poll() is not None:
                raise Failed(f"the client ended: {self.client.output()}")
            return frames_received() > frames
        return flows

    def must_go_on(self):
        wait_until("traffic afterwards", self.flows_from(frames_received() + 100))
        if self.client.end() != 0 or self.server.end() != 0:
            raise Failed(f"traffic did not survive: {self.client.output()}{self.server.output()}")

    def must_fail(self):
        if self.client.end() == 0:
            raise Failed(f"the client did not notice: {self.client.output()}")
        if not re.search(r"status 12|retry exceeded", self.client.output()):
            raise Failed(f"another error than retries exceeded: {self.client.output()}")


class Events:
    """What ibv_asyncwatch on h1 has printed since the last look."""

    def __init__(self):
        self._watch = Running("h1", "stdbuf", "-oL", "ibv_asyncwatch", "-d", "rocemu0")
        self._seen = 0
        wait_until("ibv_asyncwatch", lambda: "async_events" in self._watch.output() or "rocemu0" in self._watch.output())

    def expect(self, text):
        def came():
            printed = self._watch.output()
            place = printed.find(text, self._seen)
            if place >= 0:
                self._seen = place + len(text)
            return place >= 0
        wait_until(f"the event '{text}' after {self._watch.output()!r}", came)

    def stop(self):
        self._watch.kill()


def port_says(text):
    wait_until(f"a port that says {text}", lambda: text in on("h1", "ibv_devinfo", "-v"))


def down_and_up(events):
    """The interface goes down for a second: an error and an activity event, and requests under way survive."""
    with Traffic(LONG_TIMEOUT) as traffic:
        on("h1", "ip", "link", "set", "eth0", "down")
        events.expect("IBV_EVENT_PORT_ERR")
        port_says("PORT_DOWN")
        on("h1", "ip", "link", "set", "eth0", "up")
        events.expect("IBV_EVENT_PORT_ACTIVE")
        port_says("PORT_ACTIVE")
        traffic.must_go_on()


def down_for_good(events):
    """It stays down for longer than the program has patience: retries are exceeded; later programs run."""
    with Traffic(SHORT_TIMEOUT) as traffic:
        on("h1", "ip", "link", "set", "eth0", "down")
        events.expect("IBV_EVENT_PORT_ERR")
        traffic.must_fail()
    on("h1", "ip", "link", "set", "eth0", "up")
    events.expect("IBV_EVENT_PORT_ACTIVE")
    with Traffic(LONG_TIMEOUT) as traffic:
        traffic.must_go_on()


def address(events):
    """The address of a connection is removed and given back, and another one comes and goes: GIDs change with them, the
    connection keeps its own."""
    with Traffic(LONG_TIMEOUT) as traffic:
        on("h1", "ip", "address", "del", "10.99.0.1/24", "dev", "eth0")
        events.expect("IBV_EVENT_GID_CHANGE")
        wait_until("a GID less", lambda: "::ffff:10.99.0.1," not in on("h1", "ibv_devinfo", "-v"))
        on("h1", "ip", "address", "add", "10.98.0.1/24", "dev", "eth0")
        events.expect("IBV_EVENT_GID_CHANGE")
        port_says("::ffff:10.98.0.1,")
        on("h1", "ip", "address", "del", "10.98.0.1/24", "dev", "eth0")
        on("h1", "ip", "address", "add", "10.99.0.1/24", "dev", "eth0")
        port_says("::ffff:10.99.0.1,")
        traffic.must_go_on()


def mtu(_):
    """The sender's MTU is cut below its path MTU: its frames do not leave any more, and retries are exceeded. With the
    old MTU everything is as it was."""
    with Traffic(SHORT_TIMEOUT) as traffic:
        on("h2", "ip", "link", "set", "eth0", "mtu", "1500")
        traffic.must_fail()
    wait_until("a smaller path MTU", lambda: re.search(r"active_mtu:\s+1024 ", on("h2", "ibv_devinfo")))
    on("h2", "ip", "link", "set", "eth0", "mtu", "9000")
    wait_until("the old path MTU", lambda: re.search(r"active_mtu:\s+4096 ", on("h2", "ibv_devinfo")))
    with Traffic(LONG_TIMEOUT) as traffic:
        traffic.must_go_on()


def vanishes(events):
    """The interface is deleted: an error event, retries exceeded at the other end, and a NIC that stays and says so."""
    with Traffic(SHORT_TIMEOUT) as traffic:
        on("h1", "ip", "link", "delete", "eth0")
        events.expect("IBV_EVENT_PORT_ERR")
        port_says("PORT_DOWN")
        traffic.must_fail()
    port_says("PORT_DOWN")
    on("h1", ROCEMU, "status")


CASES = {case.__name__: case for case in (down_and_up, down_for_good, address, mtu, vanishes)}


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(SKIPPED)


def main():
    words = sys.argv[1:]
    if words[:1] == ["--user"]:
        if os.getuid() != 0:
            skip("not root: everything runs as an ordinary user already")
        environment = {key: value for key, value in os.environ.items() if key != "XDG_RUNTIME_DIR"}
        os.execvpe("setpriv", ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all",
                               "--inh-caps=-all", "--no-new-privs", sys.executable, "-B", os.path.abspath(__file__),
                               *words[1:]], {**environment, "HOME": "/"})
    for program, package in (("ip", "iproute2"), ("ib_write_bw", "perftest"), ("ibv_asyncwatch", "ibverbs-utils")):
        if shutil.which(program) is None:
            skip(f"{program} is missing (Debian package {package})")
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    if subprocess.run(["unshare", *user, "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        skip("no namespaces can be made here")
    for name in words or CASES:
        subprocess.run([ROCEMU, "lab", "up", "--name", LAB, "--hosts", "2"], check=True, stdout=subprocess.DEVNULL)
        events = None
        try:
            events = Events()
            CASES[name](events)
            print(f"PASS {name}: {CASES[name].__doc__.splitlines()[0]}", flush=True)
        except (Failed, subprocess.TimeoutExpired) as why:
            sys.exit(f"FAIL {name}: {why}")
        finally:
            if events is not None:
                events.stop()
            subprocess.run([ROCEMU, "lab", "down", "--name", LAB], check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
