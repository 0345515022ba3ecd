#!/usr/bin/python3 -B
"""asyncwatch.py: ibv_asyncwatch waits for the events of a device, and is told of its end when the NIC goes down or
dies.

ROCEMU names the rocemu command to use (default: the one in PATH)."""
import os
import shutil
import signal
import subprocess
import sys

SKIPPED = 77
ROCEMU = os.environ.get("ROCEMU", "rocemu")
NAME = f"asyncwatch-{os.getpid()}"


def rocemu(*words):
    return subprocess.run([ROCEMU, *words], check=True, text=True, stdout=subprocess.PIPE).stdout


def nic_directory():
    for line in rocemu("env", "--name", NAME).splitlines():
        if "ROCEMU_DIR=" in line:
            return line.split("ROCEMU_DIR=")[1].strip("'\";")
    sys.exit("FAIL rocemu env does not tell ROCEMU_DIR")


def down():
    rocemu("down", "--name", NAME)


def die():
    with open(f"{nic_directory()}/pid", encoding="ascii") as text:
        os.kill(int(text.read()), signal.SIGKILL)


def watch(end, what):
    rocemu("up", "--name", NAME, "--devices", "1")
    watcher = subprocess.Popen([ROCEMU, "exec", "--name", NAME, "--", "stdbuf", "-oL", "ibv_asyncwatch", "-d", "rocemu0"],
                               stdout=subprocess.PIPE, text=True)
    try:
        line = watcher.stdout.readline()
        if "rocemu0: async event FD" not in line:
            sys.exit(f"FAIL ibv_asyncwatch printed: {line}")
        end()
        said = watcher.communicate(timeout=20)[0]
        if "IBV_EVENT_DEVICE_FATAL" not in said:
            sys.exit(f"FAIL ibv_asyncwatch was not told that the NIC {what}: {said}")
        print(f"PASS ibv_asyncwatch ends when the NIC {what}")
    except subprocess.TimeoutExpired:
        sys.exit(f"FAIL ibv_asyncwatch waits on after the NIC {what}")
    finally:
        watcher.kill()
        subprocess.run([ROCEMU, "down", "--name", NAME], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)


def main():
    for program in ("ibv_asyncwatch", "stdbuf"):
        if shutil.which(program) is None:
            print(f"SKIP: {program} is missing (Debian packages ibverbs-utils, coreutils)")
            return SKIPPED
    watch(down, "goes down")
    watch(die, "dies")
    return 0


if __name__ == "__main__":
    sys.exit(main())
