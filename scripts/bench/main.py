"""Measures rocemu beside floors and beside what a user would have otherwise, in interleaved repetitions: each
repetition makes every measurement once, what is compared one after the other, so that a noisy minute of the machine
falls on all alike. Prints medians and ranges, and for each target the ratio of each repetition's pair: its median, its
range, and whether the target is met, missed, or not decidable on a machine that is so noisy. Exit code 1 when a
measurement could not be made; a target that is not met is a figure, not an error."""
import argparse
import re
import subprocess
import sys
import time

import lab
import machine
import measurements
import plots
import report


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench.sh", description=__doc__)
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--quick", action="store_true", help="what the targets need (the default)")
    extent.add_argument("--full", action="store_true", help="curves over message sizes as well")
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="(%(default)s)")
    parser.add_argument("--only", metavar="REGEX", help="only measurements whose key it matches")
    parser.add_argument("--list", action="store_true", help="print the keys of the measurements")
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    parser.add_argument("--plots", metavar="DIRECTORY", help="write SVG plots there (with --full)")
    parser.add_argument("--htsim", metavar="DIR",
                        help="a checkout of csg-htsim that has been built, to measure beside (HTSIM_DIR)")
    parser.add_argument("--build", default=lab.ROOT / "build/release", metavar="DIRECTORY", help="(%(default)s)")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("--repetitions: at least 1")
    return options


def wanted(nic, options):
    for measurement in measurements.all_measurements(nic, options.htsim):
        if options.only:
            if re.search(options.only, measurement.key):
                yield measurement
        elif options.full or measurement.quick:
            yield measurement


def in_turns(chosen):
    """What is compared with each other stands together, in the order of the first of each."""
    turns = {}
    for measurement in chosen:
        turns.setdefault(measurement.turn, []).append(measurement)
    return [measurement for turn in turns.values() for measurement in turn]


class Progress:
    """One line that is written over on a terminal; a line for each repetition elsewhere."""

    def __init__(self, total, repetitions):
        self.total, self.repetitions = total, repetitions
        self.terminal = sys.stderr.isatty()
        self.started = time.monotonic()

    def show(self, repetition, place, key):
        head = f"[{repetition + 1}/{self.repetitions}]"
        if self.terminal:
            print(f"\r{head} {place}/{self.total} {key:50}", end="", file=sys.stderr, flush=True)
        elif place == 1:
            print(f"{head} {self.total} measurements", file=sys.stderr, flush=True)

    def end(self):
        wipe = f"\r{'':80}\r" if self.terminal else ""
        print(f"{wipe}measured for {time.monotonic() - self.started:.0f} s", file=sys.stderr)


def measure(chosen, repetitions):
    results = measurements.Results()
    progress = Progress(len(chosen), repetitions)
    for repetition in range(repetitions):
        for place, measurement in enumerate(chosen, 1):
            progress.show(repetition, place, measurement.key)
            try:
                results.add(measurement.key, measurement.run(), repetition)
            except lab.NotMeasured as absent:
                results.absent.setdefault(measurement.key, str(absent))
            except (lab.MeasurementFailed, lab.PairFailed, subprocess.SubprocessError, OSError, ValueError,
                    IndexError) as failure:
                results.failures.setdefault(measurement.key, str(failure))
    progress.end()
    return results


def main():
    options = arguments()
    described = machine.describe()
    with lab.Nic(lab.Build(options.build)) as nic:
        chosen = in_turns(wanted(nic, options))
        if options.list:
            print("\n".join(measurement.key for measurement in chosen))
            return 0
        if not chosen:
            print(f"bench.sh: no measurement matches '{options.only}'; --list prints them", file=sys.stderr)
            return 2
        results = measure(chosen, options.repetitions)
    report.print_machine(described)
    report.print_figures(results)
    report.print_targets(results, every=not options.only)
    if options.json:
        report.write_json(options.json, described, results)
    if options.plots:
        plots.write_plots(options.plots, results)
    for key, why in results.absent.items():
        print(f"\nnot measured: {key}: {why}", file=sys.stderr)
    for key, failure in results.failures.items():
        print(f"\nFAILED {key}: {failure}", file=sys.stderr)
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
