"""What keeps a machine busy while something else is measured: pairs that move bulk, and compilers."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import lab

SECONDS = 5  # of one measurement
BULK_BYTES = 65536

# Some seconds of work for a compiler.
SOURCE = """#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
int main(int argc, char** argv) {
  std::map<std::string, std::function<bool(const std::string&)>> rows;
  for (int i = 0; i < argc; ++i)
    rows[argv[i]] = [i](const std::string& text) { return std::regex_match(text, std::regex(std::string(i, '.'))); };
  return static_cast<int>(std::count_if(rows.begin(), rows.end(), [](auto& row) { return row.second(row.first); }));
}
"""


@contextlib.contextmanager
def running(commands, environment=None, ready=None):
    """Runs them meanwhile, each in a process group of its own. ready: what each says when it waits for a line, which it
    then gets."""
    processes = []
    try:
        for command in commands:
            processes.append(subprocess.Popen(
                [str(part) for part in command], env=environment, text=True, process_group=0,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE if ready else subprocess.DEVNULL,
                stderr=subprocess.DEVNULL))
        for process in processes if ready else []:
            if not process.stdout.readline().startswith(ready):
                raise lab.MeasurementFailed(f"{process.args[0]} did not say '{ready}'")
        for process in processes if ready else []:
            process.stdin.write("\n")
            process.stdin.flush()
        yield
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def compilers(count):
    compiler = os.environ.get("CXX") or shutil.which("c++")

    @contextlib.contextmanager
    def load():
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / "work.cc"
            source.write_text(SOURCE, encoding="utf-8")
            with running([["sh", "-c", f"while {compiler} -O2 -c -o /dev/null {source}; do :; done"]] * count):
                yield

    return load if compiler else None


def verbs_bulk(build, environment, count):
    command = [build.bench / "qp_scale", "--message-bytes", BULK_BYTES, "--qps", 1, "--active", 1, "--seconds", 600]
    return lambda: running([command] * count, environment, ready="connected")


@contextlib.contextmanager
def tcp_bulk(count):
    ports = [lab.choose_port() for _ in range(count)]
    with running([["qperf", "-lp", port] for port in ports]):
        # qperf's server listens at once; one that does not is found out by the client's end.
        for port in ports:
            lab.wait_until("qperf listens", lambda p=port: lab.port_in_use(p))
        with running([["qperf", "-lp", port, "-t", 600, "-m", BULK_BYTES, "127.0.0.1", "tcp_bw"] for port in ports]):
            yield


def round_trips(build, arguments, environment, load):
    """Figures of the program round_trips, which connects before the load begins."""
    command = [str(part) for part in [build.bench / "round_trips", "--seconds", SECONDS, *arguments]]
    with subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        try:
            if program.stdout.readline() != "ready\n":
                raise lab.MeasurementFailed("round_trips did not connect")
            with load():
                text, _ = program.communicate("\n", timeout=lab.LIMIT_SECONDS)
        finally:
            program.kill()
    p50, p99, worst, count = text.split()
    return {"p50_us": float(p50), "p99_us": float(p99), "worst_us": float(worst), "round_trips_per_s": int(count) / SECONDS}
