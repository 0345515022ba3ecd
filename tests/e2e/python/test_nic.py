"""NICs: made, looked at, changed, and gone."""
import os
import signal
import subprocess
import sys
import time

import pytest

import rocemu


def alive(pid):
    try:
        os.kill(pid, 0)
        return open(f"/proc/{pid}/stat").read().split(") ")[1][0] != "Z"
    except OSError:
        return False


def gone(*pids, timeout=20):
    rocemu.wait_until(lambda: not any(map(alive, pids)), timeout, what=f"{pids} to end")
    return True


def test_a_nic_has_its_devices_and_leaves_nothing():
    with rocemu.Nic(devices=3) as nic:
        status = nic.status()
        assert [device.name for device in status.devices] == ["rocemu0", "rocemu1", "rocemu2"]
        assert status["rocemu1"].ipv4 == "10.77.0.2"
        assert nic.run("ibv_devices").stdout.count("rocemu") == 3
        assert nic.state_dir.is_dir()
    assert nic.closed
    assert not nic.state_dir.exists()
    assert gone(status.pid)
    nic.close()
    with pytest.raises(rocemu.NicLost, match="has been closed"):
        nic.status()


def test_nics_at_the_same_time_do_not_meet():
    with rocemu.Nic() as one, rocemu.Nic(devices=1) as other:
        assert one.state_dir != other.state_dir
        assert one.run("ibv_devices").stdout.count("rocemu") == 2
        assert other.run("ibv_devices").stdout.count("rocemu") == 1


def test_what_rocemu_refuses_is_said():
    with pytest.raises(rocemu.CommandFailed, match="loss: '1' has no unit") as caught:
        rocemu.Nic(impair="loss=1")
    assert caught.value.status != 0
    with pytest.raises(rocemu.CommandFailed, match="a number from 1 on is wanted"):
        rocemu.Nic(devices=0)


def test_options_of_every_kind(tmp_path):
    config = tmp_path / "nic.toml"
    config.write_text("[limits]\nmax_qp = 16\n")
    with rocemu.Nic(2, impair=["loss=1%", "rocemu1.rx:delay=5us"], config=config, recovery="selective-repeat",
                    log_level="debug", options=["--congestion", "dcqcn"]) as nic:
        assert (nic.link("rocemu0").spec, nic.link("rocemu1", "rx").spec) == ("loss=1%", "delay=5us")
        assert "max_qp:\t\t\t\t16" in nic.run("ibv_devinfo -v -d rocemu0").stdout
        assert nic.status().json["devices"][0]["congestion_control"]["algorithm"] == "dcqcn"


def test_the_wire_is_recorded(tmp_path, needs):
    needs("ibv_rc_pingpong")
    with rocemu.Nic(pcap=tmp_path / "wire.pcap") as nic:
        port = nic.tcp_port()
        nic.run_pair(f"ibv_rc_pingpong -p {port} -d rocemu0 -g 1 -n 10",
                     f"ibv_rc_pingpong -p {port} -d rocemu1 -g 1 -n 10 localhost")
    assert nic.pcap == tmp_path / "wire.pcap"
    assert nic.pcap.stat().st_size > 1000


def test_links(nic):
    assert nic.link("rocemu0").spec == "none"
    with nic.impair("rocemu0", "loss=5%"):
        assert nic.link("rocemu0").spec == "loss=5%"
        with nic.cut("rocemu0"):
            assert [nic.link("rocemu0", d).spec for d in ("tx", "rx")] == ["loss=100%", "loss=100%"]
        assert [nic.link("rocemu0", d).spec for d in ("tx", "rx")] == ["loss=5%", "none"]
    assert nic.link("rocemu0").spec == "none"
    with nic.impair("all", "delay=1us", "both"):
        assert {link.spec for link in nic.links()} == {"delay=1us"}
    # Each device's link is whole again at once.
    assert "link rocemu1.both:none" in nic.log() and "link rocemu1.rx:none" not in nic.log()
    assert nic.status()["rocemu0"].impairments == rocemu.Impairments(None, None)
    nic.cut("rocemu1")
    nic.mend()
    assert {link.spec for link in nic.links()} == {"none"}
    with pytest.raises(rocemu.CommandFailed, match="no device 'rocemu7'"):
        nic.impair("rocemu7", "loss=1%")
    with pytest.raises(LookupError):
        nic.link("rocemu7")


def test_a_nic_that_somebody_else_started(nic):
    same = rocemu.RunningNic(socket=nic.state_dir / "nic.sock")
    assert same.name == nic.name
    assert same.run("ibv_devices").stdout.count("rocemu") == 2
    with pytest.raises(rocemu.CommandFailed, match="no NIC named 'nobody' is up"):
        rocemu.RunningNic("nobody")
    # In a program that a NIC is shown to, that NIC is meant.
    inside = nic.run([sys.executable, "-c", "import rocemu; print(rocemu.RunningNic().name)"])
    assert inside.stdout.strip() == nic.name


def test_a_nic_that_dies_is_named_in_every_error(nic):
    daemon = nic.status().pid
    os.kill(daemon, signal.SIGKILL)
    gone(daemon)
    with pytest.raises(rocemu.NicLost, match=r"\(rocemud, process \d+\) ended .* signal 9"):
        nic.status()


# Popen returns when the new process is in a session of its own.
LEAVING = """
import subprocess
null = subprocess.DEVNULL
print(subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=null, stderr=null).pid)
"""


def test_processes_that_a_program_left_are_killed_and_told():
    with pytest.warns(ResourceWarning, match="1 processes still ran on the NIC"):
        with rocemu.Nic() as nic:
            left = int(nic.run([sys.executable, "-c", LEAVING]).stdout)
            assert alive(left)
    assert gone(left)


CRASHING = """
import os, signal, sys, rocemu
nic = rocemu.Nic()
program = nic.start(["sh", "-c", "setsid sleep 1000 & exec sleep 1000"])
print(nic.status().pid, program.pid, nic.state_dir, flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(1)", "os.abort()",
                                 "raise SystemExit(1)", "1 / 0"])
def test_nothing_is_left_of_a_test_that_crashes(end):
    crashed = subprocess.run([sys.executable, "-c", CRASHING.format(end=end)], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, timeout=60, check=False)
    assert crashed.returncode != 0
    daemon, program, state_dir = crashed.stdout.split(" ", 2)
    assert gone(int(daemon), int(program))
    rocemu.wait_until(lambda: not os.path.exists(state_dir.strip()), what=f"{state_dir} to be removed")
    assert not [pid for pid in filter(str.isdigit, os.listdir("/proc")) if names(pid, state_dir.strip())]


def names(pid, state_dir):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"ROCEMU_DIR=" + state_dir.encode() in file.read().split(b"\0")
    except OSError:
        return False


def test_a_fork_of_the_test_does_not_end_the_nic(nic):
    child = os.fork()
    if child == 0:
        nic.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert nic.status().devices


def test_a_fork_that_lives_on_does_not_keep_the_nic():
    nic = rocemu.Nic()
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        daemon = nic.status().pid
        nic.close()
        assert gone(daemon)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_tcp_ports_are_given_once(nic):
    with rocemu.Nic() as other:
        ports = [source.tcp_port() for source in (nic, other) for _ in range(50)]
    assert len(set(ports)) == len(ports)
