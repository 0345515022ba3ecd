"""Selective repeat without PFC beside go-back-N with it, in a loaded fat-tree."""
from common.claims import Claim
from common.points import Point

SOURCE = "Mittal et al., Revisiting Network Support for RDMA (IRN), SIGCOMM 2018 (4.2: default case; the abstract: 6 to 83 % better)"

# name: (file, keys)
CASES = {
    "roce-pfc": ("fat-tree-pfc.toml", {"nic.recovery": "go-back-n", "nic.timeout": 14}),
    "roce": ("fat-tree.toml", {"nic.recovery": "go-back-n"}),
    "irn": ("fat-tree.toml", {"nic.recovery": "selective-repeat", "nic.window_packets": 110}),  # BDP-FC: 120 kB
    "irn-pfc": ("fat-tree-pfc.toml", {"nic.recovery": "selective-repeat", "nic.window_packets": 110}),
    "roce-pfc-dcqcn": ("fat-tree-pfc.toml", {"nic.recovery": "go-back-n", "nic.timeout": 14,
                                             "nic.congestion": "dcqcn:paper"}),
    "irn-dcqcn": ("fat-tree.toml", {"nic.recovery": "selective-repeat", "nic.window_packets": 110, "nic.congestion": "dcqcn:paper"}),
}


AGREEMENT = "a flow is a connection of its own here, and agrees on selective repeat by its first answer: what it sends " \
            "until then is recovered as go-back-N does"
METRICS = ("mean slowdown", "mean completion time, ms", "99th percentile, ms")


def points(small):
    few = {"duration": "1ms"} if small else {}
    cases = ("roce-pfc", "irn") if small else CASES
    return [Point(name, CASES[name][0], {**CASES[name][1], **few}) for name in cases]


def metrics(result):
    """The paper's three: mean slowdown, mean and 99th percentile of the completion time in ms."""
    times = sorted((int(row["end_ns"]) - int(row["start_ns"])) / 1e6 for row in result.rows("flows.csv") if row["end_ns"])
    return (result.summary["slowdown"]["all"]["mean"], sum(times) / len(times), times[int(len(times) * 0.99)])


def claims(results, small):
    found = []
    pairs = [("irn", "roce-pfc", "IRN without PFC beside RoCE with it")]
    if not small:
        pairs += [("irn-dcqcn", "roce-pfc-dcqcn", "the same, both with DCQCN")]
    for ours, other, what in pairs:
        for name, new, old in zip(METRICS[:1] if small else METRICS, metrics(results[ours]), metrics(results[other])):
            seen = f"{old:.3g} to {new:.3g}: {100 * (1 - new / old):.0f} % less"
            found.append(Claim(f"{what}: {name}", "6 to 83 % less", seen, new < 0.94 * old, deviation="" if small else AGREEMENT))
            found.append(Claim(f"{what}: {name}", "(our bound) 2 % more at most", seen, new <= 1.02 * old))
    for name in results:
        flows = results[name].summary["flows"]
        found.append(Claim(f"{name}: flows completed", "all", f"{flows['completed']} of {flows['started']}",
                           flows["completed"] == flows["started"]))
    return found


def plot(pyplot, results):
    figure, all_axes = pyplot.subplots(1, 3, figsize=(12, 4))
    for axes, title, place in zip(all_axes, METRICS, range(3)):
        axes.bar(range(len(CASES)), [metrics(results[name])[place] for name in CASES])
        axes.set_xticks(range(len(CASES)), CASES, rotation=45, ha="right")
        axes.set_title(title)
        axes.grid(True, axis="y", alpha=0.3)
    return figure
