"""What pauses do to flows that congest nothing, and that DCQCN frees them."""
from common.claims import Claim
from common.points import Point

SOURCE = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015 (2.2 and 7.1: parking lot unfairness, " \
         "victim flows)"

PAYLOAD_SHARE = 1024 / (1024 + 58 + 24)
FAIR_GBIT = 10.0    # each of four senders to one host
VICTIM_GBIT = 40.0  # nobody else is on its way, but for the 80 Gbit/s link, where there is room for all


def points(small):
    few = {"duration": "120ms", "results.warmup": "80ms"} if small else {}
    return [Point("pfc", "parking-lot.toml", {"nic.congestion": "none", **few}),
            Point("dcqcn", "parking-lot.toml", {"nic.congestion": "dcqcn:paper", **few})]


def rates_gbit(result):
    """On the wire: of each of the three far senders, of the near one, of the victim."""
    return (result.goodput_gbit("far") / 3 / PAYLOAD_SHARE, result.goodput_gbit("near") / PAYLOAD_SHARE,
            result.goodput_gbit("victim") / PAYLOAD_SHARE)


def claims(results, small):
    pfc, dcqcn = results["pfc"], results["dcqcn"]
    far, near, victim = rates_gbit(pfc)
    found = [
        Claim("PFC alone: pauses", "many", str(pfc.summary["network"]["pauses"]), pfc.summary["network"]["pauses"] > 100),
        Claim("PFC alone: the near sender beside each far one", "twice and more: ports are equal, not flows",
              f"{near:.1f} to {far:.1f} Gbit/s", near > 2 * far),
        Claim("PFC alone: the victim", "far below its link's rate", f"{victim:.1f} of {VICTIM_GBIT:.0f} Gbit/s",
              victim < 0.6 * VICTIM_GBIT),
    ]
    far, near, victim = rates_gbit(dcqcn)
    found += [
        Claim("DCQCN: near and far senders", "alike", f"{near:.1f} to {far:.1f} Gbit/s", 0.8 < near / far < 1.25),
        Claim("DCQCN: the victim", "at its link's rate", f"{victim:.1f} of {VICTIM_GBIT:.0f} Gbit/s", victim > 0.9 * VICTIM_GBIT),
        Claim("DCQCN: sum at the receiver", "> 39 Gbit/s", f"{near + 3 * far:.1f} Gbit/s", near + 3 * far > 39),
    ]
    return found


def plot(pyplot, results):
    figure, axes = pyplot.subplots(figsize=(7, 4))
    names = ["each far sender", "near sender", "victim"]
    for offset, (point, label) in enumerate((("pfc", "PFC alone"), ("dcqcn", "PFC and DCQCN"))):
        axes.bar([i + 0.4 * offset for i in range(3)], rates_gbit(results[point]), width=0.4, label=label)
    axes.set_xticks([i + 0.2 for i in range(3)], names)
    axes.set_ylabel("Gbit/s on the wire")
    axes.legend()
    axes.grid(True, axis="y", alpha=0.3)
    return figure
