"""Bandwidth, latency and message rate over message size, as SVG files."""
import re
from pathlib import Path

LINES = {
    "bandwidth": ("gb_per_s", "GB/s", r"(rocemu/ib_(?:write|read|send)_bw|rocemu-share-memory/ib_write_bw|tcp/qperf-bw|kernel-.*_bw)/(\d+)$"),
    "latency": ("typical_us", "us, one way", r"(rocemu/ib_(?:write|read|send)_lat|rocemu-share-memory/ib_write_lat|tcp/qperf-lat|kernel-.*_lat)/(\d+)$"),
    "message-rate": ("messages_per_s", "messages a second",
                     r"(rocemu/ib_(?:write|read|send)_bw|rocemu-share-memory/ib_write_bw|kernel-.*_bw)/(\d+)$"),
}


def write_plots(directory, results):
    import matplotlib  # only who wants plots needs it

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rocemu"  # the same figures give the same file
    from matplotlib import pyplot

    Path(directory).mkdir(parents=True, exist_ok=True)
    for name, (figure, unit, pattern) in LINES.items():
        lines = {}
        for key, measured, _ in results.all():
            found = re.match(pattern, key)
            if found and measured == figure:
                lines.setdefault(found[1], []).append((int(found[2]), results.median(key, figure)))
        plot, axes = pyplot.subplots(figsize=(7, 4))
        for label, points in sorted(lines.items()):
            axes.plot(*zip(*sorted(points)), marker="o", label=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log" if name != "bandwidth" else "linear")
        axes.set_xlabel("message size, bytes")
        axes.set_ylabel(unit)
        axes.grid(True, alpha=0.3)
        axes.legend()
        plot.savefig(Path(directory) / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
        pyplot.close(plot)
