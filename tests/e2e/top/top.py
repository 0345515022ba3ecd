#!/usr/bin/python3 -B
"""rocemu top over a NIC on which ib_write_bw runs: in a terminal of tmux, by its keys, and --once against rocemu status.

    top.py [CASE...]      once, screen, reasons, ends; all without a name

ROCEMU names the rocemu command to use. Exit code 77: tmux or perftest is missing."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE + "/../tools")
from program_cases import ROCEMU, fail, run_cases, skip  # noqa: E402

NIC = f"top-{os.getpid()}"
PATIENCE_S = 60


def until(what, condition):
    """What condition() returns, once that is something."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    fail(f"{what}: not within {PATIENCE_S} s; the last was:\n{found}")


def rocemu(*arguments, code=0):
    done = subprocess.run([ROCEMU, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode != code:
        fail(f"rocemu {' '.join(arguments)}: exit code {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


@contextlib.contextmanager
def nic():
    rocemu("up", "--name", NIC)
    try:
        yield
    finally:
        subprocess.run([ROCEMU, "down", "--name", NIC], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def status_qps():
    status = json.loads(rocemu("status", "--name", NIC, "--json"))
    return {(device["name"], qp["qpn"]): qp for device in status["devices"] for qp in device["qps"]}


@contextlib.contextmanager
def bandwidth():
    """A server and a client of ib_write_bw, which run until they are ended: their processes."""
    words = [ROCEMU, "exec", "--name", NIC, "--", "ib_write_bw", "-F", "-s", "4096", "-D", "600", "-p", "18555", "-d"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([*words, "rocemu0"], **quiet)
    try:
        def start_client():
            client = subprocess.Popen([*words, "rocemu1", "localhost"], **quiet)
            moving = until_moving(client)
            return client if moving else None
        client = until("a client that reaches its server", start_client)
        try:
            yield client
        finally:
            client.send_signal(signal.SIGCONT)
            client.kill()
            client.wait()
    finally:
        server.kill()
        server.wait()


def until_moving(client):
    """False when it ended, as it does when the server does not listen yet."""
    def moving():
        if client.poll() is not None:
            return "ended"
        return "moving" if any(qp["counters"].get("tx_payload_bytes", 0) > 1 << 20 for qp in status_qps().values()) else ""
    return until("data", moving) == "moving"


class Terminal:
    """A shell in tmux, 80 columns and 24 rows."""

    def __enter__(self):
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "env", "-u", "ENV", "PS1=ready> ", "sh")
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-L", NIC, "kill-server"], stderr=subprocess.DEVNULL)

    @staticmethod
    def tmux(*words):
        return subprocess.run(["tmux", "-L", NIC, *words], check=True, capture_output=True, text=True).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def see(self, pattern, meanwhile=lambda: None):
        """The screen, once it has the pattern; meanwhile() is called before each look."""
        shown = ""

        def seen():
            nonlocal shown
            meanwhile()
            shown = self.screen()
            return re.search(pattern, shown, re.M)
        try:
            until(f"/{pattern}/ on the screen", seen)
        except SystemExit as why:
            fail(f"{why}\n{shown}")
        return shown

    def top(self, *options):
        self.type(f"clear; '{ROCEMU}' top --name {NIC} --interval 0.3 {' '.join(options)}; echo over=$?; stty -a | tr ' ' '\\n' | "
                  "grep -c '^echo$'")
        self.keys("Enter")
        return self.see(r"^QPs: \d+")

    def see_end(self, code):
        """top has ended with that exit code and left the terminal as it was, echoing."""
        shown = self.see(rf"^over={code}\n1$")
        if "F10 Quit" in shown:
            fail(f"the shell's screen is not back:\n{shown}")
        return shown


def once():
    with nic(), bandwidth():
        report = json.loads(rocemu("top", "--name", NIC, "--once", "--json", "--interval", "0.5"))
        known = status_qps()
        if {(qp["device"], qp["qpn"]) for qp in report["qps"]} != set(known):
            fail(f"top has other QPs than status: {report['qps']}, {known}")
        for qp in report["qps"]:
            same = known[(qp["device"], qp["qpn"])]
            for field in ("service", "state", "remote_qpn", "program"):
                if qp[field] != same[field]:
                    fail(f"{field} is {qp[field]} here and {same[field]} in status")
            if qp["program_name"] != "ib_write_bw":
                fail(f"the program is called {qp['program_name']}")
        sender, receiver = (sorted(report["qps"], key=lambda qp: -qp[rate])[0] for rate in ("tx_bits_per_s", "rx_bits_per_s"))
        if sender["device"] != "rocemu1" or receiver["device"] != "rocemu0":
            fail(f"{sender['device']} sends, {receiver['device']} receives")
        # What it sends is so many messages of 4096 bytes, but for those under way at the two ends of the interval.
        off = abs(sender["messages_per_s"] * 4096 * 8 - sender["tx_bits_per_s"])
        if off > 0.2 * sender["tx_bits_per_s"]:
            fail(f"{sender['messages_per_s']} messages/s of 4096 bytes, {sender['tx_bits_per_s']} bit/s")
        if report["interval_s"] < 0.5:
            fail(f"an interval of {report['interval_s']} s")
        text = rocemu("top", "--name", NIC, "--once", "--interval", "0.5", "--sort", "tx", "--filter", "rocemu1")
        if not re.search(rf"^rocemu1 +{sender['qpn']} ib_write_bw +\d+ +RC", text, re.M) or re.search(r"^rocemu0 +\d+ ib_", text, re.M):
            fail(f"the text is:\n{text}")
    rocemu("top", "--json", code=2)
    rocemu("top", "--once", "--sort", "beauty", code=2)


def screen():
    with nic(), bandwidth(), Terminal() as terminal:
        terminal.top()
        shown = terminal.see(r"^>rocemu1 +\d+ +ib_write_bw .*[kMG] ")  # sorted: who sends is first
        if not re.search(r"^ rocemu0 +\d+ +ib_write_bw", shown, re.M):
            fail(f"the receiver is not there:\n{shown}")
        terminal.keys("F4")
        terminal.type("rocemu0")
        terminal.see(r"^QPs: 1 of 2, by tx, filter 'rocemu0'")
        terminal.keys("Enter", "Escape")
        terminal.see(r"^QPs: 2, by tx$")
        terminal.keys("F6")
        terminal.see(r"^Sort by")
        terminal.keys("Home", "Enter")
        terminal.see(r"^QPs: 2, by device")
        terminal.keys("Home", "Enter")
        terminal.see(r"^QP \d+ of rocemu0: RC, RT[RS], peer QP \d+")
        terminal.see(r"rx_payload_bytes \d+")
        terminal.keys("Escape", "Tab")
        terminal.see(r"^Programs: 2, by tx")
        terminal.keys("h")
        terminal.see(r"what happens in a NIC that is up")
        terminal.keys("q", "q")
        terminal.see_end(0)


def reasons():
    """What a QP waits for when its program is stopped, and when nothing arrives."""
    with nic(), bandwidth() as client, Terminal() as terminal:
        terminal.top("--filter", "rocemu1")
        children = subprocess.run(["pgrep", "-P", str(client.pid)], capture_output=True, text=True).stdout.split()
        processes = [int(pid) for pid in children] or [client.pid]
        looks = 0

        def stop():
            # A program that is stopped after a hundred requests' completion and before the next hundred's has
            # nothing to poll: it goes on and is stopped anew, until it is stopped with one. The screen is of a
            # second ago at most, so each stop has time for twenty looks.
            nonlocal looks
            if looks % 20 == 0:
                for number in (signal.SIGCONT, signal.SIGSTOP):
                    for pid in processes:
                        os.kill(pid, number)
            looks += 1
        terminal.see(r"^.rocemu1 .* nobody polls$", meanwhile=stop)
        terminal.keys("Enter")
        terminal.see(r"the program does not poll it")
        for pid in processes:
            os.kill(pid, signal.SIGCONT)
        terminal.keys("Escape")
        rocemu("link", "set", "--name", NIC, "all", "loss=100%")
        terminal.see(r"^.rocemu1 .* sent again$")
        terminal.keys("q")
        terminal.see_end(0)


def ends():
    said = rocemu("top", "--name", NIC, code=3)
    if "is up" not in said:
        fail(f"without a NIC it says: {said}")
    with nic(), Terminal() as terminal:
        said = rocemu("top", "--name", NIC, code=2)
        if "--once" not in said:
            fail(f"without a terminal it says: {said}")
        terminal.top()
        terminal.keys("C-c")
        terminal.see_end(130)
        terminal.top()
        rocemu("down", "--name", NIC)
        if "has ended" not in terminal.see_end(3):
            fail("it does not say that the NIC has ended")


PAUSES = """[topology]
kind = "star"
hosts = 2
[pfc]
priorities = [0]
xoff = "20kb"
xon = "10kb"
headroom = "20kb"
"""


def paused():
    """The device whose path a network's switch pauses is said to stand, and the other one is not."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as network:
        network.write(PAUSES)
        network.flush()
        said = rocemu("run", "--network", network.name, "--", "sh", "-c",
                      f"{ROCEMU} fault rocemu0 pause >&2 && sleep 0.2 && {ROCEMU} top --once --json --interval 1")
    shares = {device["name"]: device["paused_share"] for device in json.loads(said[said.index("{"):said.rindex("}") + 1])["devices"]}
    if shares["rocemu0"] < 0.9 or shares["rocemu1"] != 0:
        fail(f"paused are {shares}")


CASES = {"once": once, "screen": screen, "reasons": reasons, "ends": ends, "paused": paused}


def run(name):
    CASES[name]()
    print(f"PASS {name}", flush=True)
    return 0


if __name__ == "__main__":
    for program, package in {"tmux": "tmux", "ib_write_bw": "perftest"}.items():
        if shutil.which(program) is None:
            skip(f"{program} is missing; install {package}")
    sys.exit(run_cases(sys.argv[1:] or list(CASES), CASES, run))
