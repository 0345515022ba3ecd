"""The two ends of the link: the host with the NIC, and the virtual machine with rxe. Both start programs, and tell
when one listens and what was counted."""
import ipaddress
import json
import os
import re
import shlex
import subprocess
import tempfile
import time

from guest import GuestFailed


# In the kernel's log.
COMPLAINTS = "rdma_rxe|rxe[01]|ICRC|WARNING|BUG"


class HostCommand:
    """A program of the host; the same to use as guest.Command."""

    def __init__(self, words):
        self.command = shlex.join(words)
        self._output = tempfile.TemporaryFile()
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self._output,
                                         stderr=subprocess.STDOUT, start_new_session=True)

    def output(self):
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def code(self):
        return self._process.poll()

    def wait(self, seconds):
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self):
        if self._process.poll() is None:
            self._process.terminate()
            if self.wait(5) is None:
                self._process.kill()
                self._process.wait()


def listens_in(table, port):
    return re.search(rf":{port:04X} [0-9A-F]+:0000 0A ", table) is not None


def gid_index(devinfo, address):
    """The index of the GID that stands for an IP address, of ibv_devinfo -v."""
    wanted = ipaddress.ip_address(address)
    for index, text in re.findall(r"GID\[ *(\d+)\]:\s+(\S+?),", devinfo):
        found = ipaddress.IPv6Address(text)
        if wanted in (found, found.ipv4_mapped):
            return int(index)
    return None


class Rxe:
    name, device, scenario = "rxe", "rxe0", "interop_scenario"
    # What may not be counted, whatever the row does; "complaints" are those in the kernel's log, of ICRCs too.
    NEVER = ["complaints"]
    # What tells of packets that were lost; only where loss was set.
    LOST = ["out_of_seq_request", "rcvd_seq_err"]
    # What tells of packets sent twice. An end that waited too long for its core does so without loss.
    AGAIN = ["duplicate_request", "completer_retry_err"]

    def __init__(self, guest, addresses, host=None):
        """`host` is where programs meet by TCP."""
        self.guest, self.addresses, self.host = guest, addresses, host or addresses[4]

    def start(self, command):
        return self.guest.start(f"exec {command}")

    def can_run(self, row):
        return True

    def devinfo(self):
        return self.guest.run(f"ibv_devinfo -v -d {self.device}")

    def ready(self, row):
        if row.listens == "tcp":
            return listens_in(self.guest.run("cat /proc/net/tcp /proc/net/tcp6"), row.tcp_port)
        if row.listens != "cm":  # what it joins first; it attaches its QP a moment later
            return row.listens in self.guest.run("ip maddress show dev eth0; sleep 1")
        # Not the one of a program before, which is on its way out.
        program = row.server.split()[0][:15]
        return re.search(rf"state LISTEN .*comm {program}\b", self.guest.run("rdma resource show cm_id")) is not None

    def set_mtu(self, mtu):
        self.guest.run(f"ip link set eth0 mtu {mtu}")

    def counters(self):
        text = self.guest.run(f"cd /sys/class/infiniband/{self.device}/ports/1/hw_counters && grep . * | grep -v lifespan; "
                              f"echo complaints:$(dmesg | grep -cE '{COMPLAINTS}')")
        return {name: int(value) for name, value in re.findall(r"(\w+):(\d+)", text)}

    def complaints(self):
        return self.guest.run(f"dmesg | grep -E '{COMPLAINTS}' | tail -n 5")


class Rocemu:
    """A NIC on the tap, by the interface or by UDP sockets. Use as a context."""

    name, device = "rocemu", "rocemu0"
    NEVER = ["rx_icrc_errors", "rx_malformed", "port_dropped_refused_by_kernel", "port_dropped_malformed"]
    LOST = ["out_of_sequence", "sequence_naks_received"]
    AGAIN = ["retransmitted_frames", "duplicate_requests"]

    def __init__(self, rocemu, kind, tap, addresses, host=None):
        self.rocemu, self.kind, self.tap, self.addresses = rocemu, kind, tap, addresses
        self.host = host or addresses[4]  # where programs meet by TCP
        self.scenario = os.environ.get("SCENARIO", "interop_scenario")
        self.nic = f"interop-{kind}"

    def __enter__(self):
        port = self.tap if self.kind == "interface" else "udp:" + "+".join(self.addresses.values())
        capture = ["--pcap", os.environ["INTEROP_PCAP"]] if "INTEROP_PCAP" in os.environ else []
        self._rocemu("up", "--name", self.nic, "--port", f"rocemu0={port}", *capture)
        return self

    def __exit__(self, *_):
        subprocess.run([self.rocemu, "down", "--name", self.nic], stdout=subprocess.DEVNULL, check=False)

    def _rocemu(self, *words):
        done = subprocess.run([self.rocemu, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode != 0:
            raise GuestFailed(f"rocemu {shlex.join(words)}: {done.stdout}")
        return done.stdout

    def start(self, command):
        return HostCommand([self.rocemu, "exec", "--name", self.nic, "--", *shlex.split(command)])

    def status(self):
        return json.loads(self._rocemu("status", "--name", self.nic, "--json"))

    def devinfo(self):
        return self._rocemu("exec", "--name", self.nic, "--", "ibv_devinfo", "-v", "-d", "rocemu0")

    def ready(self, row):
        if row.listens == "tcp":
            table = ""
            for path in ("/proc/net/tcp", "/proc/net/tcp6"):
                with open(path, encoding="ascii") as file:
                    table += file.read()
            return listens_in(table, row.tcp_port)
        if row.listens != "cm":
            done = subprocess.run(["ip", "maddress", "show", "dev", self.tap], stdout=subprocess.PIPE, text=True, check=True)
            return row.listens in done.stdout
        return bool(self.status()["connection_management"]["listeners"])

    def change_mtu(self, mtu):
        subprocess.run(["ip", "link", "set", self.tap, "mtu", str(mtu)], check=True)

    def set_mtu(self, mtu):
        self.change_mtu(mtu)
        deadline = time.monotonic() + 20
        while f"active_mtu:\t\t{4096 if mtu >= 4192 else 1024} " not in self.devinfo():
            if time.monotonic() > deadline:
                raise GuestFailed(f"the NIC did not follow the interface's MTU of {mtu}")
            time.sleep(0.1)

    def can_run(self, row):
        return row.udp or self.kind != "udp"

    def set_loss(self, spec):
        self._rocemu("link", "set", "--name", self.nic, "rocemu0", "both", spec)

    def counters(self):
        device = self.status()["devices"][0]
        return {**device["counters"], **{f"port_{name}": value for name, value in device["port"].items()}}

    def complaints(self):
        return ""
