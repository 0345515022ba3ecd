"""Points: runs of `rocemu sim` with a file and some of its keys set otherwise, and what they leave."""
import csv
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Point:
    name: str
    file: str  # in the experiment's folder
    settings: dict = field(default_factory=dict)  # KEY: VALUE, as of `rocemu sim --set`


class Results:
    """The files that one point left."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.summary = json.loads((self.directory / "summary.json").read_text())

    def rows(self, name):
        with open(self.directory / name, newline="") as file:
            return list(csv.DictReader(file))

    def goodput_gbit(self, workload):
        return self.summary["workloads"][workload]["goodput_bits_per_s"] / 1e9

    def fairness(self, workload):
        return self.summary["workloads"][workload]["fairness"]

    def queue(self, port):
        """(time in ns, bytes) of a port's queue, whenever it was other than an interval before."""
        return [(int(row["time_ns"]), int(row["bytes"])) for row in self.rows("queues.csv") if row["port"] == port]

    def mean_queue_bytes(self, port, from_ns):
        """The mean over the time from then to the end."""
        before, area, last = 0, 0, from_ns
        for at_ns, queue_bytes in self.queue(port):
            if at_ns > from_ns:
                area += before * (at_ns - last)
                last = at_ns
            before = queue_bytes
        end = self.summary["ended_ns"]
        return (area + before * (end - last)) / (end - from_ns)


def run_all(points, folder, out, rocemu, jobs):
    """Each in its own process, so many at a time; {name: Results}."""
    done = 0

    def run(point):
        nonlocal done
        directory = out / point.name
        command = [rocemu, "sim", str(folder / point.file), "--out", str(directory), "--quiet"]
        for key, value in point.settings.items():
            command += ["--set", f"{key}={value}"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\nended with {result.returncode}: {result.stderr.strip()}")
        done += 1
        if sys.stderr.isatty():
            print(f"\r{folder.name}: {done} of {len(points)} runs", end="\n" if done == len(points) else "", file=sys.stderr)
        return point.name, Results(directory)

    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        return dict(pool.map(run, points))
