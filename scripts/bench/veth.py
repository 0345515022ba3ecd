"""Two hosts on this machine, joined by a veth and nothing else: network namespaces with an address each, in which
programs and NICs are started. Root, or an ordinary user who may make user namespaces."""
import os
import subprocess
import time
from pathlib import Path

import lab

INTERFACE = "veth0"
MTU = 4300  # the largest path MTU, 4096, and the headers
ADDRESSES = ["10.88.0.1", "10.88.0.2"]


class Hosts:
    """Use as a context: leaving it ends the namespaces, and with them the veth."""

    def __init__(self):
        self._holders = []
        self._user = os.getuid() != 0

    def _hold(self, *prefix):
        holder = subprocess.Popen([*prefix, "sleep", "infinity"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._holders.append(holder)
        deadline = time.monotonic() + 10
        while Path(f"/proc/{holder.pid}/comm").read_text(encoding="ascii").strip() != "sleep":
            if holder.poll() is not None or time.monotonic() > deadline:
                raise lab.MeasurementFailed("no network namespace can be made here")
            time.sleep(0.01)

    def __enter__(self):
        try:
            killed_with_us = ["setpriv", "--pdeathsig", "KILL", "--"]
            user = ["--user", "--map-root-user"] if self._user else []
            self._hold(*killed_with_us, "unshare", *user, "--net")
            self._hold(*killed_with_us, *self.inside(0), "unshare", "--net")
            lab.output_of([*self.inside(0), "ip", "link", "add", INTERFACE, "mtu", MTU, "type", "veth", "peer", "name",
                           INTERFACE, "mtu", MTU, "netns", self._holders[1].pid])
            for host, address in enumerate(ADDRESSES):
                for words in (["link", "set", "lo", "up"], ["address", "add", f"{address}/24", "dev", INTERFACE],
                              ["link", "set", INTERFACE, "up"]):
                    lab.output_of([*self.inside(host), "ip", *words])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for holder in self._holders:
            holder.kill()
            holder.wait()

    def inside(self, host):
        """The command that runs another in a host's network."""
        user = ["--user", "--preserve-credentials"] if self._user else []
        return ["nsenter", "--target", str(self._holders[host].pid), "--net", *user, "--"]

    def mac(self, host):
        text = lab.output_of([*self.inside(host), "ip", "-brief", "link", "show", "dev", INTERFACE])
        return text.split()[2]

    def pair(self, server, client, port, ready=None):
        """Runs a server on the first host and a client on the second. What the client, or with `ready` (a line of
        the server's) the server printed."""
        end = lab.End("server", [str(part) for part in [*self.inside(0), *server]])
        try:
            deadline = time.monotonic() + 20
            while not (ready in end.output() if ready else self._listens(port)):
                if time.monotonic() > deadline or end.code() is not None:
                    raise lab.MeasurementFailed(f"the server is not ready: {end.report()}")
                time.sleep(0.02)
            printed = lab.output_of([*self.inside(1), *client])
            if ready is None:
                return printed
            if end.wait(lab.LIMIT_SECONDS) != 0:
                raise lab.MeasurementFailed(end.report())
            return end.output()
        finally:
            end.kill()

    def _listens(self, port):
        table = lab.output_of([*self.inside(0), "cat", "/proc/net/tcp", "/proc/net/tcp6"])
        return any(row.split()[3] == "0A" and row.split()[1].endswith(f":{port:04X}")
                   for row in table.splitlines() if ":" in row.split()[0] and row.split()[0][:-1].isdigit())


class Nics:
    """A NIC on each host, by the interface or by UDP sockets. Use as a context."""

    def __init__(self, build, hosts, kind):
        self.build, self.hosts, self.kind = build, hosts, kind
        self.names = [f"bench-{kind}-{os.getpid()}-{host}" for host in range(2)]

    def __enter__(self):
        for host, name in enumerate(self.names):
            port = INTERFACE if self.kind == "interface" else f"udp:{ADDRESSES[host]}"
            lab.output_of([*self.hosts.inside(host), self.build.rocemu, "up", "--name", name, "--port", f"rocemu0={port}"])
        return self

    def __exit__(self, *_):
        for host, name in enumerate(self.names):
            subprocess.run([*self.hosts.inside(host), str(self.build.rocemu), "down", "--name", name],
                           stdout=subprocess.DEVNULL, check=False)

    def over(self, host, command):
        return [self.build.rocemu, "exec", "--name", self.names[host], "--", *command]

    def perftest(self, program, arguments):
        """The last line of the table, as numbers."""
        port = lab.choose_port()
        command = [program, "-F", "-p", port, *arguments]
        text = self.hosts.pair(self.over(0, command), self.over(1, [*command, ADDRESSES[0]]), port)
        rows = [line.split() for line in text.splitlines() if line.split() and line.split()[0].isdigit()]
        if not rows:
            raise lab.MeasurementFailed(f"{program} printed no table:\n{text}")
        return [float(cell) for cell in rows[-1]]
