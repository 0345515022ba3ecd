"""Four senders in a dumbbell under DCQCN: ib_write_bw over the live NIC, and the same in virtual time."""
import subprocess
import sys
from pathlib import Path

from common.claims import Claim
from common.points import Point

SOURCE = "no publication: the live NIC against the simulator"

HERE = Path(__file__).resolve().parent
CONGESTION = "dcqcn:paper,rpg_ai_rate=1,rpg_hai_rate=2"  # as experiment.toml has it
PAIRS = 4


def points(small):
    return [Point("virtual", "experiment.toml", {})]


def live(rocemu, small):
    """Gbit/s of payload of each pair."""
    command = [rocemu, "run", "--devices", str(2 * PAIRS), "--network", str(HERE / "network.toml"), "--congestion", CONGESTION, "--",
               sys.executable, str(HERE / "pairs.py"), "5" if small else "20"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nended with {result.returncode}: {result.stderr.strip()}")
    return [float(line) for line in result.stdout.split()]


def virtual_rates(results):
    return [results["virtual"].goodput_gbit(f"pair{pair}") for pair in range(PAIRS)]


def claims(results, small):
    there, here = virtual_rates(results), results["live"]
    if not here:
        return [Claim("sum of four", "the link's, less headers", f"{sum(there):.3f} Gbit/s in virtual time", 0.3 < sum(there) < 0.4)]
    found = [Claim("sum of four", f"{sum(there):.3f} Gbit/s in virtual time", f"{sum(here):.3f} Gbit/s live",
                   abs(sum(here) / sum(there) - 1) < 0.1)]
    for pair in range(PAIRS):
        found.append(Claim(f"pair {pair}", f"{there[pair]:.3f} Gbit/s in virtual time", f"{here[pair]:.3f} Gbit/s live",
                           abs(here[pair] / there[pair] - 1) < 0.1))
    return found


def plot(pyplot, results):
    figure, axes = pyplot.subplots(figsize=(7, 4))
    shown = [("virtual time", virtual_rates(results))]
    if results["live"]:
        shown.append(("live", results["live"]))
    for offset, (label, rates) in enumerate(shown):
        axes.bar([pair + 0.4 * offset for pair in range(PAIRS)], rates, width=0.4, label=label)
    axes.set_xticks([pair + 0.2 for pair in range(PAIRS)], [f"pair {pair}" for pair in range(PAIRS)])
    axes.set_ylabel("Gbit/s")
    axes.legend()
    axes.grid(True, axis="y", alpha=0.3)
    return figure
