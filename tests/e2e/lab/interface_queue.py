#!/usr/bin/python3 -B
"""The queue of the sender's interface, which the kernel has when the network is slower than the machine: a full one is
waited for, and one that takes nothing does not stop the NIC.

    interface_queue.py [--user]     --user: as an ordinary user without any capability (started by root)

Two hosts of rocemu lab; the queue is a token bucket (tc-tbf(8)) on h2. ROCEMU names the rocemu command to use. Exit code
77: it cannot be run here."""
import subprocess
import sys

sys.path.append(sys.path[0] + "/../tools")
from lab_hosts import Failed, Lab, need, words_as_user
from program_cases import skip

MOST_LOST_SHARE = 0.05  # of the frames; that few are sent again shows that the NIC has waited


def set_queue(lab, burst):
    lab.on("h2", "env", "-u", "LD_PRELOAD", "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", "1gbit",
           "burst", burst, "limit", "70kb")


def full(lab):
    """A queue that is shorter than a window is full all the time."""
    set_queue(lab, "200kb")
    lab.pair("ib_write_bw", "-F", "-s", "65536", "-q", "4", "-D", "4", "-u", "18")
    counters, port = (lab.device("h2")[what] for what in ("counters", "port"))
    print(f"     {counters['tx_frames']} frames, {counters['retransmitted_frames']} of them again, "
          f"{port['dropped_refused_by_kernel']} refused")
    if counters["retransmitted_frames"] > MOST_LOST_SHARE * counters["tx_frames"]:
        raise Failed("too many frames were sent again")


def refusing(lab):
    """A queue that no frame fits into: requests fail, what is refused is counted once, and the NIC goes on."""
    set_queue(lab, "2kb")
    before = lab.device("h2")["port"]
    words = ("ib_write_bw", "-F", "-s", "65536", "-n", "100", "-u", "10")
    server = lab.server(*words)
    client = lab.start("h2", *words, "h1")
    try:
        if client.end() == 0:
            raise Failed("the client did not notice")
    finally:
        server.kill()
        client.kill()
    after = lab.device("h2")["port"]
    sent, refused = (after[name] - before[name] for name in ("tx_frames", "dropped_refused_by_kernel"))
    print(f"     {refused} frames refused, {sent} sent")
    if sent > 20 or refused == 0:
        raise Failed("frames that were refused count as sent")
    lab.on("h2", "env", "-u", "LD_PRELOAD", "tc", "qdisc", "del", "dev", "eth0", "root")
    lab.pair("ib_write_bw", "-F", "-n", "200")


def main():
    words_as_user(__file__)
    need(ip="iproute2", tc="iproute2", ib_write_bw="perftest")
    with Lab("queue") as lab:
        try:
            set_queue(lab, "200kb")
        except Failed as why:
            skip(f"this kernel has no token bucket (sch_tbf): {why}")
        for case in (full, refusing):
            case(lab)
            print(f"PASS {case.__name__}: {case.__doc__}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (Failed, subprocess.SubprocessError) as why:
        sys.exit(f"FAIL {why}")
