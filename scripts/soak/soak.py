"""What scripts/soak.sh runs: its parts in turn, each within its share of the time."""
import argparse
import os
import signal
import subprocess
import sys
import time

sys.path.append(os.path.dirname(__file__))
from parts import PARTS, SHARES
from report import Report
from steps import Steps


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak.sh", description="A long run of everything, with a report.")
    time_given = parser.add_mutually_exclusive_group()
    time_given.add_argument("--hours", type=float, metavar="N")
    time_given.add_argument("--minutes", type=float, metavar="N")
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART", default=[])
    parser.add_argument("--report", default="build/soak", metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--build", metavar="FOLDER", help="an ordinary build that is there (default: makes build/release)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of scenarios and stress (default: the time)")
    parser.add_argument("--list", action="store_true", help="the parts, and their shares of the time")
    return parser, parser.parse_args()


def run_part(name, seconds, options, report):
    steps = Steps(name, seconds, options, report.before(name))
    print(f"==> {name}: {seconds / 60:.1f} minutes, log {steps.log_path}", flush=True)
    try:
        PARTS[name](steps)
    except (OSError, subprocess.SubprocessError, KeyError, ValueError) as error:
        steps.failures.append(f"{type(error).__name__}: {error}")
    report.add(name, steps)
    print(f"    {report.line(name)}", flush=True)


def main():
    parser, options = arguments()
    if options.list:
        for name, share in SHARES.items():
            print(f"{name:10} {share:4.0%}  {PARTS[name].__doc__.splitlines()[0]}")
        return 0
    seconds = 3600 * options.hours if options.hours else 60 * (options.minutes or 0)
    if seconds <= 0:
        parser.error("--hours or --minutes is wanted")
    # So that what it has started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.makedirs(options.report, exist_ok=True)
    report = Report(options.report)
    chosen = [name for name in PARTS if not options.only or name in options.only]
    shares = sum(SHARES[name] for name in chosen)
    for name in chosen:
        run_part(name, seconds * SHARES[name] / shares, options, report)
    print(f"\n{report.text()}\nreport: {report.markdown_path}, {report.json_path}")
    return 1 if report.failed() else 0


sys.exit(main())
