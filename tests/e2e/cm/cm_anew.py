#!/usr/bin/python3 -B
"""cm_anew.py: a program that goes on when its connection to the NIC does not. The NIC is killed and started once more, and
the program opens a channel of the connection manager there; it closes all descriptors that it does not know, and has other
files at their numbers. ROCEMU names the rocemu command to use."""
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys

ROCEMU = os.environ.get("ROCEMU", "rocemu")
LIMIT_S = 60


def channel_opens(rdmacm):
    channel = rdmacm.rdma_create_event_channel()
    if channel:
        rdmacm.rdma_destroy_event_channel(ctypes.c_void_p(channel))
    return bool(channel)


def library():
    rdmacm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
    rdmacm.rdma_create_event_channel.restype = ctypes.c_void_p
    return rdmacm


def open_again():
    """In the program: once before the NIC goes, once after it is back."""
    rdmacm = library()
    for _ in range(2):
        print("opened" if channel_opens(rdmacm) else f"errno {ctypes.get_errno()}", flush=True)
        sys.stdin.readline()


def close_all():
    """In the program: what it does not know is closed, and sockets of its own are where that was."""
    rdmacm = library()
    assert channel_opens(rdmacm), "no channel"
    os.closerange(3, 64)
    pairs = [socket.socketpair() for _ in range(8)]
    assert channel_opens(rdmacm), f"no channel when all was closed: {os.strerror(ctypes.get_errno())}"
    for end in [end for pair in pairs for end in pair]:
        os.fstat(end.fileno())
        end.setblocking(False)
        try:
            raise AssertionError(f"{end.recv(4096)} came to a socket of the program's")
        except BlockingIOError:
            pass
    print("opened")


def sockets():
    return sum(os.readlink(f"/proc/self/fd/{fd}").startswith("socket:") for fd in range(64) if os.path.exists(f"/proc/self/fd/{fd}"))


def fork():
    """In the program: a child has a connection of its own, and its parent's goes on."""
    rdmacm = library()
    kept = rdmacm.rdma_create_event_channel()
    assert kept, "no channel"
    before = sockets()
    child = os.fork()
    if child == 0:
        os._exit(2 if sockets() != before - 1 else 0 if channel_opens(rdmacm) else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, "a child has its parent's connection" if code == 2 else "no channel in a child"
    assert channel_opens(rdmacm), "no channel when a child had one"
    rdmacm.rdma_destroy_event_channel(ctypes.c_void_p(kept))
    print("opened")


def program(case):
    return [sys.executable, "-B", os.path.abspath(__file__), case]


def nic(*words):
    return subprocess.run([ROCEMU, *words], check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S).stdout


def check_anew():
    name = f"anew-{os.getpid()}"
    up = ("up", "--name", name)
    nic(*up)
    try:
        it = subprocess.Popen([ROCEMU, "exec", "--name", name, "--", *program("open_again")], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
        said = [it.stdout.readline()]
        daemon = int(re.search(r'"pid": *(\d+)', nic("status", "--name", name, "--json"))[1])
        os.kill(daemon, signal.SIGKILL)
        subprocess.run([ROCEMU, "down", "--name", name], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       timeout=LIMIT_S, check=False)
        nic(*up)
        it.stdin.write("\n")
        it.stdin.flush()
        said.append(it.stdout.readline())
        it.communicate("\n", timeout=LIMIT_S)
        assert said == ["opened\n"] * 2, f"before the NIC was started anew, and after: {said}"
    finally:
        subprocess.run([ROCEMU, "down", "--name", name], stdout=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
    print("PASS a NIC that is started anew")


def main():
    if len(sys.argv) > 1:
        return {"open_again": open_again, "close_all": close_all, "fork": fork}[sys.argv[1]]()
    assert nic("run", "--", *program("close_all")) == "opened\n"
    print("PASS all that it does not know is closed")
    assert nic("run", "--", *program("fork")) == "opened\n"
    print("PASS a fork")
    check_anew()
    return 0


if __name__ == "__main__":
    sys.exit(main())
