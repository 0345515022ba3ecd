"""DCQCN before a bottleneck: K senders, one receiver."""
from common.claims import Claim
from common.points import Point

SOURCE = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015 (7.1: K:1 incast, K = 2 to 20); " \
         "Zhu et al., ECN or Delay, CoNEXT 2016 (the fixed point of the queue)"

BOTTLENECK = "s0 h0"
WARM_NS = 50_000_000
LINK_GBIT = 40.0
PAYLOAD_SHARE = 1024 / (1024 + 58 + 24)  # of a frame of a WRITE's middle, with what it takes of the cable
KMIN, KMAX, PMAX = 5e3, 200e3, 0.01


def senders(small):
    return [2, 8] if small else [2, 4, 8, 10, 16, 20]


def points(small):
    few = {"duration": "40ms", "results.warmup": "20ms"} if small else {}
    return [Point(f"k{k}", "incast.toml", {"workload.incast.senders": k, **few}) for k in senders(small)]


def fixed_point_bytes(k):
    """Where the fluid model rests (CoNEXT 2016, 3.1): p* from the parameters, the queue from p* by the marking curve."""
    packet_bits = 1082 * 8
    capacity = LINK_GBIT * 1e9 / packet_bits  # all of it in packets and seconds
    increase = 40e6 / packet_bits
    timer, alpha_timer, byte_counter = 55e-6, 55e-6, 10e6 / 1082
    p = (increase * k * k / (alpha_timer * capacity ** 2) * (1 / byte_counter + k / (timer * capacity)) ** 2) ** (1 / 3)
    return KMIN + p * (KMAX - KMIN) / PMAX if p < PMAX else KMAX


def claims(results, small):
    found = []
    for k in senders(small):
        result = results[f"k{k}"]
        line_gbit = result.goodput_gbit("incast") / PAYLOAD_SHARE
        found.append(Claim(f"{k}:1, sum of all senders on the wire", "> 39 Gbit/s", f"{line_gbit:.2f} Gbit/s", line_gbit > 39))
        jain = result.fairness("incast")
        found.append(Claim(f"{k}:1, Jain's index after convergence", ">= 0.98", f"{jain:.4f}", jain >= 0.98))
        pauses = result.summary["network"]["pauses"]
        found.append(Claim(f"{k}:1, pauses", "none, with ECN before PFC", str(pauses), pauses == 0))
        if not small:
            expected = fixed_point_bytes(k) / 1e3
            queue = result.mean_queue_bytes(BOTTLENECK, WARM_NS) / 1e3
            found.append(Claim(f"{k}:1, mean queue", f"{expected:.0f} kB at the fixed point", f"{queue:.0f} kB",
                               abs(queue - expected) < 0.3 * expected))
    return found


def plot(pyplot, results):
    figure, (queues, fixed) = pyplot.subplots(1, 2, figsize=(10, 4))
    for k in (2, 8, 20):
        samples = results[f"k{k}"].queue(BOTTLENECK)
        queues.plot([at / 1e6 for at, _ in samples], [size / 1e3 for _, size in samples], label=f"{k}:1", linewidth=0.7)
    queues.set_xlabel("ms")
    queues.set_ylabel("queue before the receiver, kB")
    queues.legend()
    everyone = senders(False)
    fixed.plot(everyone, [fixed_point_bytes(k) / 1e3 for k in everyone], marker="s", label="fixed point, published")
    fixed.plot(everyone, [results[f"k{k}"].mean_queue_bytes(BOTTLENECK, WARM_NS) / 1e3 for k in everyone], marker="o",
               label="mean, rocemu")
    fixed.set_xlabel("senders")
    fixed.set_ylabel("kB")
    fixed.legend()
    for axes in (queues, fixed):
        axes.grid(True, alpha=0.3)
    return figure
