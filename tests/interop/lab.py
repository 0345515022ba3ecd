"""A row, run between the two ends of a link, with what both may count meanwhile; and the report of all rows."""
import re
import subprocess
import time

from guest import GuestFailed
from rows import LARGE_MTU, ROWS, SHORT_SCENARIOS, SHORT_VLAN_ROWS, SMALL_MTU
from sides import gid_index

LOSS = "loss=1%"
SCENARIO_SECONDS = 120
READY_SECONDS = 30
SCENARIO_PORT = 7471
# Why a row is run again, what it says then, and how often that may be. perftest's server with -R listens twice, and in
# between refuses who comes; its client then uses what it has freed, and dies. rping's server ends with its connection:
# when the DREQ of a client on Linux is lost, it waits for ever, since Linux repeats none whose id is destroyed meanwhile
# (cm_destroy_id), which rping does at once. rocemu does, so that this cannot be with rxe as the server.
AGAIN = {r"retry counter exceeded|[Ss]tatus 12": ("retries exceeded at first", 1),
         r"RDMA_CM_EVENT_REJECTED; error: 8": ("refused at first", 9)}
AGAIN_WITH_LOSS = {r"^the server did not end\n---- .*rocemu.*\brping -s -a ": ("the client's DREQ was lost at first", 1)}
# By scenario and responder: where IBTA (vol 1, 9.9.6.1 and table 58) wants something else than rxe does.
DIFFERENT = {
    ("send-too-long", "rocemu"): [
        "responder: local length error; state 6; untouched",
        "requester: remote invalid request error; Work Request Flushed Error; state 6; untouched"],
}


class Difference(Exception):
    """What is not as it must be."""


class Lab:
    """Both sides, `first` being the one that rows begin with as the server."""

    def __init__(self, first, second, options, may_lose=False):
        """`may_lose`: the link between them does, whatever the row."""
        self.first, self.second, self.options, self.may_lose = first, second, options, may_lose
        self.mtu = None
        self.gids = {}

    def sides(self):
        return (self.first, self.second)

    def other(self, side):
        return self.second if side is self.first else self.first

    def use_mtu(self, mtu):
        if self.mtu == mtu:
            return
        for side in self.sides():
            side.set_mtu(mtu)
        self.mtu = mtu
        # A small MTU took the IPv6 addresses of neither; the GIDs may have other indices all the same.
        self.gids = {(side.name, ip): self.wait_for_gid(side, ip) for side in self.sides() for ip in (4, 6)}

    def wait_for_gid(self, side, ip):
        deadline = time.monotonic() + 20
        while True:
            index = gid_index(side.devinfo(), side.addresses[ip])
            if index is not None:
                return index
            if time.monotonic() > deadline:
                raise GuestFailed(f"{side.name} has no GID for {side.addresses[ip]}:\n{side.devinfo()}")
            time.sleep(0.2)

    def command(self, row, text, side, server):
        return text.format(device=side.device, gid=self.gids[side.name, row.ip], own=side.addresses[row.ip],
                           peer=server.addresses[row.ip], host=server.host)

    def pair(self, row, server_side):
        """Runs a row once. Raises Difference, with what both ends printed."""
        client_side = self.other(server_side)
        server = server_side.start(self.command(row, row.server, server_side, server_side))
        client = None
        try:
            deadline = time.monotonic() + READY_SECONDS
            while not server_side.ready(row):
                if server.code() is not None or time.monotonic() > deadline:
                    raise Difference("the server did not become ready")
                time.sleep(0.05)
            client = client_side.start(self.command(row, row.client, client_side, server_side))
            code = client.wait(row.seconds)
            if code != 0:
                raise Difference("the client did not end" if code is None else f"the client ended with {code}")
            if not row.stays and (code := server.wait(15)) != 0:
                raise Difference("the server did not end" if code is None else f"the server ended with {code}")
            for end in (server, client):
                if wrong := re.search(r"invalid data|mismatch|[Cc]ompletion with error|verify error", end.output()):
                    raise Difference(f"printed '{wrong[0]}'")
        except Difference as why:
            for end in (server, client):
                if end is not None:
                    end.stop()
            raise Difference("\n".join([str(why)] + [f"---- {end.command} (exit code {end.code()})\n{end.output()}"
                                                     for end in (server, client) if end])) from why
        finally:
            for end in (server, client):
                if end is not None:
                    end.stop()

    def scenario(self, name, requester_side, responder_side):
        """What the two ends of a scenario saw: two lines."""
        words = "{program} {name} {device} {gid} {port}"

        def start(side, *host):
            return side.start(" ".join([words.format(program=side.scenario, name=name, device=side.device,
                                                     gid=self.gids[side.name, 4], port=SCENARIO_PORT), *host]))

        ends = [start(responder_side)]
        try:
            ends.append(start(requester_side, responder_side.host))
            for end in ends:
                if end.wait(SCENARIO_SECONDS) != 0:
                    raise Difference("\n".join(f"{each.command} (exit code {each.code()}): {each.output()}"
                                               for each in ends))
            # Of the async events, which stand behind it, rxe sends none when a request may not access memory.
            return [end.output().splitlines()[0] for end in ends]
        finally:
            for end in ends:
                end.stop()


