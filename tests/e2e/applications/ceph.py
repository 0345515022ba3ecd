#!/usr/bin/python3 -B
"""Ceph over its async+rdma messenger: a monitor, an OSD that keeps objects in memory, and rados as their client, each
with QPs to the others. What was put is what is got.

    ceph.py [--user] CASE...      ceph.py --list

--user    as an ordinary user without any capability (to be started by root)

ROCEMU names the rocemu command to use (default: the one in PATH). Exit code 77: a program is missing
(scripts/packages.sh soak).
"""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.append(sys.path[0] + "/../tools")
from pairs import End
from program_cases import ROCEMU, fail, main, skip

SELF = os.path.realpath(__file__)
PROGRAMS = ["ceph-mon", "ceph-osd", "ceph", "rados", "monmaptool"]
SECONDS = 60
OBJECT_BYTES = 20_000_000
BENCH_SECONDS = 3
BENCH_BYTES = 65536
CONFIGURATION = """\
[global]
fsid = {fsid}
mon initial members = a
mon host = v2:{monitor}
auth cluster required = none
auth service required = none
auth client required = none
public network = 127.0.0.0/8
ms type = async+rdma
ms async rdma device name = rocemu0
ms async rdma buffer size = 65536
ms async rdma send buffers = 256
ms async rdma receive buffers = 4096
ms async rdma receive queue len = 1024
ms async op threads = 1
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 2147483648
mon allow pool size one = true
keyring = /dev/null
mon data = {folder}/mon
osd data = {folder}/osd
run dir = {folder}
pid file =
log file = {folder}/$name.log
admin socket = {folder}/$name.$pid.asok
"""


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.configuration = os.path.join(folder, "ceph.conf")
        self.ends = []

    def run(self, *command):
        """What the command prints."""
        try:
            done = subprocess.run([command[0], "-c", self.configuration, *command[1:]], capture_output=True, text=True,
                                  timeout=SECONDS, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            fail(f"{' '.join(command)} does not end\n{self.report()}")
        if done.returncode != 0:
            fail(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-2000:]}\n{self.report()}")
        return done.stdout

    def start(self, program, identity):
        self.ends.append(End(program, [program, "-c", self.configuration, "-i", identity, "-f"]))

    def report(self):
        return "\n".join(end.report()[-3000:] for end in self.ends)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def cluster(folder):
    """With a monitor, an OSD and the pool `data`."""
    it = Cluster(folder)
    fsid, monitor = str(uuid.uuid4()), f"127.0.0.1:{free_port()}"
    os.mkdir(os.path.join(folder, "mon"))
    os.mkdir(os.path.join(folder, "osd"))
    with open(it.configuration, "w", encoding="ascii") as file:
        file.write(CONFIGURATION.format(fsid=fsid, monitor=monitor, folder=folder))
    monitors = os.path.join(folder, "monmap")
    subprocess.run(["monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:{monitor}]", monitors], check=True,
                   capture_output=True)
    try:
        it.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitors)
        it.start("ceph-mon", "a")
        identity = it.run("ceph", "osd", "create").strip()
        it.run("ceph-osd", "-i", identity, "--mkfs")
        it.start("ceph-osd", identity)
        it.run("ceph", "osd", "pool", "create", "data", "8")
        yield it
    finally:
        for end in it.ends:
            end.kill()


def put_and_get(ceph):
    put, got = (os.path.join(ceph.folder, name) for name in ("put", "got"))
    with open(put, "wb") as file:
        file.write(os.urandom(OBJECT_BYTES))
    ceph.run("rados", "-p", "data", "put", "object", put)
    ceph.run("rados", "-p", "data", "get", "object", got)
    with open(put, "rb") as one, open(got, "rb") as other:
        if one.read() != other.read():
            fail("what was got is not what was put")
    bench = ceph.run("rados", "-p", "data", "bench", str(BENCH_SECONDS), "write", "-b", str(BENCH_BYTES))
    figures = re.findall(r"^(Average IOPS|Average Latency\(s\)): +(.*)$", bench, re.MULTILINE)
    print(f"{OBJECT_BYTES} bytes put and got; objects of {BENCH_BYTES} bytes: {dict(figures)}")


CASES = {  # what the NIC is given
    "ceph": [],
    "ceph:impaired": ["--impair", "loss=0.5%,reorder=0.5%,dup=0.5%,corrupt=0.1%"],
}


def run(name):
    for program in PROGRAMS:
        if shutil.which(program) is None:
            skip(f"{program} is missing (scripts/packages.sh soak)")
    return subprocess.run([ROCEMU, "run", *CASES[name], "--", SELF, "--inside", name]).returncode


def run_inside(name):
    started_at = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, cluster(folder) as ceph:
        put_and_get(ceph)
    status = json.loads(subprocess.run([ROCEMU, "status", "--json"], check=True, capture_output=True).stdout)
    moved = sum(device["counters"]["rx_payload_bytes"] for device in status["devices"])
    if moved < 2 * OBJECT_BYTES:
        fail(f"only {moved} bytes went over the NIC")
    print(f"PASS {name} in {time.monotonic() - started_at:.1f} s")
    return 0


sys.exit(main(SELF, sys.argv[1:], CASES, run, run_inside))
