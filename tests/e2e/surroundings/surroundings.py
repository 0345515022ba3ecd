#!/usr/bin/python3 -B
"""surroundings.py CASE: a program over a NIC, started as tests are where RDMA is tested: under valgrind and gdb, by sudo,
with an environment that something has emptied, many at a time; and programs that cannot see a NIC, which is said in one line.
ROCEMU names the rocemu command to use."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
from program_cases import ORDINARY_USER, ROCEMU, fail, skip  # noqa: E402
from sanitizers import check, compile_traffic  # noqa: E402

LIMIT_S = 120
DEVICES = ("rocemu0", "rocemu1")


def need(program, package):
    if shutil.which(program) is None:
        skip(f"{program} is missing (Debian package {package})")


def say(*command, environment=None):
    """(exit code, stdout, stderr) of a command."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", env=environment, check=False, timeout=LIMIT_S)
    return done.returncode, done.stdout, done.stderr


def need_devices(*command, environment=None):
    code, out, err = say(*command, environment=environment)
    if code != 0 or err or not all(name in out for name in DEVICES):
        fail(f"{' '.join(command)} ended with {code} and said:\n{out}{err}")


def traffic(folder):
    program = compile_traffic("gcc", [], folder)
    if program is None:
        skip("no C compiler or libibverbs-dev here")
    return program


# ---- what looks into the program ----

def valgrind(folder):
    need("valgrind", "valgrind")
    mistakes = [("overflow", "Invalid write"), ("uninitialised", "depends on uninitialised value")]
    check(traffic(folder), mistakes, ("valgrind", "-q", "--error-exitcode=9"))