def grown(before, after, names):
    """A counter that is not there is an error: it could not be held against anything."""
    return {name: after[name] - before[name] for name in names if after[name] != before[name]}


class Report:
    def __init__(self, verbose):
        self.verbose = verbose
        self.lines = []
        self.failed = 0

    def add(self, port, title, direction, result, remark, seconds):
        self.lines.append((port, title, direction, result, remark))
        self.failed += result == "FAIL"
        print(f"{result} {port} {title}, {direction}{': ' if remark else ''}{remark} ({seconds:.1f} s)", flush=True)

    def table(self):
        rows = {}
        for port, title, direction, result, remark in self.lines:
            rows.setdefault((port, title), []).append((direction, result, remark))
        yield "| port | program | seen |"
        yield "|---|---|---|"
        for (port, title), results in rows.items():
            seen = "; ".join(f"{direction}: {result}{f' ({remark})' if remark and result == 'ok' else ''}"
                             for direction, result, remark in results)
            if all(result == "ok" and not remark for _, result, remark in results):
                seen = "ok"
            yield f"| {port} | {title} | {seen} |"


def counted(lab, work, may_lose):
    """Does `work` between two looks at the counters. A remark on what was sent twice."""
    before = [side.counters() for side in lab.sides()]
    work()
    after = [side.counters() for side in lab.sides()]

    def seen(names_of):
        return {f"{side.name} {name}": value for side, old, new in zip(lab.sides(), before, after)
                for name, value in grown(old, new, names_of(side)).items()}

    wrong = seen(lambda side: side.NEVER)
    lost = seen(lambda side: side.LOST)
    if not may_lose:
        wrong.update(lost)
    if wrong:
        raise Difference(f"counted {wrong}: {[side.complaints() for side in lab.sides()]}")
    again = {**lost, **seen(lambda side: side.AGAIN)}
    if not again:
        return ""
    return ("lost and sent again: " if may_lose else "late: ") + ", ".join(f"{name} {n}" for name, n in again.items())


def attempt_pair(lab, row, server):
    """Programs whose ACK timeout is 67 ms give up when the emulated machine stands still for half a second: such a row
    is run once more, and says so. So is one whose client came too early."""
    remarks = []
    while True:
        try:
            remark = counted(lab, lambda: lab.pair(row, server), row.loss or lab.may_lose)
            return "; ".join([*dict.fromkeys(remarks), *([remark] if remark else [])])
        except Difference as why:
            causes = {**AGAIN, **(AGAIN_WITH_LOSS if row.loss else {})}
            remark, most = next((again for pattern, again in causes.items() if re.search(pattern, str(why))), ("", 0))
            if remarks.count(remark) >= most:
                raise
            remarks.append(remark)


def run_pairs(lab, kind, options, report):
    """Rows that the options choose, each with either side as the server. Loss is set at the second side."""
    def is_short(row):
        return row.short and (kind != "vlan" or SHORT_VLAN_ROWS.search(row.title()))

    chosen = [row for row in ROWS if re.search(options.only, row.title()) and (is_short(row) or not options.short)
              and lab.second.can_run(row) and lab.first.can_run(row)]
    for mtu in (LARGE_MTU, SMALL_MTU):
        for row in chosen:
            if row.mtu != mtu:
                continue
            lab.use_mtu(mtu)
            lab.second.set_loss(LOSS if row.loss else "none")
            for server in lab.sides():
                started = time.monotonic()
                try:
                    remark = attempt_pair(lab, row, server)
                    result = "ok"
                except (Difference, GuestFailed, OSError) as why:
                    result, remark = "FAIL", str(why)
                report.add(kind, row.title(), f"server {server.name}", result, remark, time.monotonic() - started)
    if chosen:
        lab.second.set_loss("none")


def run_scenarios(lab, kind, options, report, expected):
    """Of rxe, which is the first side, and the NIC. What two rxe saw goes to `expected`, by the scenario's name."""
    names = subprocess.run([options.scenario, "--list"], check=True, capture_output=True, text=True).stdout.split()
    for name in names:
        title = f"scenario {name}"
        if not re.search(options.only, title) or (options.short and name not in SHORT_SCENARIOS):
            continue
        lab.use_mtu(LARGE_MTU)
        for requester in (lab.second, lab.first):
            responder = lab.other(requester)
            started = time.monotonic()
            try:
                if name not in expected:
                    expected[name] = lab.scenario(name, lab.first, lab.first)
                seen = []
                counted(lab, lambda n=name, q=requester, r=responder: seen.extend(lab.scenario(n, q, r)), True)
                if seen != DIFFERENT.get((name, responder.name), expected[name]):
                    raise Difference("\n".join(["", *(f"  two rxe: {line}" for line in expected[name]),
                                                *(f"  here:    {line}" for line in seen)]))
                result, remark = "ok", " | ".join(seen) if options.verbose else ""
            except (Difference, GuestFailed, OSError) as why:
                result, remark = "FAIL", str(why)
            report.add(kind, title, f"requester {requester.name}", result, remark, time.monotonic() - started)
