#!/usr/bin/env python3
"""Small experiments of each workload by `rocemu sim`: their results are the same bytes in two runs, and those whose
hashes are stored, which were made on another machine perhaps; Ctrl-C; a sweep; commands; bad input.

  check.py ROCEMU          checks
  check.py ROCEMU --update stores the hashes, for a change that is meant
"""
import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
HASHES = HERE / "hashes.json"
FILES = ["flows.csv", "summary.json", "queues.csv", "rates.csv", "pauses.csv"]


def sim(rocemu, *arguments, code=0, **options):
    done = subprocess.run([rocemu, "sim", *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def contents(directory):
    return {file.name: file.read_bytes() for file in sorted(Path(directory).iterdir())}


def check_same_bytes(rocemu, scratch, update):
    found = {}
    for experiment in sorted(HERE.glob("*.toml")):
        runs = []
        for number in (1, 2):
            out = scratch / f"{experiment.stem}-{number}"
            assert not sim(rocemu, experiment, "--out", out).stderr, "there is a progress bar, and no terminal"
            runs.append(contents(out))
        assert runs[0] == runs[1], f"{experiment.stem}: two runs, other bytes"
        assert set(FILES) <= set(runs[0]), f"{experiment.stem}: there are {sorted(runs[0])} alone"
        summary = json.loads(runs[0]["summary.json"])
        assert not summary["partial"] and summary["flows"]["completed"] == summary["flows"]["started"], summary
        found[experiment.stem] = {name: hashlib.sha256(data).hexdigest()[:16] for name, data in runs[0].items()}
        print(f"{experiment.stem}: {summary['flows']['completed']} flows, "
              f"{summary['network']['frames_delivered']} frames: the same bytes twice")
    if update:
        HASHES.write_text(json.dumps(found, indent=1) + "\n")
    stored = json.loads(HASHES.read_text())
    for name, hashes in found.items():
        assert hashes == stored.get(name), f"{name}: other results than stored; if that is meant: check.py --update"


def check_other_seed(rocemu, scratch):
    sim(rocemu, HERE / "poisson.toml", "--out", scratch / "seed", "--set", "seed=2")
    assert contents(scratch / "seed")["flows.csv"] != contents(scratch / "poisson-1")["flows.csv"]


def check_interrupt(rocemu, scratch):
    out = scratch / "interrupted"
    process = subprocess.Popen(
        [rocemu, "sim", HERE / "all-to-all.toml", "--out", out, "--set", "workload.shuffle.size=1000mb",
         "--set", "duration=10s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # It is at work when it has used the processor for a while.
    stat = Path(f"/proc/{process.pid}/stat")
    while int(stat.read_text().rsplit(")", 1)[1].split()[11]) < 20:
        assert process.poll() is None, process.communicate()
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=60)
    assert process.returncode == 130, (process.returncode, output)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["partial"] and summary["flows"]["unfinished"] > 0, summary
    assert set(FILES) <= set(contents(out))
    print(f"Ctrl-C: partial, {summary['ended_ns']} ns")


def check_progress(rocemu, scratch):
    main, terminal = pty.openpty()
    done = subprocess.run([rocemu, "sim", HERE / "permutation.toml", "--out", scratch / "tty"], stderr=terminal,
                          stdout=subprocess.DEVNULL, timeout=60)
    os.close(terminal)
    assert done.returncode == 0
    text = b""
    try:
        while chunk := os.read(main, 4096):
            text += chunk
    except OSError:  # the other end is closed
        pass
    assert b" us of 2000 us" in text and text.endswith(b"\r\x1b[K"), text
    print("a terminal sees how far it is")


def check_sweep(rocemu, scratch):
    out = scratch / "sweep"
    arguments = [HERE / "poisson.toml", "--out", out, "--sweep", "seed=1,2", "--sweep", "workload.background.load=20%,60%"]
    commands = sim(rocemu, *arguments, "--commands").stdout.splitlines()
    assert len(commands) == 4 and not out.exists(), commands
    sim(rocemu, *arguments, "--quiet")
    points = sorted(out.iterdir())
    assert len(points) == 4, points
    assert contents(out / "seed=1,workload.background.load=60%")["flows.csv"] == contents(scratch / "poisson-1")["flows.csv"]
    by_command = scratch / "by-command"
    command = commands[0].replace(str(out), str(by_command)).replace("rocemu ", f"{rocemu} ", 1)
    subprocess.run(command, shell=True, check=True, timeout=60)
    assert contents(next(by_command.iterdir())) == contents(points[0])
    print("sweep: 4 points, and one by its command")


def check_bad_input(rocemu, scratch):
    bad = scratch / "bad.toml"
    bad.write_text("duration = \"1ms\"\n[nic]\nspeed = 1\n")
    for arguments, error in [
            ([bad, "--out", scratch / "x"], "[nic] speed: there is no such key; there are path_mtu"),
            ([scratch / "none.toml", "--out", scratch / "x"], "none.toml: it cannot be read"),
            ([HERE / "trace.toml"], "--out is required"),
            ([HERE / "trace.toml", "--out", scratch / "x", "--set", "seed"], "'seed' is not KEY=VALUE"),
            ([HERE / "trace.toml", "--out", scratch / "x", "--sweep", "seed"], "'seed' is not KEY=VALUE,VALUE"),
            ([HERE / "trace.toml", "--out", scratch / "x", "--sweep", "sead=1,2"], "sead: there is no such key"),
            ([HERE / "trace.toml", "--out", scratch / "x", "--commands"], "--commands goes with --sweep")]:
        done = sim(rocemu, *arguments, code=2)
        assert error in done.stderr and done.stderr.startswith("rocemu: sim: ") and done.stderr.count("\n") == 1, done.stderr
    (scratch / "a-file").write_text("")
    sim(rocemu, HERE / "trace.toml", "--out", scratch / "a-file" / "x", code=1)
    assert "Ctrl-C" in sim(rocemu, "--help").stdout
    print("bad input: a line each")


def main():
    rocemu = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        check_same_bytes(rocemu, scratch, "--update" in sys.argv)
        check_other_seed(rocemu, scratch)
        check_interrupt(rocemu, scratch)
        check_progress(rocemu, scratch)
        check_sweep(rocemu, scratch)
        check_bad_input(rocemu, scratch)


main()