def valgrind_leaks(folder):
    need("valgrind", "valgrind")
    suppressions = HERE.parent.parent.parent / "packaging/valgrind.supp"
    check(traffic(folder), [("leak", "definitely lost")],
          ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", f"--suppressions={suppressions}"))


def gdb(folder):
    need("gdb", "gdb")
    program = traffic(folder)
    code, out, err = say(ROCEMU, "run", "--", "gdb", "-batch", "-ex", "break ibv_post_send", "-ex", "run", "-ex", "backtrace",
                         "-ex", "delete", "-ex", "continue", "--args", program)
    for text in (" main (argc", "traffic: done", "exited normally"):
        if text not in out:
            fail(f"gdb ended with {code}, without '{text}':\n{out}{err}")


# ---- who starts it ----

def emptied(_):
    """An environment that was emptied has no NIC; the command that was called by its path finds it again."""
    inside = f'env -i "{ROCEMU}" exec --socket "$ROCEMU_DIR/nic.sock" -- ibv_devices'
    need_devices(ROCEMU, "run", "--", "sh", "-c", inside)
    python = ("import os, subprocess, sys; sys.exit(subprocess.run([sys.argv[1], 'exec', '--socket', "
              "os.environ['ROCEMU_DIR'] + '/nic.sock', '--', 'ibv_devices'], env={}).returncode)")
    need_devices(ROCEMU, "run", "--", "/usr/bin/python3", "-c", python, ROCEMU)


def script(folder):
    """By a shell script, and by a shell that has what `rocemu env` prints."""
    path = pathlib.Path(folder) / "script"
    path.write_text("#!/bin/sh\nibv_devices\n")
    path.chmod(0o755)
    need_devices(ROCEMU, "run", "--", str(path))
    name = f"surroundings-{os.getpid()}"
    subprocess.run([ROCEMU, "up", "--name", name], check=True, stdout=subprocess.DEVNULL)
    try:
        need_devices("sh", "-c", f'eval "$("{ROCEMU}" env --name {name})" && "{path}"')
    finally:
        subprocess.run([ROCEMU, "down", "--name", name], check=True, stdout=subprocess.DEVNULL)


def sudo(_):
    need("sudo", "sudo")
    if subprocess.run(["sudo", "-n", "true"], check=False, capture_output=True).returncode != 0:
        skip("sudo asks for a password here")
    need_devices(ROCEMU, "run", "--", "sh", "-c",
                 f'sudo -n "{ROCEMU}" exec --socket "$ROCEMU_DIR/nic.sock" -- ibv_devices')
    need_devices("sudo", "-n", ROCEMU, "run", "--", "ibv_devices")


def at_once(folder):
    """Eight NICs of eight tests, none with a name."""
    program = traffic(folder)
    runs = [subprocess.Popen([ROCEMU, "run", "--", program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True) for _ in range(8)]
    outputs = [run.communicate(timeout=LIMIT_S)[0] for run in runs]
    if outputs != ["traffic: done\n"] * 8 or any(run.returncode != 0 for run in runs):
        fail(f"eight at once said: {outputs}")


def foreign_libibverbs(folder):
    """What programs load is nothing to rocemud, whose DPDK may have use for another libibverbs."""
    library = os.path.join(folder, "libibverbs.so.1")
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-Wl,-soname,libibverbs.so.1", "-o", library], check=True)
    code, out, err = say(ROCEMU, "run", "--", "true", environment=dict(os.environ, LD_LIBRARY_PATH=folder))
    if (code, out, err) != (0, "", ""):
        fail(f"with another libibverbs in LD_LIBRARY_PATH: {code} {out}{err}")


# In another root, which is this one's but for the folder of state directories: that is empty, until one is mounted there.
IN_ANOTHER_ROOT = """
set -e
mount --rbind / "$1"
mount -t tmpfs tmpfs "$1$XDG_RUNTIME_DIR"
! chroot "$1" ibv_devices 2>&1 | grep rocemu0
chroot "$1" ibv_devices 2>&1 | grep -c "there is no NIC at $ROCEMU_DIR"
mkdir -p "$1$ROCEMU_DIR"
mount --bind "$ROCEMU_DIR" "$1$ROCEMU_DIR"
chroot "$1" "$2"
"""


def chroot(folder):
    """With the state directory in that root, and without; the program is in a PID namespace of its own, too."""
    program = traffic(folder)
    namespaces = ["unshare", "--mount", "--pid", "--fork", *([] if os.getuid() == 0 else ["--user", "--map-root-user"])]
    if subprocess.run([*namespaces, "true"], check=False, capture_output=True).returncode != 0:
        skip("no namespaces can be made here")
    root = tempfile.mkdtemp(dir=folder)
    with tempfile.TemporaryDirectory() as runtime:
        code, out, err = say(ROCEMU, "run", "--", *namespaces, "sh", "-c", IN_ANOTHER_ROOT, "sh", root, program,
                             environment=dict(os.environ, XDG_RUNTIME_DIR=runtime))
    if (code, out, err) != (0, "1\ntraffic: done\n", ""):
        fail(f"in another root: {code}\n{out}{err}")


# ---- what sees no NIC ----

def no_provider(folder):
    """A libibverbs that there is no provider for, as far as the preload library can see."""
    run = (f'cp "${{LD_PRELOAD##*:}}" {folder}/ && cd {folder} && LD_PRELOAD=$PWD/librocemu-preload.so '
           'RDMAV_DRIVERS=$PWD/librocemu IBV_DRIVERS=$RDMAV_DRIVERS ibv_devices')
    _, out, err = say(ROCEMU, "run", "--", "sh", "-c", run)
    if "rocemu0" in out or not re.match(r"rocemu: there is no provider for /.*libibverbs.so.1\S* \(private ABI \d+ ", err):
        fail(f"without a provider: {out}{err}")


def need_one_line(word, *command, user=()):
    code, out, err = say(*user, ROCEMU, "run", "--", *command)
    if code != 7 or out != "ran\n" or err.count("\n") != 1 or word not in err:
        fail(f"{' '.join(command)} ended with {code} and said:\n{out}{err}")


def compile_seven(folder, name, *command):
    source = os.path.join(folder, "seven.c")
    pathlib.Path(source).write_text('#include <stdio.h>\nint main(void) { puts("ran"); return 7; }\n')
    program = os.path.join(folder, name)
    subprocess.run([*command, source, "-o", program], check=True)
    return program


def static(folder):
    program = compile_seven(folder, "static", "gcc", "-static")
    need_one_line("statically linked", program)
    interpreted = pathlib.Path(folder) / "script"
    interpreted.write_text(f"#!{program}\n")
    interpreted.chmod(0o755)
    need_one_line("statically linked", str(interpreted))
    need_one_line("statically linked", compile_seven(folder, "static-pie", "gcc", "-static-pie"))


def musl(folder):
    need("musl-gcc", "musl-tools")
    need_one_line("musl", compile_seven(folder, "musl", "musl-gcc"))


def setuid(folder):
    if os.getuid() != 0:
        skip("not root: no program can be made that gains rights")
    program = compile_seven(folder, "setuid", "gcc")
    os.chmod(folder, 0o755)
    os.chmod(program, 0o4755)
    user = [word for word in ORDINARY_USER if word != "--no-new-privs"]
    need_one_line("setuid", program, user=user)
    os.chmod(program, 0o755)
    code, out, err = say(*user, ROCEMU, "run", "--", program)
    if (code, out, err) != (7, "ran\n", ""):
        fail(f"a program like any other: {code} {out}{err}")


CASES = {case.__name__.replace("_", "-"): case for case in (
    valgrind, valgrind_leaks, gdb, emptied, script, sudo, at_once, foreign_libibverbs, chroot, no_provider, static, musl, setuid)}


def main():
    need("ibv_devices", "ibverbs-utils")
    with tempfile.TemporaryDirectory() as folder:
        CASES[sys.argv[1]](folder)
    print(f"PASS {sys.argv[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
