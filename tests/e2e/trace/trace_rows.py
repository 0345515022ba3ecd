#!/usr/bin/python3 -B
"""What a trace tells of unmodified programs, read from its file.

    trace_rows.py CASE...      trace_rows.py --list

ROCEMU names the rocemu command to use (default: the one in PATH). Exit code 77: a program is missing.
"""
import json
import os
import stat
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/../tools")
from program_cases import ROCEMU, fail, run_cases
from trace_file import (ADDRESS, DEVICE, IMPAIRMENT, NICS_TIME, PROGRAM, RECEIVE, RETRANSMISSION, RULE, Trace)

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
    for kind in ("taken", "completion_pushed", "completion_polled"):
        check(trace.of(kind), f"no {kind}")
    posted = {(r.device, r.qpn, r.flags & RECEIVE, r.request): r for r in trace.of("posted")}
    for taken in trace.of("taken"):
        post = posted[taken.device, taken.qpn, taken.flags & RECEIVE, taken.request]
        check(not post.flags & NICS_TIME, f"{post} is not the program's time")
        check(trace.start <= post.time <= taken.time, f"{post} after {taken}")
    over = trace.of("completion_pushed") + trace.of("acknowledged")
    sends = [r for r in over if not r.flags & RECEIVE]
    check(len({(r.device, r.qpn, r.request) for r in sends}) == len(sends), "a request was over twice")
    pushed = {(r.device, r.qpn, r.flags & RECEIVE, r.request): r for r in trace.of("completion_pushed")}
    exact = 0
    for polled in trace.of("completion_polled"):
        push = pushed[polled.device, polled.qpn, polled.flags & RECEIVE, polled.request]
        check(push.wr_id == polled.wr_id and push.time <= polled.time, f"{polled} after {push}")
        exact += not polled.flags & NICS_TIME
    check(exact > 0, "no poll has the program's time")


def check_whole(trace):
    check(not trace.of("lost"), f"{sum(r.value for r in trace.of('lost'))} records were lost")
    check(len(trace.of("started")) == 1 and len(trace.of("stopped")) == 1, "begin and end")
    check(trace.name(DEVICE, 1) == "rocemu1" and trace.names[ADDRESS, 0], "names")


def loss(folder):
    """Packets that a link loses are sent again, and the trace says which, and why."""
    trace, _ = traced(folder, "ibv_rc_pingpong -d rocemu0 -g 1 -s 65536 -n 300",
                      "ibv_rc_pingpong -d rocemu1 -g 1 -s 65536 -n 300 localhost", "--impair", "all:loss=1%,seed=3")
    check_whole(trace)
    check_requests(trace, "ibv_rc_pingpong")
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
        run("trace", "start", f"{folder}/second.trace", code=1)
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


def limit(folder):
    """A file with a bound has one, and says that it is cut."""
    path = f"{folder}/x.trace"
    run("run", "--trace", path, "--trace-limit-mb", "1", "--server", "ib_write_bw -d rocemu0 -s 64 -n 20000", "--",
        *"ib_write_bw -d rocemu1 -s 64 -n 20000 localhost".split())
    check(os.path.getsize(path) <= 1_000_064, f"{os.path.getsize(path)} bytes")
    check(Trace(path).of("stopped")[0].cause == 44, "it does not say that it is full")


CASES = {"loss": loss, "write": write, "start-stop": start_stop, "on-error": on_error, "limit": limit}


def in_folder(name):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        CASES[name](folder)
    return 0


sys.exit(print("\n".join(CASES)) if sys.argv[1:] == ["--list"] else run_cases(sys.argv[1:], CASES, in_folder))
