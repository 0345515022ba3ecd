#!/usr/bin/python3 -B
"""What a trace tells of unmodified programs, read from its file.

    trace_rows.py CASE...      trace_rows.py --list

ROCEMU names the rocemu command to use (default: the one in PATH). Exit code 77: a program is missing.
"""
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../tools")
from program_cases import ROCEMU, fail, run_cases
from trace_file import (ADDRESS, BY_DEATH, COUNTER, DEVICE, IMPAIRMENT, NICS_TIME, PROGRAM, RECEIVE, RETRANSMISSION, RULE, Trace)

SECONDS = 60


def check(condition, what):
    if not condition:
        fail(what)


def run(*words, code=0):
    done = subprocess.run([ROCEMU, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    if code is not None and done.returncode != code:
        fail(f"rocemu {' '.join(words)} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def traced(folder, server, client, *options, code=0):
    path = f"{folder}/x.trace"
    said = run("run", "--trace", path, *options, "--server", server, "--", *client.split(), code=code)
    return Trace(path), said


def check_requests(trace, program):
    """Each request from post to poll: in this order, and each with its completion."""
    qps = {(r.device, r.qpn): trace.name(PROGRAM, r.program) for r in trace.of("qp_created")}
    check(qps and set(qps.values()) == {program}, f"QPs are of {qps}")
    cqs = {(r.device, r.qpn, side): cq for r in trace.of("qp_created") for side, cq in ((0, r.count), (RECEIVE, r.length))}
    check(all(cqs.values()), f"a QP without its CQs: {cqs}")
    for kind in ("taken", "completion_pushed", "completion_polled"):
        check(trace.of(kind), f"no {kind}")
    posted = {(r.device, r.qpn, r.flags & RECEIVE, r.request): r for r in trace.of("posted")}
    for taken in trace.of("taken"):
        post = posted[taken.device, taken.qpn, taken.flags & RECEIVE, taken.request]
        check(not post.flags & NICS_TIME, f"{post} is not the program's time")
        check(trace.name(PROGRAM, post.program) == program, f"{post} is not the program's")
        check(trace.start <= post.time <= taken.time, f"{post} after {taken}")
    over = trace.of("completion_pushed") + trace.of("acknowledged")
    sends = [r for r in over if not r.flags & RECEIVE]
    check(len({(r.device, r.qpn, r.request) for r in sends}) == len(sends), "a request was over twice")
    pushed = {(r.device, r.qpn, r.flags & RECEIVE, r.request): r for r in trace.of("completion_pushed")}
    exact = 0
    for polled in trace.of("completion_polled"):
        push = pushed[polled.device, polled.qpn, polled.flags & RECEIVE, polled.request]
        check(push.wr_id == polled.wr_id and push.time <= polled.time, f"{polled} after {push}")
        cq = cqs[polled.device, polled.qpn, polled.flags & RECEIVE]
        check(push.count == polled.count == cq, f"{push} and {polled} in another CQ than {cq}")
        exact += not polled.flags & NICS_TIME
    check(exact > 0, "no poll has the program's time")


def check_whole(trace):
    check(not trace.of("lost"), f"{sum(r.value for r in trace.of('lost'))} records were lost")
    check(len(trace.of("started")) == 1 and len(trace.of("stopped")) == 1, "begin and end")
    check(trace.name(DEVICE, 1) == "rocemu1" and trace.names[ADDRESS, 0], "names")


# For links that lose. Of two ibv_rc_pingpong one leaves while the other may still wait for its last acknowledgement, which
# nobody repeats when it is lost. perftest's two tell each other that they are done.
SERVER_OVER_LOSS = "ib_send_lat -d rocemu0 -s 65536 -n 300"
CLIENT_OVER_LOSS = "ib_send_lat -d rocemu1 -s 65536 -n 300 localhost"


def loss(folder):
    """Packets that a link loses are sent again, and the trace says which, and why."""
    trace, _ = traced(folder, SERVER_OVER_LOSS, CLIENT_OVER_LOSS, "--impair", "all:loss=1%,seed=3")
    check_whole(trace)
    check_requests(trace, "ib_send_lat")
    lost, again = trace.of("packet_lost"), [r for r in trace.of("packet_sent") if r.flags & RETRANSMISSION]
    check(lost and again, f"{len(lost)} lost, {len(again)} sent again")
    check({trace.name(IMPAIRMENT, r.program) for r in lost} == {"loss"}, "lost by another impairment")
    check(all(r.cause for r in again), "sent again without a cause")
    sent, received = trace.of("packet_sent"), trace.of("packet_received")
    check(len(sent) - len(lost) == len(received), f"{len(sent)} sent, {len(lost)} lost, {len(received)} received")
    naks = trace.of("nak_received") + trace.of("ack_timeout") + trace.of("retransmission") + trace.of("implied_nak")
    check(naks, "nothing made it send again")
    first = [r for r in sent if not r.flags & RETRANSMISSION and r.opcode < 12]
    check(all(r.request for r in first), "a packet without its request")
    check({trace.name(RULE, r.program) for r in trace.of("packet_refused")} <= {"out_of_sequence_psn"}, "refused")
    check_counters(trace)


def check_counters(trace):
    """The samples of counters: what has changed, and at the end all that was counted."""
    for device in {r.device for r in trace.of("packet_sent")}:
        samples = [r for r in trace.of("counter") if r.device == device and r.qpn == 0]
        last = {}
        for sample in samples:
            name = trace.name(COUNTER, sample.program)
            check(last.get(name) != sample.value, f"{name} has not changed, and is told all the same")
            last[name] = sample.value
        sent = len(trace.of("packet_sent", device=device))
        check(last.get("sent_pkts") == sent, f"{sent} packets sent, and counters {last}")
        check(last.get("sent_bytes") and last.get("rcvd_bytes"), f"no bytes: {last}")
    again = {r.device for r in trace.of("packet_sent") if r.flags & RETRANSMISSION}
    told = {r.device for r in trace.of("counter") if trace.name(COUNTER, r.program) == "retransmitted_pkts"}
    check(again == told, f"{again} have sent again, and the counters of {told} say so")


def write(folder):
    trace, _ = traced(folder, "ib_write_bw -d rocemu0 -s 64 -n 5000", "ib_write_bw -d rocemu1 -s 64 -n 5000 localhost")
    check_whole(trace)
    check_requests(trace, "ib_write_bw")
    writes = [r for r in trace.of("taken", opcode=0)]
    check(len(writes) >= 5000, f"{len(writes)} WRITEs were taken")
    check(not trace.of("packet_lost"), "a packet was lost")


def start_stop(folder):
    """A trace of a NIC that is up, of one device and one program."""
    path = f"{folder}/up.trace"
    run("up")
    try:
        run("trace", "start", "--program", "ibv_rc_pingpong", "--device", "rocemu1", path)
        check(stat.S_IMODE(os.stat(path).st_mode) == 0o600, "others may read it")
        for refused in (f"{folder}/second.trace", path):
            run("trace", "start", refused, code=1)
        check(not os.path.exists(f"{folder}/second.trace"), "a file is left of a trace that was refused")
        other = f"{folder}/other"
        with open(other, "w", encoding="utf-8") as file:
            file.write("kept")
        run("trace", "start", other, code=1)
        check(os.path.getsize(other) == 4, "a file is emptied for a trace that was refused")
        # A client that comes before its server listens ends at once.
        pingpong = ("ibv_rc_pingpong -d rocemu0 -g 1 -n 100 & "
                    "until ibv_rc_pingpong -d rocemu1 -g 1 -n 100 localhost; do kill -0 $! || exit 1; done; wait $!")
        run("exec", "--", "sh", "-c", pingpong)
        said = run("trace", "stop")
        check(said == f"{os.path.getsize(path)} bytes\n", said)
        run("trace", "stop", code=3)
        trace = Trace(path)
        check({r.device for r in trace.of("packet_sent")} == {1}, "another device")
        check_requests(trace, "ibv_rc_pingpong")
        status = json.loads(run("status", "--json"))
        check(len(status["devices"]) == 2, "the NIC goes on")
        run("trace", "start", "--qp", "0x123456", f"{folder}/none.trace")
        run("exec", "--", "sh", "-c", pingpong)
        run("trace", "stop")
        check(not Trace(f"{folder}/none.trace").of("packet_sent"), "a QP that was not asked for")
        for wrong in (["--device", "mlx5_0", path], ["--qp", "x", path], [], ["--limit-mb", "0", path], ["/dev/null"]):
            run("trace", "start", *wrong, code=2)
    finally:
        run("down", code=None)


def on_error(folder):
    """Nothing but what led to an error."""
    path = f"{folder}/error.trace"
    run("run", "--trace-on-error", path, "--server", "ibv_rc_pingpong -d rocemu0 -g 1 -n 10", "--",
        "ibv_rc_pingpong", "-d", "rocemu1", "-g", "1", "-n", "10", "localhost")
    check(not Trace(path).of("packet_sent"), "no error, and records all the same")
    run("run", "--trace-on-error", path, "--impair", "rocemu0.tx:loss=100%", "--server",
        "ibv_rc_pingpong -d rocemu0 -g 1 -n 10", "--", "ibv_rc_pingpong", "-d", "rocemu1", "-g", "1", "-n", "10", "localhost",
        code=None)
    trace = Trace(path)
    check(trace.flags & 1, "the header does not say that it is of a ring")
    check(trace.of("ack_timeout") and trace.of("packet_lost"), "what led to it is missing")
    check([r for r in trace.of("completion_pushed") if r.code == 12], "no retry exceeded error")
    check(trace.of("qp_created"), "whose QP it is")


def start_options(folder):
    """What is traced, chosen where the NIC starts."""
    path = f"{folder}/x.trace"
    client = "ibv_rc_pingpong -d rocemu1 -g 1 -n 2000 localhost".split()
    server = ("--server", "ibv_rc_pingpong -d rocemu0 -g 1 -n 2000", "--", *client)
    run("run", "--trace", path, "--trace-filter", "device=rocemu1,program=ibv_rc_pingpong", *server)
    check({r.device for r in Trace(path).of("packet_sent")} == {1}, "another device")
    run("run", "--trace-on-error", path, "--trace-last", "1024", "--fault", "rocemu0 no-answer packet=1500 for=20s", *server, code=None)
    trace = Trace(path)
    failure = [r for r in trace.of("completion_pushed") if r.code == 12][0]
    for device in (0, 1):  # the file's record of a request that is taken is two here, and QPs are told of apart
        led = [r for r in trace.records if r.device == device and r.time <= failure.time and
               r.kind not in ("posted", "qp_created", "qp_state")]
        check(100 < len(led) <= 1024, f"{len(led)} records of rocemu{device} led to it")
    said = run("run", "--trace", path, "--trace-filter", "device=mlx5_0", "--", "true", code=None)
    check("--trace-filter names a device" in said, said)
    for wrong in (["--trace-on-error", path, "--trace-last", "1023"], ["--trace", path, "--trace-filter", "port=1"],
                  ["--trace-filter", "qp=17"]):
        said = run("run", *wrong, "--", "true", code=None)
        check(re.search(f"the NIC did not start: (--)?{wrong[-2][2:]}: ", said), said)


def wait_for(condition, what):
    end = time.monotonic() + SECONDS / 2
    while not condition():
        check(time.monotonic() < end, f"{what} did not come")
        time.sleep(0.05)


def qps_of(device):
    return next(d["qps"] for d in json.loads(run("status", "--json"))["devices"] if d["name"] == device)


def start_pingpong(*words):
    command = [ROCEMU, "exec", "--", "ibv_rc_pingpong", "-g", "1", "-n", "100000000", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def killed(folder):
    """A program that is killed has ended by its death, and what it did before stands there."""
    path = f"{folder}/death.trace"
    # The delay keeps what the programs do small enough for the memory before the trigger, however late this looks.
    run("up", "--impair", "delay=1ms", "--trace-on-error", path)
    programs = []

    def has_done_something():
        if programs[-1].poll() is not None:  # it came before its server listened
            programs[-1] = start_pingpong("-d", "rocemu1", "localhost")
        return any(qp["completed_requests"] > 100 for qp in qps_of("rocemu1"))

    try:
        programs.append(start_pingpong("-d", "rocemu0"))
        wait_for(lambda: qps_of("rocemu0"), "the server's QP")
        programs.append(start_pingpong("-d", "rocemu1", "localhost"))
        wait_for(has_done_something, "requests")
        victim = qps_of("rocemu1")[0]["program"]
        os.kill(victim, signal.SIGKILL)
        programs[-1].wait(SECONDS)
        wait_for(lambda: os.path.getsize(path) > 64 * 1024, "what led there")
    finally:
        for program in programs:
            program.kill()
            program.wait(SECONDS)
        run("down", code=None)
    trace = Trace(path)
    ended, = trace.of("program_ended", device=1)
    check(ended.cause == BY_DEATH, f"{ended} is no death")
    check(trace.names[PROGRAM, ended.program] == ("ibv_rc_pingpong", victim), f"another program: {trace.names}")
    before = [r for r in trace.records if r.device == 1 and r.time <= ended.time]
    for kind in ("qp_created", "posted", "packet_sent", "completion_pushed"):
        check([r for r in before if r.kind == kind], f"no {kind} led there")
    said = run("trace", "show", path)
    check(f"ibv_rc_pingpong ({victim}) program ended, by death" in said, "text does not tell of it")


def limit(folder):
    """A file with a bound has one, and says that it is cut."""
    path = f"{folder}/x.trace"
    said = run("run", "--trace", path, "--trace-limit-mb", "1", "--server", "ib_write_bw -d rocemu0 -s 64 -n 20000", "--",
        *"ib_write_bw -d rocemu1 -s 64 -n 20000 localhost".split())
    check(os.path.getsize(path) <= 1_000_064, f"{os.path.getsize(path)} bytes")
    check(Trace(path).of("stopped")[0].cause == 44, "it does not say that it is full")
    check(re.search("^rocemu: trace: .* records had no room; it is not whole$", said, re.M), said)
    said = run("run", "--pcap", "/dev/full", "--server", "ib_write_bw -d rocemu0 -n 100", "--",
               *"ib_write_bw -d rocemu1 -n 100 localhost".split())
    check("rocemu: capture file /dev/full: No space left on device; recording has ended" in said, said)


def tshark(path, *words):
    done = subprocess.run(["tshark", "-r", path, *words], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def pcapng(folder):
    """A capture of real frames that says what the NIC knows of them, as tshark shows it."""
    if shutil.which("tshark") is None:
        print("SKIPPED: there is no tshark here")
        return 77
    path = f"{folder}/x.pcapng"
    run("run", "--pcap", path, "--impair", "rocemu0.rx:loss=2%,seed=3", "--server", SERVER_OVER_LOSS, "--",
        *CLIENT_OVER_LOSS.split())
    fields = [word for name in ("frame.interface_name", "infiniband.bth.psn", "infiniband.bth.opcode", "frame.len",
                                "frame.cap_len", "frame.comment") for word in ("-e", name)]
    rows = [line.split("\t") for line in tshark(path, "-Y", "infiniband", "-T", "fields", *fields)]
    check({row[0] for row in rows} == {"rocemu0", "rocemu1"}, "interfaces have other names")
    check(all(row[3] == row[4] for row in rows), "payload is cut off")
    lost = [row[1] for row in rows if "lost: loss" in row[5] and int(row[2], 0) < 12]  # and no answers
    again = [row[1] for row in rows if "sent again: " in row[5]]
    check(lost and set(lost) <= set(again), f"{len(lost)} lost, {len(again)} sent again")
    check(sum("is of ib_send_lat" in row[5] for row in rows) == 2, "QPs have no program")
    found = tshark(path, "-Y", 'frame.comment contains "sent again"')
    check(len(found) == len(again), f"a filter finds {len(found)} of {len(again)}")
    check(not tshark(path, "-Y", "_ws.malformed || _ws.short"), "tshark finds packets malformed")
    # Of any other name it is what it has always been.
    run("run", "--pcap", f"{folder}/x.pcap", "--", "true")
    with open(f"{folder}/x.pcap", "rb") as file:
        check(file.read(4) == b"\x4d\x3c\xb2\xa1", "a capture of another name is no pcap file")
    return 0


def keys(folder):
    """What is wrong with the key that a NAK is about. BAD_INPUT names the program that uses such keys."""
    if shutil.which("tshark") is None:
        print("SKIPPED: there is no tshark here")
        return 77
    for row, said in (("rkey of a deregistered region", " of a deregistered region"),
                      ("of another PD's region", " of another protection domain"),
                      ("one byte past the region", ", whose region does not have all of it"),
                      ("READ of a region without REMOTE_READ", ", which does not grant that"),
                      ("an rkey never given", " 0xffffffff, which was never given")):
        path = f"{folder}/keys.pcapng"
        run("run", "--pcap", path, "--", os.environ["BAD_INPUT"], "-d", "rocemu0", "-D", "rocemu1", "--only", row)
        comments = tshark(path, "-Y", "frame.comment", "-T", "fields", "-e", "frame.comment")
        drawn = [c for c in comments if "draws NAK: remote access error: rkey 0x" in c]
        check(drawn and all(c.endswith(said) for c in drawn), f"{row}: {comments}")
    return 0


def cm(folder):
    """How a connection came about: each message, at both ends."""
    # Not perftest with -R: its server listens twice, and refuses who comes in between.
    trace, _ = traced(folder, "rping -s -a 10.77.0.1 -C 10", "rping -c -a 10.77.0.1 -C 10")
    names = {0x10: "REQ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP"}
    for kind in ("cm_sent", "cm_received"):
        seen = [names[r.opcode] for r in trace.of(kind)]
        check(seen[:3] == ["REQ", "REP", "RTU"] and "DREQ" in seen, f"{kind}: {seen}")
    req, rep = trace.of("cm_sent", opcode=0x10)[0], trace.of("cm_sent", opcode=0x13)[0]
    qps = {(r.device, r.qpn) for r in trace.of("qp_created")}
    check({(req.device, req.qpn), (rep.device, rep.qpn)} <= qps, "the QPs are others")
    check(req.time < rep.time < trace.of("packet_sent")[0].time, "out of order")
    said = run("trace", "show", f"{folder}/x.trace")
    check("cm sent: REQ" in said and "cm received: RTU" in said, "text does not tell of it")


def fault(folder):
    """What a fault takes is lost, as what a link takes is; and what a QP waits for meanwhile."""
    trace, _ = traced(folder, "ib_read_bw -d rocemu0 -n 200 -o 1", "ib_read_bw -d rocemu1 -n 200 -o 1 localhost",
                      "--fault", "rocemu0 no-answer packet=20 for=100ms")
    lost = trace.of("packet_lost")
    check(lost and {trace.name(IMPAIRMENT, r.program) for r in lost} == {"a fault"}, f"{len(lost)} lost")
    check({r.cause for r in trace.of("waits")} >= {63}, "READs do not wait for each other")
    said = run("trace", "why", f"{folder}/x.trace")
    check("as many READs and atomics as max_rd_atomic allows were outstanding" in said, said)


CASES = {"loss": loss, "write": write, "start-stop": start_stop, "on-error": on_error, "start-options": start_options, "killed": killed,
         "limit": limit, "pcapng": pcapng, "keys": keys, "cm": cm, "fault": fault}


def in_folder(name):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        return CASES[name](folder) or 0


sys.exit(print("\n".join(CASES)) if sys.argv[1:] == ["--list"] else run_cases(sys.argv[1:], CASES, in_folder))
