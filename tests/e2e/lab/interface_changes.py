#!/usr/bin/python3 -B
"""Changes of an interface under a NIC while a program sends over it: it goes down and comes back, loses its address,
has its MTU cut, vanishes.

    interface_changes.py [--user] CASE...      (none: all)

--user  as an ordinary user without any capability, in a user namespace (started by root)

Two hosts of rocemu lab for each case; the changes are made on h1, whose events ibv_asyncwatch prints. ROCEMU names the rocemu command
to use; SLOWER, how many times longer than usual it takes (a build with sanitizers). Exit code 77: it cannot be run here."""
import concurrent.futures
import os
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/../tools")
from lab_hosts import Failed, Lab, need, wait_until, words_as_user
from program_cases import ROCEMU

LANES = 2  # cases at a time: most of each is waiting for the end of traffic
SECONDS = 6 * int(os.environ.get("SLOWER", "1"))  # of traffic
LONG_TIMEOUT, SHORT_TIMEOUT = "18", "12"  # 8.6 s and 0.13 s until retries are exceeded


def frames_received(lab):
    return lab.device("h1")["counters"]["rx_frames"]


class Traffic:
    """ib_write_bw from h2 to h1. Entering it waits until data flows."""

    def __init__(self, lab, timeout):
        self.lab = lab
        self.timeout = timeout
        self.server = self.client = None

    def __enter__(self):
        words = ["ib_write_bw", "-F", "-s", "16384", "-D", str(SECONDS), "-u", self.timeout]
        before = frames_received(self.lab)
        self.server = self.lab.server(*words)
        self.client = self.lab.start("h2", *words, "10.99.0.1")
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
            return frames_received(self.lab) > frames
        return flows

    def must_go_on(self):
        wait_until("traffic afterwards", self.flows_from(frames_received(self.lab) + 100))
        self.client.must_end_well()
        self.server.must_end_well()

    def must_fail(self):
        if self.client.end() == 0:
            raise Failed(f"the client did not notice: {self.client.output()}")
        if not re.search(r"status 12|retry exceeded", self.client.output()):
            raise Failed(f"another error than retries exceeded: {self.client.output()}")


class Events:
    """What ibv_asyncwatch on h1 has printed since the last look."""

    def __init__(self, lab):
        self._watch = lab.start("h1", "stdbuf", "-oL", "ibv_asyncwatch", "-d", "rocemu0")
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


def port_says(lab, text):
    wait_until(f"a port that says {text}", lambda: text in lab.on("h1", "ibv_devinfo", "-v"))


def down_and_up(lab, events):
    """The interface goes down for a second: an error and an activity event, and requests under way survive."""
    with Traffic(lab, LONG_TIMEOUT) as traffic:
        lab.on("h1", "ip", "link", "set", "eth0", "down")
        events.expect("IBV_EVENT_PORT_ERR")
        port_says(lab, "PORT_DOWN")
        lab.on("h1", "ip", "link", "set", "eth0", "up")
        events.expect("IBV_EVENT_PORT_ACTIVE")
        port_says(lab, "PORT_ACTIVE")
        traffic.must_go_on()


def down_for_good(lab, events):
    """It stays down for longer than the program has patience: retries are exceeded; later programs run."""
    with Traffic(lab, SHORT_TIMEOUT) as traffic:
        lab.on("h1", "ip", "link", "set", "eth0", "down")
        events.expect("IBV_EVENT_PORT_ERR")
        traffic.must_fail()
    lab.on("h1", "ip", "link", "set", "eth0", "up")
    events.expect("IBV_EVENT_PORT_ACTIVE")
    with Traffic(lab, LONG_TIMEOUT) as traffic:
        traffic.must_go_on()


def address(lab, events):
    """The address of a connection is removed and given back, and another one comes and goes: GIDs change with them, the
    connection keeps its own."""
    with Traffic(lab, LONG_TIMEOUT) as traffic:
        lab.on("h1", "ip", "address", "del", "10.99.0.1/24", "dev", "eth0")
        events.expect("IBV_EVENT_GID_CHANGE")
        wait_until("a GID less", lambda: "::ffff:10.99.0.1," not in lab.on("h1", "ibv_devinfo", "-v"))
        lab.on("h1", "ip", "address", "add", "10.98.0.1/24", "dev", "eth0")
        events.expect("IBV_EVENT_GID_CHANGE")
        port_says(lab, "::ffff:10.98.0.1,")
        lab.on("h1", "ip", "address", "del", "10.98.0.1/24", "dev", "eth0")
        lab.on("h1", "ip", "address", "add", "10.99.0.1/24", "dev", "eth0")
        port_says(lab, "::ffff:10.99.0.1,")
        traffic.must_go_on()


def mtu(lab, _):
    """The sender's MTU is cut below its path MTU: its frames do not leave any more, and retries are exceeded. With the
    old MTU everything is as it was."""
    with Traffic(lab, SHORT_TIMEOUT) as traffic:
        lab.on("h2", "ip", "link", "set", "eth0", "mtu", "1500")
        traffic.must_fail()
    wait_until("a smaller path MTU", lambda: re.search(r"active_mtu:\s+1024 ", lab.on("h2", "ibv_devinfo")))
    lab.on("h2", "ip", "link", "set", "eth0", "mtu", "9000")
    wait_until("the old path MTU", lambda: re.search(r"active_mtu:\s+4096 ", lab.on("h2", "ibv_devinfo")))
    with Traffic(lab, LONG_TIMEOUT) as traffic:
        traffic.must_go_on()


def vanishes(lab, events):
    """The interface is deleted: an error event, retries exceeded at the other end, and a NIC that stays and says so."""
    with Traffic(lab, SHORT_TIMEOUT) as traffic:
        lab.on("h1", "ip", "link", "delete", "eth0")
        events.expect("IBV_EVENT_PORT_ERR")
        port_says(lab, "PORT_DOWN")
        traffic.must_fail()
    port_says(lab, "PORT_DOWN")
    lab.on("h1", ROCEMU, "status")


CASES = {case.__name__: case for case in (down_and_up, down_for_good, address, mtu, vanishes)}


def run(name):
    """What went wrong, or None."""
    try:
        with Lab(f"changes-{name.replace('_', '-')}-") as lab:
            events = Events(lab)
            try:
                CASES[name](lab, events)
            finally:
                events.stop()
    except (Failed, subprocess.SubprocessError) as why:
        return f"FAIL {name}: {why}"
    print(f"PASS {name}: {CASES[name].__doc__.splitlines()[0]}", flush=True)
    return None


def main():
    words = words_as_user(__file__)
    need(ip="iproute2", ib_write_bw="perftest", ibv_asyncwatch="ibverbs-utils")
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        failures = [why for why in lanes.map(run, words or CASES) if why]
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
