#!/usr/bin/python3 -B
"""sanitizers.py COMPILER SANITIZER: a program compiled with -fsanitize=SANITIZER runs over a NIC as any other does, with
--check, too. Correct, it is told nothing; what it does wrong is found as without the NIC. ROCEMU names the rocemu command to use."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from program_cases import ROCEMU, fail, skip  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent.parent
LIMIT_S = 120
# What a program does wrong at its end, and what the sanitizer says of it.
FINDS = {
    "address": [("overflow", "AddressSanitizer: heap-buffer-overflow"), ("leak", "LeakSanitizer: detected memory leaks"),
                ("double-free", "AddressSanitizer: attempting double-free")],
    "leak": [("leak", "LeakSanitizer: detected memory leaks")],
    "undefined": [("undefined", "runtime error: signed integer overflow")],
    "thread": [("race", "ThreadSanitizer: data race")],
}


def compile_traffic(compiler, options, folder):
    """The program's path; None when this compiler cannot make such programs."""
    program = os.path.join(folder, "traffic")
    files = [HERE / "traffic.c", SOURCE / "tests/misuse/pair/pair.c"]
    command = [compiler, "-O1", "-g", *options, f"-I{SOURCE}", *map(str, files), "-libverbs", "-pthread", "-o", program]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    return program if done.returncode == 0 else None


def run(*command, options=()):
    """(exit code, output) of a program over a NIC."""
    done = subprocess.run([ROCEMU, "run", *options, "--", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False, timeout=LIMIT_S)
    return done.returncode, done.stdout


def runs_well(*command, options=()):
    code, output = run(*command, options=options)
    if (code, output) != (0, "traffic: done\n"):
        fail(f"{' '.join([*options, *command])} ended with {code} and said:\n{output}")


def check(program, finds, launcher=(), options=()):
    runs_well(*launcher, program, options=options)
    for mistake, word in finds:
        code, output = run(*launcher, program, mistake, options=options)
        if word not in output or not output.startswith("traffic: done\n"):
            fail(f"{program} {mistake} ended with {code} and said nothing of '{word}':\n{output}")
        print(f"PASS {mistake}")


def main():
    compiler, sanitizer = sys.argv[1:]
    if shutil.which(compiler) is None:
        skip(f"{compiler} is missing")
    with tempfile.TemporaryDirectory() as folder:
        program = compile_traffic(compiler, [f"-fsanitize={sanitizer}"], folder)
        if program is None:
            skip(f"{compiler} has no run-time library for -fsanitize={sanitizer}, or libibverbs-dev is missing")
        check(program, FINDS[sanitizer])
        check(program, FINDS[sanitizer], options=["--check"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
