"""rocemu sim beside ns-3: the same network and load, by what a core does in a second of its time."""
import json
import re
import tempfile
from pathlib import Path

import lab
from finish import finish

HERE = Path(__file__).resolve().parent


def experiment(build, name, *arguments):
    with tempfile.TemporaryDirectory() as scratch:
        command = [build.rocemu, "sim", HERE / f"{name}.toml", "--out", scratch, "--quiet", *arguments]
        _, seconds, most_bytes = finish(command)
        summary = json.loads((Path(scratch) / "summary.json").read_text(encoding="utf-8"))
    network = summary["network"]
    return {"packets_per_s": network["frames_delivered"] / seconds, "hops_per_s": network["hops"] / seconds,
            "gb_of_memory": most_bytes / 1e9}


def ns3(build):
    sizes = HERE.parents[1] / "emulator/experiment/sizes/websearch.txt"
    program = build.bench / "ns3_leaf_spine"
    if not program.exists():
        raise lab.NotMeasured("ns-3 is not there (libns3-dev), so there is no ns3_leaf_spine")
    text, seconds, most_bytes = finish([program, "--load=0.5", "--duration=0.0002", f"--sizes={sizes}"])
    packets, hops = map(int, re.match(r"(\d+) packets (\d+) hops", text).groups())
    return {"packets_per_s": packets / seconds, "hops_per_s": hops / seconds, "gb_of_memory": most_bytes / 1e9}
