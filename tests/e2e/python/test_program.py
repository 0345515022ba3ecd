"""Programs: their ends, their output, and what is said when they do not end."""
import os
import re
import shlex
import signal
import sys

import pytest

import rocemu


def test_a_program_sees_the_nic_and_what_it_is_given(nic, tmp_path):
    result = nic.run(["sh", "-c", "cat; pwd; echo $MINE $ROCEMU_DIR; echo said >&2"], input="read\n",
                     cwd=tmp_path, env={"MINE": "own"})
    assert result.stdout == f"read\n{tmp_path}\nown {nic.state_dir}\n"
    assert (result.stderr, result.status, result.was_ended) == ("said\n", 0, False)
    assert nic.run("echo 'a b'").stdout == "a b\n"


def test_another_status_than_expected(nic):
    with pytest.raises(rocemu.ProgramFailed) as caught:
        nic.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert "exit status 3" in str(caught.value)
    assert "stdout| out" in str(caught.value) and "stderr| err" in str(caught.value)
    assert caught.value.results[0].status == 3
    assert nic.run("sh -c 'exit 3'", expect=3).status == 3
    assert nic.run("false", expect=None).status == 1
    with pytest.raises(rocemu.ProgramFailed, match=r"ended by signal 9 \(SIGKILL\)"):
        nic.run(["sh", "-c", "kill -9 $$"])
    with pytest.raises(rocemu.ProgramFailed, match="cannot run 'no-such-program': "):
        nic.run("no-such-program")
    with pytest.raises(ValueError):
        nic.run([])


def test_a_program_that_does_not_end(nic):
    own_sleep = f"sleep 1000.{os.getpid()}"  # other tests sleep as well
    with pytest.raises(rocemu.ProgramTimeout) as caught:
        nic.run(["sh", "-c", f"echo working; {own_sleep} & wait"], timeout=0.5)
    text = str(caught.value)
    assert "did not end within 0.5 s" in text and "stdout| working" in text
    assert re.search(r"process \d+ (sleeping|running)", text)
    assert isinstance(caught.value, TimeoutError)
    assert own_sleep not in os.popen("ps -eo args").read().split("\n")


def test_a_timeout_says_what_the_nic_saw(nic, needs):
    needs("ibv_uc_pingpong")
    port = nic.tcp_port()
    nic.cut("rocemu0")
    with pytest.raises(rocemu.ProgramTimeout) as caught:
        nic.run_pair(f"ibv_uc_pingpong -p {port} -d rocemu0 -g 1",
                     f"ibv_uc_pingpong -p {port} -d rocemu1 -g 1 localhost", timeout=1)
    assert "NIC| rocemu" in str(caught.value) and "tx_frames" in str(caught.value)


def test_output_while_it_runs(nic):
    with nic.start(["sh", "-c", "echo ready at 17; exec sleep 1000"]) as program:
        assert program.wait_for_output(r"ready at (\d+)").group(1) == "17"
        assert (program.stdout, program.poll()) == ("ready at 17\n", None)
        with pytest.raises(rocemu.WaitTimeout, match="(?s)'never' in the output of sh .*stdout| ready"):
            program.wait_for_output("never", timeout=0.2)
        program.send_signal(signal.SIGTERM)
        assert program.wait(expect=-signal.SIGTERM).stdout == "ready at 17\n"
    with nic.start("echo over") as program:
        with pytest.raises(rocemu.WaitTimeout, match="(?s)'never' is not in the output of echo over.*exit status 0"):
            program.wait_for_output("never")


def test_an_end_takes_children_with_it(nic):
    program = nic.start(["sh", "-c", "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 1000'; sleep 1000"])
    child = int(program.wait_for_output(r"^(\d+)$").group(1))
    assert program.end().was_ended
    assert not os.path.exists(f"/proc/{child}") or "Z" in open(f"/proc/{child}/stat").read()


