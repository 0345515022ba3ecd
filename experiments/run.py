#!/usr/bin/env python3
"""Runs experiments whose results are published, and says which of these come out.

Each folder beside this file is one: its description for `rocemu sim`, and experiment.py with the points to run, the
claims, and a plot. The last lines are a table; OUT/NAME has all files of all runs, table.md and plot.svg (with matplotlib).
Exit code 0: every claim comes out as published, or its folder says why it does not; 1: one does not; 2: bad command line.
"""
import argparse
import importlib.util
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from common.claims import table  # noqa: E402
from common.points import run_all  # noqa: E402


def names():
    return sorted(file.parent.name for file in HERE.glob("*/experiment.py"))


def load(name):
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), HERE / name / "experiment.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(experiment, results, file):
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed (python3-matplotlib)", file=sys.stderr)
        return
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rocemu"  # the same figures give the same file
    from matplotlib import pyplot

    figure = experiment.plot(pyplot, results)
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)


def run(name, arguments):
    experiment = load(name)
    out = arguments.out / name
    results = run_all(experiment.points(arguments.small), HERE / name, out, arguments.rocemu, arguments.jobs)
    if hasattr(experiment, "live"):  # after the points, so that nothing runs beside it
        results["live"] = {} if arguments.virtual else experiment.live(arguments.rocemu, arguments.small)
    claims = experiment.claims(results, arguments.small)
    text = table(claims)
    print(f"\n{name}: {experiment.SOURCE}\n\n{text}")
    (out / "table.md").write_text(text + "\n")
    if not arguments.small:
        draw(experiment, results, out / "plot.svg")
    return not any(claim.fails for claim in claims)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which (all): {', '.join(names())}")
    parser.add_argument("--small", action="store_true", help="the short form, as tests run it: fewer points, less time")
    parser.add_argument("--virtual", action="store_true", help="nothing over a live NIC")
    parser.add_argument("--out", type=Path, default=Path("experiments-out"), help="where results go (%(default)s)")
    parser.add_argument("--rocemu", default="rocemu", help="the command (%(default)s)")
    parser.add_argument("--jobs", type=int, help="runs at a time (as many as there are cores)")
    arguments = parser.parse_args()
    if shutil.which(arguments.rocemu) is None:
        parser.error(f"{arguments.rocemu} is no command; --rocemu FILE says where it is, like build/release/bin/rocemu")
    unknown = set(arguments.names) - set(names())
    if unknown:
        parser.error(f"there is no experiment {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    held = [run(name, arguments) for name in arguments.names or names()]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
