"""What the figures were measured on."""
import os
import platform
import re
import subprocess
from pathlib import Path

from lab import ROOT


def first_match(path, pattern):
    found = re.search(pattern, Path(path).read_text(encoding="utf-8"), re.M)
    return found[1].strip() if found else "unknown"


def commit():
    try:
        return subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], text=True, capture_output=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe():
    return {
        "cpu": first_match("/proc/cpuinfo", r"^model name\s*: (.*)$"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(first_match("/proc/meminfo", r"^MemTotal: *(\d+)")) / (1 << 20), 1),
        "kernel": platform.release(),
        "virtual": "hypervisor" in Path("/proc/cpuinfo").read_text(encoding="utf-8"),
        "distribution": first_match("/etc/os-release", r'^PRETTY_NAME="(.*)"$'),
        "uid": os.getuid(),
        "load_before": os.getloadavg()[0],
        "rocemu": commit(),
    }
