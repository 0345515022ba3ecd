#!/usr/bin/python3 -B
"""rdma_tool.py ROCEMU: iproute2's rdma, as it is, shows what programs hold, and says of it what `rocemu status` says. To be
run inside a NIC of two devices; ibv_rc_pingpong and rping wait as servers meanwhile, and many connections stand."""
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time

SKIPPED = 77
ROCEMU = sys.argv[1]
DEADLINE_S = 30
QPS = 100
failures = []

for needed in ("rdma", "ibv_rc_pingpong", "ib_write_bw", "rping"):
    if shutil.which(needed) is None and not os.path.exists(f"/usr/sbin/{needed}"):
        print(f"SKIP: {needed} is missing")
        sys.exit(SKIPPED)
os.environ["PATH"] += ":/usr/sbin:/sbin"


def check(right, what):
    if not right:
        failures.append(what)
        print(f"FAILED: {what}")


def text(*words):
    run = subprocess.run(["rdma", *words], text=True, capture_output=True, timeout=DEADLINE_S)
    check(run.returncode == 0 and run.stderr == "", f"rdma {' '.join(words)}: {run.returncode} {run.stderr}")
    return run.stdout


def rows(*words):
    return json.loads(text("-j", *words) or "[]")


def refused(*words):
    run = subprocess.run(["rdma", *words], text=True, capture_output=True, timeout=DEADLINE_S)
    check(run.returncode != 0 and "rocemu" in run.stderr, f"rdma {' '.join(words)} is not refused: {run}")


def status():
    return json.loads(subprocess.check_output([ROCEMU, "status", "--json"]))


def until(what, true):
    end = time.monotonic() + DEADLINE_S
    while not true():
        if time.monotonic() > end:
            sys.exit(f"FAILED: {what} did not come about")
        time.sleep(0.02)


def quiet(*words):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def objects(index):
    return status()["devices"][index]["objects"]


# What is there of itself.
now = status()
names = [device["name"] for device in now["devices"]]
devices = rows("dev")
check([device["ifname"] for device in devices] == names, f"devices {devices}")
for device, shown in zip(now["devices"], devices):
    check(shown["node_guid"] == device["node_guid"], f"GUID of {shown}, not {device['node_guid']}")
    check(shown["fw"] == now["version"], f"version of {shown}")
check("AUTO_PATH_MIG" in text("-d", "dev", "show", "rocemu0"), "no capabilities")
links = rows("link")
check([(link["ifname"], link["port"], link["state"], link["physical_state"]) for link in links] ==
      [(name, 1, "ACTIVE", "LINK_UP") for name in names], f"links {links}")
for kind in ("qp", "cq", "mr", "pd", "ctx", "srq", "cm_id"):
    check(rows("resource", "show", kind) == [], f"there is a {kind} of nobody")
check(rows("statistic", "qp") == [], "there are counters of nobody's QPs")
check("netns shared" in text("system"), "the system's settings")

# Two ends with many connections: more than fit one message. One QP is in each state of a server's.
server = quiet("ib_write_bw", "-d", "rocemu0", "-x", "1", "-q", str(QPS), "-D", "60", "-p", "28515")
until("the server listens", lambda: ":28515 " in subprocess.check_output(["ss", "-ltn"], text=True))
client = quiet("ib_write_bw", "-d", "rocemu1", "-x", "1", "-q", str(QPS), "-D", "60", "-p", "28515", "localhost")
until("the QPs are connected", lambda: all(
    sum(qp["state"] in ("RTR", "RTS") for qp in device["qps"]) == QPS for device in status()["devices"][:2]))
waiting = quiet("ibv_rc_pingpong", "-d", "rocemu0", "-g", "1", "-p", "28516")
until("a QP waits", lambda: objects(0)["qps"] == QPS + 1)
listener = quiet("rping", "-s", "-a", "10.77.0.1", "-p", "28517")
until("an id listens", lambda: status()["connection_management"]["listeners"])

now = status()
qps = rows("resource", "show", "qp")
for index, name in enumerate(names):
    shown = {qp["lqpn"]: qp for qp in qps if qp["ifname"] == name}
    told = {qp["qpn"]: qp for qp in now["devices"][index]["qps"]}
    check(shown.keys() == told.keys(), f"QPs of {name}: {sorted(shown)} and {sorted(told)}")
    for qpn, qp in told.items():
        row = shown[qpn]
        check(row["state"] == qp["state"] and row["type"] == qp["service"] and row["rqpn"] == qp["remote_qpn"] and
              row["pid"] == qp["program"], f"QP {row}, and status says {qp}")
check(sum(qp["comm"] == "ib_write_bw" and qp["pid"] == server.pid for qp in qps) == QPS, "the server's QPs by its name")
check(sum(qp["comm"] == "ibv_rc_pingpong" and qp["pid"] == waiting.pid and qp["port"] == 1 for qp in qps) == 1,
      "the waiting program's QP")