def test_more_output_than_a_pipe_holds(nic):
    script = "print('x' * 1000000); import sys; print('y' * 1000000, file=sys.stderr)"
    result = nic.run([sys.executable, "-c", script])
    assert (len(result.stdout), len(result.stderr)) == (1000001, 1000001)


def test_server_and_client_by_tcp(nic, needs):
    needs("ibv_rc_pingpong")
    port = nic.tcp_port()
    pair = nic.run_pair(f"ibv_rc_pingpong -p {port} -d rocemu0 -g 1 -n 10",
                        f"ibv_rc_pingpong -p {port} -d rocemu1 -g 1 -n 10 localhost")
    assert "10 iters" in pair.client.stdout and "10 iters" in pair.server.stdout


def test_server_and_client_by_the_connection_manager(nic, needs):
    needs("rping")
    pair = nic.run_pair("rping -s -a 10.77.0.1 -C 3", "rping -c -a 10.77.0.1 -C 3 -v")
    assert pair.client.stdout.count("ping data") == 3


def test_a_server_that_ends_before_it_listens(nic):
    with pytest.raises(rocemu.ProgramFailed, match="(?s)before it listened: sh .*exit status 4.*stderr. sorry"):
        nic.run_pair(["sh", "-c", "echo sorry >&2; exit 4"], "true")


LISTEN = "import socket, sys; server = socket.create_server(('localhost', 0))\n"


@pytest.fixture
def begun(tmp_path):
    """A file, and the code of a server that listens until a client has made it."""
    path = tmp_path / "begun"
    return path, f"{LISTEN}import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\n"


def begins(path, then):
    return ["sh", "-c", f"touch {shlex.quote(str(path))}; {then}"]


def test_a_client_is_not_waited_for_when_its_server_has_failed(nic, monkeypatch, begun):
    monkeypatch.setattr("rocemu._nic._ALONE_TIMEOUT_S", 0.2)
    path, serve = begun
    with pytest.raises(rocemu.ProgramFailed) as caught:
        nic.run_pair([sys.executable, "-c", serve + "sys.exit(1)"], begins(path, "exec sleep 1000"))
    server, client = caught.value.results
    assert (server.status, server.was_ended, client.was_ended) == (1, False, True)


def test_a_client_that_does_not_end(nic, begun):
    path, serve = begun
    with pytest.raises(rocemu.ProgramTimeout, match="(?s)sleep 1000' did not end within 2 s.*exit status 0"):
        nic.run_pair([sys.executable, "-c", serve], begins(path, "exec sleep 1000"), timeout=2)


def test_a_second_server_is_waited_for_as_well(nic, needs):
    needs("rping")
    with nic.start("rping -s -a 10.77.0.1 -P") as first, nic.start("sleep 1000") as none:
        nic.wait_listening(first)
        with nic.start("rping -s -a 10.77.0.2 -P") as second:
            nic.wait_listening(second)
            assert len(nic.status().connection_management.listeners) == 2
        assert none.poll() is None


def test_a_server_may_go_on(nic, monkeypatch):
    monkeypatch.setattr("rocemu._nic._ALONE_TIMEOUT_S", 0.2)
    pair = nic.run_pair([sys.executable, "-c", LISTEN + "import time; time.sleep(1000)"], "echo done")
    assert pair.server.was_ended and pair.client.stdout == "done\n"


def test_the_ends_of_a_pair_are_both_shown(nic, begun):
    path, serve = begun
    with pytest.raises(rocemu.ProgramFailed) as caught:
        nic.run_pair([sys.executable, "-c", serve + "sys.exit('server fails')"],
                     begins(path, "echo client fails; exit 6"))
    assert "exit status 6" in str(caught.value) and "client fails" in str(caught.value)
    assert "server fails" in str(caught.value)
    assert [result.status for result in caught.value.results] == [1, 6]


def test_waiting_for_what_does_not_come(nic):
    with pytest.raises(rocemu.WaitTimeout, match="sleep 1000 to listen"):
        with nic.start("sleep 1000") as program:
            nic.wait_listening(program, timeout=0.3)
