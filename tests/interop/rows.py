"""What is run between the NIC and rxe: a row is a program with its options. Each row is run twice, with the NIC's
host as the server and with rxe's.

{device}, {gid} and {own} in a command are of the side it runs on, {own} its address of the row's IP version, {peer} the
server's. Programs that meet over TCP find each other by the IPv4 address, {host}."""
import dataclasses
import re

LARGE_MTU, SMALL_MTU = 4200, 1500  # of the interfaces; the path MTU becomes 4096 and 1024


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    server: str
    client: str
    listens: str = "tcp"  # or "cm": how the server shows that it is ready; or the group that it has joined then
    tcp_port: int = 18515
    stays: bool = False  # the server does not end by itself
    ip: int = 4
    mtu: int = LARGE_MTU
    loss: bool = False
    short: bool = False  # part of the short form
    udp: bool = True  # also over UDP sockets
    seconds: int = 120  # until it must have ended

    def vlan(self):
        """Also over a VLAN, with the NIC in the virtual machine, too."""
        return self.short and not self.loss

    def title(self):
        where = f"IPv{self.ip}, path MTU {4096 if self.mtu == LARGE_MTU else 1024}"
        return f"{self.name}, {where}{', 1 % loss' if self.loss else ''}"


def by_tcp(program, options, **more):
    words = f"{program} -d {{device}} {options}"
    return Row(f"{program} {options.replace('-g {gid}', '').replace('-x {gid} -F -u 18', '')}".replace("  ", " ").strip(),
               words, f"{words} {{host}}", **more)


def pingpong(service, options="", **more):
    return by_tcp(f"ibv_{service}_pingpong", f"-g {{gid}} {options}".strip(), **more)


def perftest(program, options, **more):
    # -u: an ACK timeout of 1 s, since the emulated machine may need a while for a window of packets.
    return by_tcp(program, f"-x {{gid}} -F -u 18 {options}", **more)


def perftest_cm(program, options, **more):
    words = f"{program} -R -F {options}"
    return Row(words, words, f"{words} {{peer}}", listens="cm", **more)


def rdmacm(program, server_options, client_options, **more):
    # Only rping says where the server is by -a, and wants -s and -c.
    server, client = ("-s -a {peer}", "-c -a {peer}") if program == "rping" else ("-b {peer}", "-s {peer}")
    return Row(f"{program} {client_options}".strip(), f"{program} {server} {server_options}".strip(),
               f"{program} {client} {client_options}".strip(), listens="cm", **more)


def pingpongs():
    for mtu in (LARGE_MTU, SMALL_MTU):
        for ip in (4, 6):
            place = {"mtu": mtu, "ip": ip}
            path_mtu = 4096 if mtu == LARGE_MTU else 1024
            yield pingpong("rc", f"-m {path_mtu} -s 10000 -n 100 -c", short=(mtu, ip) != (SMALL_MTU, 6), **place)
            yield pingpong("uc", f"-m {path_mtu} -s 10000 -n 100 -c", **place)
            yield pingpong("ud", "-s 900 -n 100", short=place == {"mtu": LARGE_MTU, "ip": 4}, **place)
            yield pingpong("srq", f"-m {path_mtu} -s 10000 -n 100 -c", **place)


def perftests():
    for operation in ("send", "write", "read"):
        yield perftest(f"ib_{operation}_bw", "-s 65536 -n 100", short=operation == "write")
        yield perftest(f"ib_{operation}_lat", "-s 64 -n 100")
    for operation in ("send", "write", "read"):
        yield perftest(f"ib_{operation}_bw", "-s 100001 -n 20", mtu=SMALL_MTU, ip=6)
        yield perftest(f"ib_{operation}_bw", "-a -n 5", mtu=SMALL_MTU, ip=6, seconds=400)
    # What four QPs may have under way would not fit into the tap's queue of 1000 frames.
    yield perftest("ib_write_bw", "-s 16384 -n 50 -q 4")
    yield perftest("ib_write_bw", "-s 65536 -n 50 -b")
    yield perftest("ib_send_bw", "-s 16384 -n 50 -b -e")
    yield perftest("ib_send_bw", "-s 16384 -n 100 --use-srq")
    for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
        yield perftest("ib_atomic_bw", f"-A {kind} -n 100", short=kind == "CMP_AND_SWAP")
        yield perftest("ib_atomic_lat", f"-A {kind} -n 100")
    yield perftest("ib_send_bw", "-c UD -s 1024 -n 100")
    yield perftest("ib_send_lat", "-c UD -s 64 -n 100")
    yield perftest("ib_send_bw", "-c UC -s 16384 -n 100")
    yield perftest("ib_write_bw", "-c UC -s 16384 -n 100")
    yield perftest("ib_write_lat", "-c UC -s 64 -n 100")
    for program in ("ib_write_bw", "ib_send_lat", "ib_read_bw"):
        yield perftest_cm(program, "-s 4096 -n 100")


def connections():
    for ip in (4, 6):
        for mtu in (LARGE_MTU, SMALL_MTU):
            yield rdmacm("rping", "-C 10 -V -S 5000", "-C 10 -V -S 5000", ip=ip, mtu=mtu,
                         short=(ip, mtu) == (4, LARGE_MTU))
    for ip in (4, 6):
        yield rdmacm("ucmatose", "", "", ip=ip)
        yield rdmacm("udaddy", "", "", ip=ip, short=ip == 4)
        yield rdmacm("cmtime", "", "-c 20", ip=ip, stays=True)
    yield rdmacm("ucmatose", "-c 20 -C 5", "-c 20 -C 5")
    # Not by UDP sockets, which take part in no group; not of IPv6, of which Linux joins no group over RoCE (ENOTSUPP).
    group = "239.77.0.1"
    words = f"mckey -m {group} -b {{own}}"
    yield Row(f"mckey -m {group}", words, words + " -s", listens=group, udp=False)
    yield Row("rdma_client", "rdma_server -s {peer}", "rdma_client -s {peer}", listens="cm")


def with_loss():
    # No ibv_rc_pingpong, which ends when it has all it wants, be its last ACK lost or not: the peer then fails, or, with
    # rxe, to which a retry_cnt of 7 is "for ever", goes on asking.
    for operation in ("send", "write", "read"):
        yield perftest(f"ib_{operation}_bw", "-s 65536 -n 50", loss=True, short=operation == "write")
    yield perftest("ib_write_bw", "-s 65536 -n 30", loss=True, mtu=SMALL_MTU)
    yield perftest("ib_atomic_bw", "-n 100", loss=True)
    yield rdmacm("rping", "-C 20 -V -S 5000", "-C 20 -V -S 5000", loss=True, short=True)
    yield rdmacm("ucmatose", "-C 20 -S 5000", "-C 20 -S 5000", loss=True)


ROWS = [*pingpongs(), *perftests(), *connections(), *with_loss()]

# Of the rows for short runs, those on a VLAN, which differs in each frame's header alone.
SHORT_VLAN_ROWS = re.compile("ibv_rc_pingpong.*IPv4.*4096")

# Of interop_scenario --list; what the ends see must be what two rxe see.
SHORT_SCENARIOS = ["cas", "read-wrong-key", "send-rnr", "send-too-long"]