check(len(qps) == 2 * QPS + 1, f"{len(qps)} QPs are listed")
one = rows("resource", "show", "qp", "lqpn", str(qps[0]["lqpn"]), "pid", str(qps[0]["pid"]))
check(one == [qps[0]], f"one QP by its number: {one}")

counts = {}
for kind, member in (("pd", "pds"), ("cq", "cqs"), ("mr", "mrs"), ("ctx", "contexts"), ("srq", "srqs"), ("qp", "qps")):
    found = rows("resource", "show", kind)
    counts[kind] = [sum(row["ifname"] == name for row in found) for name in names]
    check(counts[kind] == [objects(index)[member] for index in range(len(names))], f"{kind}: {counts[kind]}")
    check(all(row["comm"] in ("ib_write_bw", "ibv_rc_pingpong", "rping") for row in found), f"owners of {kind}: {found[:3]}")
summary = {row["ifname"]: row for row in rows("resource", "show")}
for index, name in enumerate(names):
    for kind, count in counts.items():
        check(summary[name][kind] == count[index], f"summary {summary[name]}")
regions = rows("resource", "show", "mr")
check(all(int(str(row["rkey"]), 0) != 0 and row["mrlen"] > 0 for row in regions), f"regions {regions[:3]}")
check(all(row["cqe"] > 0 and row["users"] >= 1 for row in rows("resource", "show", "cq")), "CQs without entries or users")

ids = rows("resource", "show", "cm_id")
check(len(ids) == 1 and ids[0]["state"] == "LISTEN" and ids[0]["ps"] == "TCP" and ids[0]["pid"] == listener.pid and
      ids[0]["src-addr"] == "10.77.0.1:28517", f"ids {ids}")

# Counters: of ports by the names and with the values of sysfs, once nothing moves; of each QP those that status has.
# The waiting client's traffic goes on until it is stopped.
counters = rows("statistic", "qp")
check(len(counters) == 2 * QPS + 1 and all(row["lqpn"] == [row["cntn"]] for row in counters), f"{len(counters)} counters")
sending = {qp["qpn"] for qp in now["devices"][1]["qps"] if qp["counters"].get("tx_frames", 0) > 0}
check(sending and all(row["sent_pkts"] > 0 for row in counters if row["ifname"] == "rocemu1" and row["cntn"] in sending),
      "counters of QPs that send")
check("qp auto off" in text("statistic", "qp", "mode"), "how counters are bound")
for program in (client, server, waiting, listener):
    program.kill()
for program in (client, server, waiting, listener):
    program.wait()
until("nothing is left", lambda: all(objects(index)["contexts"] == 0 for index in range(len(names))))
before = status()
shown = {row["ifname"]: row for row in rows("statistic", "show")}
for device in before["devices"]:
    row = shown[device["name"]]
    for ours, theirs in (("tx_frames", "sent_pkts"), ("rx_payload_bytes", "rcvd_bytes"), ("ack_timeouts", "local_ack_timeout_err")):
        check(row[theirs] == device["counters"][ours], f"{theirs} of {device['name']}: {row[theirs]}")
    folder = f"{os.environ['ROCEMU_DIR']}/sys/class/infiniband/{device['name']}/ports/1/hw_counters"
    check(set(os.listdir(folder)) <= row.keys(), f"counters of sysfs that rdma does not show: "
                                                 f"{set(os.listdir(folder)) - row.keys()}")
check(rows("resource", "show", "qp") == [] and rows("resource", "show", "cm_id") == [], "something is left")

# What would change devices says why not.
refused("link", "add", "rxe0", "type", "rxe", "netdev", "lo")
refused("dev", "set", "rocemu0", "name", "other")
refused("statistic", "qp", "set", "link", "rocemu0/1", "auto", "type", "on")

# Another library: a dump by hand, read a byte at a time of its buffer's size, with and without waiting.
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20) as nl:
    nl.bind((0, 0))
    check(nl.getsockname()[0] == os.getpid(), f"the port is {nl.getsockname()}")
    nl.send(struct.pack("IHHII", 16, 5 << 10 | 1, 0x301, 4, 0))
    found, kind = 0, 0
    while kind != 3:
        answer, sender = nl.recvfrom(4096)
        kind = struct.unpack_from("H", answer, 4)[0]
        found += kind == (5 << 10 | 1)
        check(sender == (0, 0), f"an answer of {sender}")
    check(found == len(names), f"{found} devices by hand")
    try:
        nl.recv(1, socket.MSG_DONTWAIT)
        check(False, "there is more behind the end")
    except BlockingIOError:
        pass

sys.exit(1 if failures else 0)
