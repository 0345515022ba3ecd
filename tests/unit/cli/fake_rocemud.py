#!/usr/bin/env python3
"""Stands in for rocemud in processes_test.py: the same command line, socket and ready line, no NIC.

FAKE_ROCEMUD says how it misbehaves: refuse, crash, deaf, abi, diskfull; anything else is good behaviour.
"""

import array
import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import sys
import threading

HEADER = struct.Struct("<IIQiI")  # op, length, cookie, status, reserved
HELLO, STATUS, SHUTDOWN = 1, 64, 65
EPROTO = 71

mode = os.environ.get("FAKE_ROCEMUD", "")
arguments = sys.argv[1:]


def option(name, default=None):
    return arguments[arguments.index(name) + 1] if name in arguments else default


def finish(*_):
    try:
        os.unlink(socket_path)
    except FileNotFoundError:
        pass
    shutil.rmtree(os.path.join(state_dir, "sys"), ignore_errors=True)
    os._exit(0)


def reply(connection, op, cookie, body=b"", status=0, fds=()):
    message = HEADER.pack(op, HEADER.size + len(body), cookie, status, 0) + body
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    connection.sendmsg([message], control)


def serve(connection):
    while True:
        message = connection.recv(4096)
        if not message:
            return
        op, _, cookie, _, _ = HEADER.unpack_from(message)
        if op == HELLO:
            body = struct.pack("<IIII64s", 99 if mode == "abi" else 1, 64, 1, os.getpid(), b"9.9")
            reply(connection, op, cookie, body, EPROTO if mode == "abi" else 0)
        elif op == STATUS:
            status = {"version": "9.9", "devices": [{"name": n, "gids": [], "objects": {"qp": 0}}
                                                    for n in names]}
            fd = os.memfd_create("status")
            os.write(fd, json.dumps(status).encode())
            reply(connection, op, cookie, fds=[fd])
            os.close(fd)
        elif op == SHUTDOWN:
            reply(connection, op, cookie)
            finish()


state_dir = option("--dir")
socket_path = os.path.join(state_dir, "nic.sock")
names = [f"rocemu{i}" for i in range(int(option("--devices", "2")))]

print("fake: started with", *arguments, flush=True)
if mode == "diskfull":
    print("[2026-01-01] [error] capture file /x.pcap: No space left on device; recording has ended", flush=True)
if mode == "refuse":
    print("rocemud: the moon is in the wrong phase; wait for a better one", file=sys.stderr)
    sys.exit(2)

signal.signal(signal.SIGTERM, finish)
signal.signal(signal.SIGINT, finish)
if "--die-with-parent" in arguments:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
for name in names:
    os.makedirs(os.path.join(state_dir, "sys/class/infiniband", name))
if mode != "deaf":
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(socket_path)
    listener.listen()
os.write(int(option("--ready-fd")), b"ready\n")
os.close(int(option("--ready-fd")))

if mode == "crash":
    threading.Event().wait(0.3)
    print("fake: about to crash", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    if mode == "deaf":
        signal.pause()
    serve(listener.accept()[0])
