"""The tables and the JSON of a run."""
import dataclasses
import json
import re

from targets import NOT_MEASURED, all_targets


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def size_text(key):
    size = key.rsplit("/", 1)[-1]
    if not size.isdigit() or re.search("qps|all-to-all", key):
        return key
    size, unit = int(size), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024 or size % 1024:
            break
        size, unit = size // 1024, larger
    return f"{key.rsplit('/', 1)[0]} {size} {unit}"


def print_figures(results):
    print(f"\n{'measured':44} {'figure':>21} {'median':>10} {'lowest':>10} {'highest':>10}  runs")
    for key, name, values in results.all():
        print(f"{size_text(key):44} {name:>21} {number(results.median(key, name)):>10} {number(min(values)):>10} "
              f"{number(max(values)):>10} {len(values):5}")


def print_targets(results, every):
    """Of a part of the measurements, those alone that it can tell."""
    print(f"\n{'target':78} {'measured':>9}    {'limit':>8} {'':6} {'ratio':>5} {'(lowest, highest)':>17}")
    for target in all_targets(results):
        if not every and target.verdict == NOT_MEASURED:
            continue
        span = f"({number(min(target.ratios))}, {number(max(target.ratios))})" if target.ratios else ""
        print(f"{target.what:78} {number(target.value):>9} {'<=' if target.at_most else '>='} {number(target.limit):>8} "
              f"{target.unit:6} {number(target.ratio):>5} {span:>17}  {target.verdict}")


def print_machine(machine):
    print(", ".join(f"{name} {value}" for name, value in machine.items()))


def write_json(path, machine, results):
    measured = {}
    for key, name, values in results.all():
        measured.setdefault(key, {})[name] = {"median": results.median(key, name), "values": values}
    document = {
        "machine": machine,
        "measurements": [{"key": key, "figures": figures} for key, figures in measured.items()],
        "targets": [{**dataclasses.asdict(target), "ratio": target.ratio, "verdict": target.verdict}
                    for target in all_targets(results)],
        "failures": results.failures,
        "not_measured": results.absent,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
