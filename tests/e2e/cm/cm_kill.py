#!/usr/bin/python3 -B
"""cm_kill.py PROGRAM, in rocemu run: one side of a connection is killed with SIGKILL in each state of it. The other side
must hear of it within seconds, and the NIC must not keep anything. PROGRAM is cm_connects."""
import json
import os
import subprocess
import sys
import time

ROCEMU = os.environ.get("ROCEMU", "rocemu")
SECONDS = 5

# What runs at the server, what at the client, who is killed, and what the other one must say then.
ROWS = [
    ("serve", "hold resolved", "client", None),
    ("serve never", "hold connecting", "client", None),
    ("serve", "hold answered", "client", "RDMA_CM_EVENT_REJECTED"),
    ("serve", "hold connected", "client", "RDMA_CM_EVENT_DISCONNECTED"),
    ("serve", "hold disconnecting", "client", "RDMA_CM_EVENT_DISCONNECTED"),
    ("serve never", "watch", "server", "RDMA_CM_EVENT_REJECTED"),
    ("serve", "watch", "server", "RDMA_CM_EVENT_DISCONNECTED"),
]


class Side:
    def __init__(self, program, words):
        self.process = subprocess.Popen([program, *words.split()], stdout=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.said = ""

    def says(self, text, seconds=SECONDS):
        end = time.monotonic() + seconds
        while text not in self.said:
            self.said += (self.process.stdout.read() or b"").decode()
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def kill(self):
        self.process.kill()
        self.process.wait()


def left_over():
    status = json.loads(subprocess.run([ROCEMU, "status", "--json"], check=True, capture_output=True).stdout)
    cm = status["connection_management"]
    return {key: cm[key] for key in ("ids", "channels", "listeners", "connections") if cm[key]}


def run_row(program, server_words, client_words, victim, said):
    name = f"{server_words} / {client_words}: the {victim} is killed"
    server = Side(program, server_words)
    client = None
    try:
        if not server.says("ready"):
            return f"FAIL {name}: no server"
        client = Side(program, client_words)
        if client_words == "watch":
            ready = server.says("ready\nready") if "never" in server_words else client.says("CONNECT_RESPONSE")
        else:
            ready = client.says("ready")
        if not ready:
            return f"FAIL {name}: does not come so far; {server.said} {client.said}"
        time.sleep(0.1)
        killed, other = (client, server) if victim == "client" else (server, client)
        killed.kill()
        if said is not None and not other.says(said):
            return f"FAIL {name}: the other one says: {other.said}"
    finally:
        server.kill()
        if client is not None:
            client.kill()
    end = time.monotonic() + SECONDS
    while left_over():
        if time.monotonic() > end:
            return f"FAIL {name}: there is left {left_over()}"
        time.sleep(0.05)
    return f"PASS {name}"


def main():
    results = [run_row(sys.argv[1], *row) for row in ROWS]
    print("\n".join(results))
    return any(not result.startswith("PASS") for result in results)


sys.exit(main())
