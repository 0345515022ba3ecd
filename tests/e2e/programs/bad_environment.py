#!/usr/bin/python3 -B
"""bad_environment.py CONTROL_H: what can be wrong around a program rather than in it. An unknown device,
no NIC, a NIC that has died, another version of the ABI, messages that are not well formed: each gets
its error at once and in one line, and a NIC that is up goes on serving others.

CONTROL_H is verbs_shim/abi/control.h, for the numbers of the control protocol."""
import errno
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

SKIPPED = 77
ROCEMU = os.environ.get("ROCEMU", "rocemu")
PATIENCE_SECONDS = 20
HEADER = struct.Struct("<IIQiI")  # op, length, cookie, status, reserved
HELLO = struct.Struct("<IIIIQQ")  # magic, abi_version, device_index, reserved, probe address and value


class Bad(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Bad(text)


def run(*command, environment=None):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment, text=True, check=False, timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise Bad(f"{' '.join(command)} did not end within {PATIENCE_SECONDS} s") from late


def need_one_line(result, code, pattern):
    """That exit code, and one line on stderr that says what to do."""
    lines = result.stderr.splitlines()
    what = f"{' '.join(result.args)} ended with {result.returncode} and said {lines}"
    need(result.returncode == code, f"{what}: must end with {code}")
    need(len(lines) == 1 and re.search(pattern, lines[0]), f"{what}: must be one line like '{pattern}'")


class Nic:
    def __init__(self, name):
        self.name = name

    def rocemu(self, *arguments):
        command, *rest = arguments
        return run(ROCEMU, command, "--name", self.name, *rest)

    def __enter__(self):
        result = self.rocemu("up")
        need(result.returncode == 0, f"rocemu up: {result.stderr}")
        return self

    def __exit__(self, *_):
        self.rocemu("down")

    def environment(self):
        result = self.rocemu("exec", "--", "env", "-0")
        need(result.returncode == 0, f"rocemu exec: {result.stderr}")
        return dict(entry.split("=", 1) for entry in result.stdout.split("\0") if "=" in entry)

    def socket_path(self):
        return os.path.join(self.environment()["ROCEMU_DIR"], "nic.sock")

    def need_alive(self):
        result = self.rocemu("exec", "--", "ibv_devinfo", "-d", "rocemu0")
        need(result.returncode == 0 and "PORT_ACTIVE" in result.stdout,
             f"the NIC does not serve other programs any more: {result.stderr}{result.stdout}")

    def pid(self):
        result = self.rocemu("status", "--json")
        return int(re.search(r'"pid"\s*:\s*(\d+)', result.stdout).group(1))


def constants(path):
    with open(path, encoding="utf-8") as header:
        return {name: int(value, 0) for name, value in
                re.findall(r"\b(ROCEMU_\w+) = (0x[0-9a-fA-F]+|\d+)", header.read())}


# ---- rows ----

def unknown_device(nic, _):
    result = nic.rocemu("exec", "--", "ibv_rc_pingpong", "-d", "rocemu99")
    need(result.returncode == 1 and "rocemu99" in result.stdout + result.stderr,
         f"ibv_rc_pingpong -d rocemu99: {result.returncode} {result.stderr}")


def no_such_nic(_nic, _):
    need_one_line(run(ROCEMU, "exec", "--name", "nosuch", "--", "true"), 125, "rocemu up")
    need_one_line(run(ROCEMU, "status", "--name", "nosuch"), 3, "rocemu up")
    need_one_line(run(ROCEMU, "down", "--name", "nosuch"), 3, "nosuch")


def up_twice(nic, _):
    need_one_line(nic.rocemu("up"), 3, "up")


def program_not_found(nic, _):
    result = nic.rocemu("exec", "--", "/no/such/program")
    need_one_line(result, 127, "/no/such/program")


def gone(pid):
    """No process of that id, or one that has let go of everything and only waits for its parent: its
    first thread is a zombie and all the others, which share its descriptors, are no more."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            state = stat.read().rsplit(")", 1)[1].split()[0]
        return state in ("Z", "X") and len(os.listdir(f"/proc/{pid}/task")) == 1
    except OSError:
        return True


def program_without_daemon(_nic, _):
    """The NIC dies under a program's environment: opening fails at once, and the name can be used again."""
    with Nic("e2e-dies") as mortal:
        environment = mortal.environment()
        pid = mortal.pid()
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not gone(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        result = run("ibv_devinfo", environment=environment)
        need(result.returncode != 0, f"ibv_devinfo without a daemon succeeded: {result.stdout}")
        need_one_line(mortal.rocemu("status"), 3, "rocemu up")
        need(mortal.rocemu("up").returncode == 0, "rocemu up after the daemon's death failed")
        mortal.need_alive()


def connect(nic):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(PATIENCE_SECONDS)
    connection.connect(nic.socket_path())
    return connection


def hello(number, **fields):
    values = {"op": number["ROCEMU_OP_HELLO"], "magic": number["ROCEMU_ABI_MAGIC"],
              "version": number["ROCEMU_ABI_VERSION"], "device": 0xffffffff, "reserved": 0}
    values.update(fields)
    length = HEADER.size + HELLO.size
    return (HEADER.pack(values["op"], length, 7, 0, values["reserved"])
            + HELLO.pack(values["magic"], values["version"], values["device"], 0, 0, 0))


def ask(nic, message):
    """(cookie, status, body) of the reply; None when the connection was closed instead."""
    with connect(nic) as connection:
        connection.send(message)
        try:
            reply = connection.recv(65536)
        except ConnectionResetError:
            return None
    if not reply:
        return None
    need(len(reply) >= HEADER.size, f"a reply of {len(reply)} bytes")
    _, _, cookie, status, _ = HEADER.unpack(reply[:HEADER.size])
    return cookie, status, reply[HEADER.size:]


def another_abi_version(nic, number):
    reply = ask(nic, hello(number, version=number["ROCEMU_ABI_VERSION"] + 1))
    need(reply and reply[:2] == (7, errno.EPROTO), f"HELLO of another ABI version: {reply}, must be EPROTO")
    need(len(reply[2]) >= 4 and struct.unpack("<I", reply[2][:4])[0] == number["ROCEMU_ABI_VERSION"],
         "the refusal does not carry the daemon's version")
    reply = ask(nic, hello(number, magic=0x12345678))
    need(reply is None or reply[1] == errno.EPROTO, f"HELLO with another magic: {reply}")


def device_out_of_range(nic, number):
    reply = ask(nic, hello(number, device=99))
    need(reply is None or reply[1] in (errno.ENODEV, errno.EINVAL), f"HELLO for device 99: {reply}, must be ENODEV")


def messages_not_well_formed(nic, number):
    good = hello(number)
    spoiled = {"short": good[:10], "empty body": good[:HEADER.size], "longer than it says": good + b"\0" * 8,
               "unknown op": HEADER.pack(9999, HEADER.size, 7, 0, 0),
               "op before HELLO": HEADER.pack(number["ROCEMU_OP_ALLOC_PD"], HEADER.size, 7, 0, 0),
               "over the limit": good + b"\0" * (number["ROCEMU_MESSAGE_MAX"] + 1)}
    for what, message in spoiled.items():
        reply = ask(nic, message)
        need(reply is None or reply[1] > 0, f"a message that is {what} was accepted: {reply}")
    with connect(nic) as connection:
        with open("/dev/null", "rb") as null:
            socket.send_fds(connection, [good], [null.fileno()] * 64)
        try:
            connection.recv(65536)
        except ConnectionResetError:
            pass


def silent_connections(nic, _):
    """Programs that connect and say nothing keep nobody else out."""
    silent = [connect(nic) for _ in range(50)]
    nic.need_alive()
    for connection in silent:
        connection.close()


ROWS = [("unknown device", unknown_device), ("no NIC of that name", no_such_nic), ("up twice", up_twice),
        ("program that does not exist", program_not_found), ("daemon that has died", program_without_daemon),
        ("another version of the ABI", another_abi_version), ("HELLO for a device there is not", device_out_of_range),
        ("messages that are not well formed", messages_not_well_formed), ("silent connections", silent_connections)]


def main():
    missing = [program for program in ("ibv_devinfo", "ibv_rc_pingpong") if shutil.which(program) is None]
    if missing:
        print(f"SKIP: {', '.join(missing)} missing (Debian package ibverbs-utils)")
        return SKIPPED
    number = constants(sys.argv[1])
    failed = 0
    with Nic(f"e2e-bad-{os.getpid()}") as nic:
        for name, row in ROWS:
            try:
                row(nic, number)
                nic.need_alive()
                print(f"PASS  {name}")
            except Bad as bad:
                failed += 1
                print(f"FAIL  {name}: {bad}")
    print(f"bad_environment: {len(ROWS) - failed} rows passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
