"""Go-back-N and selective repeat over a link that loses frames: WRITEs in virtual time and by ib_write_bw over the live NIC,
READs in virtual time."""
import subprocess

from common.claims import Claim
from common.points import Point

SOURCE = "Mittal et al., Revisiting Network Support for RDMA (IRN), SIGCOMM 2018 (4.3: selective retransmission beside go-back-N)"

RECOVERIES = ("go-back-n", "selective-repeat")
SERIES = ("WRITE, virtual time", "WRITE, live", "READ, virtual time")


def losses(small):
    return [0, 1] if small else [0, 0.01, 0.1, 0.5, 1, 2, 5]


def points(small):
    few = {"duration": "20ms"} if small else {}
    return [Point(f"{verb}-{recovery}-{loss}", "loss.toml", {"workload.write.verb": verb, "nic.recovery": recovery,
                                                           "network.links.loss": f"{loss}%", **few})
            for verb in ("write", "read") for recovery in RECOVERIES for loss in losses(small)]


def live(rocemu, small):
    """Gbit/s by (recovery, loss); none in the small form."""
    if small:
        return {}
    found = {}
    for recovery in RECOVERIES:
        for loss in losses(small):
            program = "ib_write_bw -s 65536 -m 1024 -D 5 -F --report_gbits"
            impaired = ["--impair", f"loss={loss}%"] if loss else []
            command = [rocemu, "run", "--devices", "2", "--recovery", recovery, *impaired, "--server", f"{program} -d rocemu0", "--",
                       *f"{program} -d rocemu1 localhost".split()]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode != 0:
                raise SystemExit(f"{' '.join(command)}\nended with {result.returncode}: {result.stderr.strip()}")
            rows = [line.split() for line in result.stdout.splitlines() if line.split()[:1] == ["65536"]]
            found[recovery, loss] = float(rows[-1][3])
    return found


def shares(results, recovery, small):
    """Of the goodput without loss, as SERIES has them."""
    virtual, read = ({loss: results[f"{verb}-{recovery}-{loss}"].goodput_gbit("write") for loss in losses(small)}
                     for verb in ("write", "read"))
    measured = {loss: results["live"][recovery, loss] for loss in losses(small) if results["live"]}
    return [{loss: rate / rates[0] for loss, rate in rates.items()} for rates in (virtual, measured, read)]


def claims(results, small):
    found = []
    by_recovery = {recovery: shares(results, recovery, small) for recovery in RECOVERIES}
    for loss in losses(small)[1:]:
        for place, where in enumerate(SERIES):
            back, selective = (by_recovery[recovery][place].get(loss) for recovery in RECOVERIES)
            if back is None:
                continue
            factor, more = (1.1, "(our bound) selective repeat has a tenth more") if loss >= 1 else (0.98, "selective repeat has no less")
            found.append(Claim(f"{loss} % loss, {where}: share of the goodput without loss", more,
                               f"go-back-N {back:.2f}, selective repeat {selective:.2f}", selective >= factor * back))
    return found


def plot(pyplot, results):
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for recovery, colour in zip(RECOVERIES, ("C0", "C1")):
        for rates, where, style in zip(shares(results, recovery, False), SERIES, ("-", "--", ":")):
            losses_seen = [loss for loss in rates if loss]
            axes.plot(losses_seen, [rates[loss] for loss in losses_seen], style, color=colour, marker="o",
                      label=f"{recovery}, {where}")
    axes.set_xscale("log")
    axes.set_xlabel("loss, %")
    axes.set_ylabel("share of the goodput without loss")
    axes.legend()
    axes.grid(True, alpha=0.3)
    return figure
