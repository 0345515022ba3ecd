#!/usr/bin/python3 -B
"""packaging/kubernetes/device_plugin.py before a kubelet that is played here: it registers, tells of the node's NIC that
comes and goes, answers what a container gets, by which programs find the NIC, and registers again with a new kubelet.

    device_plugin.py PLUGIN     ROCEMU names the rocemu command to use. Exit code 77: skipped.
"""
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent import futures

try:
    import grpc
except ImportError:
    print("SKIP: grpc is missing (Debian package python3-grpcio)")
    sys.exit(77)

PLUGIN = sys.argv[1]
ROCEMU = os.environ.get("ROCEMU", "rocemu")
SECONDS = 60


def fields(text):
    """The fields of a protobuf message, (number, content) each; content is bytes, or a number."""
    def varint(at):
        number = shift = 0
        while True:
            number |= (text[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if text[at - 1] < 128:
                return number, at
    found, at = [], 0
    while at < len(text):
        tag, at = varint(at)
        content, at = varint(at)
        if tag & 7 == 2:
            content, at = text[at:at + content], at + content
        found.append((tag >> 3, content))
    return found


def check(what, seen, expected):
    if seen != expected:
        sys.exit(f"FAIL {what}: {seen}, not {expected}")
    print(f"PASS {what}")


class Kubelet:
    """The kubelet's end: a socket on which plugins register."""

    def __init__(self, folder):
        self.registered = queue.Queue()
        self.server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1beta1.Registration", {
            "Register": grpc.unary_unary_rpc_method_handler(self.register)})])
        self.server.add_insecure_port(f"unix:{folder}/kubelet.sock")
        self.server.start()

    def register(self, request, _context):
        self.registered.put(fields(request))
        return b""


def health(answer):
    devices = [dict(fields(device)) for number, device in fields(answer) if number == 1]
    return len(devices), {device[2] for device in devices}


def main():
    folder = tempfile.mkdtemp()
    install = f"{folder}/opt"
    os.makedirs(f"{install}/lib")
    # What cmake --install makes, of the build's own files.
    os.symlink(os.path.realpath(f"{os.path.dirname(os.path.realpath(shutil.which(ROCEMU)))}/../lib"), f"{install}/lib/rocemu")
    nic = ["--name", "node"]
    environment = dict(os.environ, XDG_RUNTIME_DIR=folder)
    kubelet = Kubelet(folder)
    plugin = subprocess.Popen([sys.executable, "-B", PLUGIN], env=dict(
        os.environ, KUBELET_PLUGINS=folder, ROCEMU_STATE=f"{folder}/rocemu/node", ROCEMU_INSTALL=install, ROCEMU_SHARES="3"))
    try:
        registration = [(1, b"v1beta1"), (2, b"rocemu.sock"), (3, b"rocemu.io/nic")]
        check("registers", kubelet.registered.get(timeout=SECONDS), registration)
        with grpc.insecure_channel(f"unix:{folder}/rocemu.sock") as channel:
            devices = channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch")(b"", timeout=SECONDS)
            check("no NIC", health(next(devices)), (3, {b"Unhealthy"}))
            subprocess.run([ROCEMU, "up", *nic], env=environment, check=True)
            check("a NIC", health(next(devices)), (3, {b"Healthy"}))
            two_containers = b"\x0a\x08\x0a\x06share0\x0a\x10\x0a\x06share1\x0a\x06share2"
            answer = fields(channel.unary_unary("/v1beta1.DevicePlugin/Allocate")(two_containers, timeout=SECONDS))
            check("an answer for each container", [number for number, _ in answer], [1, 1])
            edits = fields(answer[1][1])
            check("mounts", [fields(mount) for number, mount in edits if number == 2],
                  [[(1, path), (2, path), (3, read_only)] for path, read_only in
                   ((f"{folder}/rocemu/node".encode(), 0), (install.encode(), 1))])
            given = dict([content.decode() for _, content in fields(pair)] for number, pair in edits if number == 1)
            seen = subprocess.run(["ibv_devices"], env={"PATH": os.environ["PATH"], **given}, check=True, text=True,
                                  capture_output=True).stdout
            check("a program with that environment", "rocemu0" in seen, True)
            subprocess.run([ROCEMU, "down", *nic], env=environment, check=True)
            check("the NIC is gone", health(next(devices)), (3, {b"Unhealthy"}))
            subprocess.run([ROCEMU, "up", *nic], env=environment, check=True)
            check("the NIC is back", health(next(devices)), (3, {b"Healthy"}))
            status = subprocess.run([ROCEMU, "status", "--json", *nic], env=environment, check=True, capture_output=True)
            os.kill(json.loads(status.stdout)["pid"], signal.SIGKILL)
            check("the NIC is killed", health(next(devices)), (3, {b"Unhealthy"}))
        kubelet.server.stop(0).wait()
        os.unlink(f"{folder}/rocemu.sock")  # as a kubelet does that starts
        check("registers with a new kubelet", Kubelet(folder).registered.get(timeout=SECONDS), registration)
    finally:
        plugin.kill()
        plugin.wait()
        subprocess.run([ROCEMU, "down", *nic], env=environment, check=False, capture_output=True)
        shutil.rmtree(folder)


main()
