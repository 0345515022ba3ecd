"""perftest, rping and UCX over bad links: they do what they promise, and the NIC's counters are the
evidence that there was something to overcome."""
import re

import pytest

MIB = 1 << 20


def perftest(nic, program, *options, **arguments):
    """Both ends of a program of perftest, on two devices; what is not default is in `options`."""
    common = [program, "-p", str(nic.tcp_port()), "-x", "1", "-F", *options]
    return nic.run_pair([*common, "-d", "rocemu0"], [*common, "-d", "rocemu1", "localhost"], **arguments)


def iterations(result):
    """What the row of figures says: size, iterations, peak, average, message rate. On a busy machine perftest fails to
    measure its clock, and says 0 for the rates."""
    rows = [line.split() for line in result.stdout.splitlines()]
    figures = [row for row in rows if len(row) == 5 and all(re.fullmatch(r"[\d.]+", word) for word in row)]
    assert figures, str(result)
    return int(figures[-1][1])


@pytest.mark.programs("ib_send_bw", "ib_write_bw", "ib_read_bw")
@pytest.mark.parametrize("impair", ["none", "loss=2%", "reorder=2%", "dup=2%", "corrupt=2%"])
@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_read_bw"])
def test_data_arrives_over_a_bad_link(rocemu_nic, program, impair):
    nic = rocemu_nic(impair=impair)
    pair = perftest(nic, program, "-s", "65536", "-n", "200")
    assert iterations(pair.client) == 200

    server, client = (nic.status()[number].counters for number in (0, 1))
    receiver = client if program == "ib_read_bw" else server
    assert receiver.rx_payload_bytes >= 200 * 65536
    overcome = sum(end.retransmitted_frames + end.duplicate_requests for end in (server, client))
    assert (overcome > 0) == (impair != "none")
    links = nic.links()
    assert any(link.lost for link in links) == impair.startswith("loss")
    assert any(link.duplicated for link in links) == impair.startswith("dup")
    assert any(link.corrupted for link in links) == impair.startswith("corrupt")
    assert server.completions_with_error == client.completions_with_error == 0


@pytest.mark.programs("rping")
def test_rping_outlives_a_link_that_goes_down_and_up(rocemu_nic):
    nic = rocemu_nic()
    with nic.start("rping -s -a 10.77.0.1") as server:
        nic.wait_listening(server)
        with nic.start("rping -c -I 10.77.0.2 -a 10.77.0.1 -C 100000 -v") as client:
            nic.wait_until(lambda s: s["rocemu1"].counters.rx_payload_bytes > 0)
            for _ in range(3):
                before = nic.status()
                with nic.cut("rocemu0"):
                    nic.wait_until(lambda s: s["rocemu1"].counters.early_retransmissions
                                   + s["rocemu0"].counters.early_retransmissions
                                   > before["rocemu1"].counters.early_retransmissions
                                   + before["rocemu0"].counters.early_retransmissions)
                after = nic.status()
                nic.wait_until(lambda s: s["rocemu1"].counters.rx_payload_bytes
                               > after["rocemu1"].counters.rx_payload_bytes)
            assert client.poll() is None and server.poll() is None
            assert nic.status()["rocemu1"].counters.completions_with_error == 0


@pytest.mark.programs("ib_write_bw")
def test_perftest_says_that_its_peer_is_out_of_reach(rocemu_nic):
    nic = rocemu_nic()
    common = ["ib_write_bw", "-p", str(nic.tcp_port()), "-x", "1", "-F", "-u", "8", "-D", "60"]
    with nic.start([*common, "-d", "rocemu0"]) as server:
        nic.wait_listening(server)
        with nic.start([*common, "-d", "rocemu1", "localhost"]) as client:
            nic.wait_until(lambda s: s["rocemu1"].counters.tx_payload_bytes > MIB)
            nic.cut("rocemu0")
            result = client.wait(30, expect=None)
    assert result.status != 0
    assert "status 12" in result.output  # IBV_WC_RETRY_EXC_ERR
    counters = nic.status()["rocemu1"].counters
    assert counters.completions_with_error > 0 and counters.ack_timeouts > 0


@pytest.mark.programs("ib_write_bw")
def test_each_queue_pair_has_its_share(rocemu_nic):
    nic = rocemu_nic()
    common = ["ib_write_bw", "-p", str(nic.tcp_port()), "-x", "1", "-F", "-q", "4", "-D", "60"]
    with nic.start([*common, "-d", "rocemu0"]) as server:
        nic.wait_listening(server)
        with nic.start([*common, "-d", "rocemu1", "localhost"]):
            qps = nic.wait_until(
                lambda s: s["rocemu1"].qps if len(s["rocemu1"].qps) == 4 and
                all(qp.counters.tx_payload_bytes > 16 * MIB for qp in s["rocemu1"].qps) else None, 30)
    assert {(qp.service, qp.state) for qp in qps} == {("RC", "RTS")}
    shares = [qp.counters.tx_payload_bytes for qp in qps]
    assert max(shares) < 2 * min(shares)


@pytest.mark.programs("ucx_perftest")
@pytest.mark.parametrize("test", ["tag_lat", "ucp_put_bw", "ucp_get"])
def test_ucx_over_loss(rocemu_nic, test):
    nic = rocemu_nic(impair="loss=1%")
    if "rc_verbs" not in nic.run("ucx_info -d").stdout:
        pytest.skip("UCX has no verbs here: its module libuct_ib is missing")
    # One that was built with MPI, as Debian 13's is, is a program of MPI unless told otherwise.
    alone = "-P 0 " if "-P <0|1>" in nic.run("ucx_perftest -h").stdout else ""
    ucx = f"ucx_perftest {alone}-p {nic.tcp_port()}"
    pair = nic.run_pair(f"env UCX_NET_DEVICES=rocemu0:1 {ucx}",
                        f"env UCX_NET_DEVICES=rocemu1:1 {ucx} -t {test} -n 2000 -w 10 -s 4096 localhost",
                        env={"UCX_TLS": "rc_verbs,ud_verbs:aux"})
    assert "Final:" in pair.client.stdout
    assert sum(device.counters.retransmitted_frames for device in nic.status().devices) > 0
