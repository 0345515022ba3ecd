#!/usr/bin/env python3
"""The rocemu command as a process: statuses, signals, state directories, a misbehaving daemon.

Usage: processes_test.py ROCEMU_EXECUTABLE
The daemon is fake_rocemud.py, put beside a copy of the executable.
"""

import json
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

EXECUTABLE = os.path.abspath(sys.argv.pop(1))
FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_rocemud.py")
WAIT_S = 10


def eventually(condition):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


class Processes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="rocemu-cli-")
        cls.addClassCleanup(shutil.rmtree, folder)
        # The loader only warns about a preload library it cannot use, so build a real, empty one.
        cls.library = os.path.join(folder, "empty.so")
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", cls.library], check=True)

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="rocemu-cli-")
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("bin", "lib", "runtime"):
            os.mkdir(os.path.join(self.root, folder), 0o700)
        self.rocemu = shutil.copy(EXECUTABLE, os.path.join(self.root, "bin/rocemu"))
        shutil.copy(FAKE, os.path.join(self.root, "bin/rocemud"))
        for library in ("librocemu-preload.so", "librocemu-rdmav34.so"):
            shutil.copy(self.library, os.path.join(self.root, "lib", library))
        self.base = os.path.join(self.root, "runtime/rocemu")
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith("ROCEMU_") and k != "LD_PRELOAD"}
        self.environment["PATH"] = "/usr/bin:/bin"  # folders one may not search change an error
        self.environment["XDG_RUNTIME_DIR"] = os.path.join(self.root, "runtime")

    def start(self, *arguments, mode="", **options):
        return subprocess.Popen([self.rocemu, *arguments], text=True, cwd=self.root,
                                env=dict(self.environment, FAKE_ROCEMUD=mode),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def rocemu_does(self, *arguments, code=0, **options):
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, (arguments, out, err))
        own = [line for line in err.splitlines() if not line.startswith("[server] ")]
        self.assertLessEqual(len(own), 1, err)
        return out, err

    def code_of(self, *arguments):
        process = self.start(*arguments)
        process.communicate(timeout=60)
        return process.returncode

    def state_dirs(self):
        return [d for d in os.listdir(self.base) if d != ".lock"] if os.path.isdir(self.base) else []

    def daemons(self):
        """Process ids of the fake daemons of this test."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if os.path.join(self.root, "bin/rocemud").encode() in file.read():
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def assert_nothing_left(self):
        self.assertEqual(self.state_dirs(), [])
        self.assertEqual(self.daemons(), [])

    # ---- run ----

    def test_status_is_handed_on(self):
        for code in (0, 7, 125):
            self.rocemu_does("run", "--", "sh", "-c", f"exit {code}", code=code)
        self.rocemu_does("run", "--", "sh", "-c", "kill -9 $$", code=137)
        self.assert_nothing_left()

    def test_program_that_cannot_run(self):
        _, err = self.rocemu_does("run", "--", "no-such-program", code=127)
        self.assertIn("not found", err)
        _, err = self.rocemu_does("run", "--", "/etc/passwd", code=126)
        self.assertIn("Permission denied", err)
        self.assert_nothing_left()

    def test_program_sees_the_nic_and_stdin(self):
        process = self.start("run", "--", "sh", "-c", 'cat; echo "$ROCEMU_DIR $LD_PRELOAD"; ls '
                             '"$ROCEMU_DIR/sys/class/infiniband"', stdin=subprocess.PIPE)
        out, err = process.communicate("typed\n", timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        lines = out.split("\n")
        self.assertEqual(lines[0], "typed")
        self.assertTrue(lines[1].startswith(self.base + "/run-"), lines[1])
        self.assertTrue(lines[1].endswith(self.root + "/lib/librocemu-preload.so"), lines[1])
        self.assertEqual(lines[2:4], ["rocemu0", "rocemu1"])

    def test_version_says_which_json_is_spoken(self):
        out, _ = self.rocemu_does("version", "--json")
        self.assertEqual(list(json.loads(out)), ["version", "rdma_core_private_abis", "abi_version", "json_version"])

    def test_signals_are_forwarded(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            process = self.start("run", "--", "sh", "-c", "echo up; exec sleep 60")
            self.assertEqual(process.stdout.readline(), "up\n")
            process.send_signal(number)
            process.communicate(timeout=WAIT_S)
            self.assertEqual(process.returncode, 128 + number)
        self.assert_nothing_left()

    def test_terminal_interrupt_reaches_the_program_once(self):
        program = ("import signal, time; hits = []\n"
                   "signal.signal(signal.SIGINT, lambda *_: hits.append(1))\n"
                   "print('up', flush=True); time.sleep(1); print('hits', len(hits), flush=True)")
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(self.environment)
            os.execv(self.rocemu, [self.rocemu, "run", "--", sys.executable, "-c", program])
        text = b""
        try:
            while True:
                text += os.read(terminal, 1000)
                if text.endswith(b"up\r\n"):
                    os.write(terminal, b"\x03")
        except OSError:
            pass  # the terminal's other end is closed
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, text)
        os.close(terminal)
        self.assertIn(b"hits 1\r\n", text)
        self.assert_nothing_left()

    def test_hang_up_ends_a_leader_of_a_session_and_its_program(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(self.environment)
            os.execv(self.rocemu, [self.rocemu, "run", "--", "sh", "-c", "echo up $$; exec sleep 60 < /dev/null"])
        text = b""
        while b"\n" not in text:
            text += os.read(terminal, 1000)
        program = int(text.split()[1])
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 128 + signal.SIGHUP)
        self.assertTrue(eventually(lambda: not os.path.exists(f"/proc/{program}")))
        self.assert_nothing_left()

    def test_a_reader_that_goes_away_ends_nothing(self):
        server = ("import socket; taker = socket.create_server(('127.0.0.1', 0)); taker.settimeout(0.01); end = None\n"
                  "open('port', 'w').write(str(taker.getsockname()[1]))\n"
                  "while end is None:\n"
                  "    print('waits', flush=True)\n"
                  "    try: end = taker.accept()\n"
                  "    except TimeoutError: pass")
        client = "import socket, time; time.sleep(0.5); socket.create_connection(('127.0.0.1', int(open('port').read())))"
        process = self.start("run", "--server", f"{sys.executable} -c {shlex.quote(server)}", "--", sys.executable, "-c", client)
        self.assertEqual(process.stderr.readline(), "[server] waits\n")
        process.stderr.close()
        self.assertEqual(process.wait(WAIT_S), 0)
        self.assert_nothing_left()

    def test_whose_session_the_nic_is_of(self):
        """That of its programs, where it ends with them; terminals' signals are not for it. Else one of its own."""
        shown = 'read pid < "$ROCEMU_DIR/pid"; echo $pid; cut -d " " -f 5,6 "/proc/$pid/stat"'
        out, _ = self.rocemu_does("run", "--", "sh", "-c", shown)
        pid, group, session = map(int, out.split())
        self.assertEqual((group, session), (pid, os.getsid(0)))
        self.rocemu_does("up")
        self.addCleanup(lambda: self.start("down").communicate())
        out, _ = self.rocemu_does("exec", "--", "sh", "-c", shown)
        pid, group, session = map(int, out.split())
        self.assertEqual((group, session), (pid, pid))

    def test_kill_9_takes_the_nic_along_and_the_next_start_cleans(self):
        process = self.start("run", "--", "sh", "-c", "echo $$; exec sleep 60")
        program = int(process.stdout.readline())
        process.kill()
        process.communicate()
        self.assertTrue(eventually(lambda: not os.path.exists(f"/proc/{program}")))
        self.assertTrue(eventually(lambda: self.daemons() == []))
        self.assertEqual(len(self.state_dirs()), 1)
        self.rocemu_does("run", "--", "true")
        self.assert_nothing_left()

    def test_leaves_no_zombies_to_whoever_is_first_in_a_container(self):
        for words in (["run"], ["run", "--server", "true"]):
            adopted = ("import ctypes, os, subprocess, sys\n"
                       "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"  # PR_SET_CHILD_SUBREAPER
                       "subprocess.run(sys.argv[1:])\n"
                       "try: print('left:', os.waitpid(-1, 0))\n"
                       "except ChildProcessError: print('nothing')")
            out = subprocess.run([sys.executable, "-c", adopted, self.rocemu, *words, "--", "true"], env=self.environment,
                                 text=True, stdout=subprocess.PIPE, timeout=60, check=True).stdout
            self.assertEqual(out, "nothing\n", words)

    def test_recording_that_ended_is_told(self):
        _, err = self.rocemu_does("run", "--pcap", "x.pcap", "--", "true", mode="diskfull")
        self.assertEqual(err, "rocemu: capture file /x.pcap: No space left on device; recording has ended\n")

    def test_words_before_the_command(self):
        for words in (["foo", "run"], ["--foo", "run", "--", "true"], ["help", "exec"], ["foo", "exec", "--", "true"]):
            _, err = self.rocemu_does(*words, code=125)
            self.assertIn(words[0], err)

    def test_output_that_cannot_be_written(self):
        for words in (["version"], ["--help"], ["up"], ["trace", "--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([self.rocemu, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                                      env=self.environment)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("can't write the output: No space left on device\n", done.stderr)
        self.assert_nothing_left()

    def test_lost_daemon_is_said_in_one_line(self):
        out, err = self.rocemu_does("run", "--", "sh", "-c", "sleep 1; exit 4", code=4,
                                    mode="crash")
        self.assertIn("signal 9", err)
        self.assertIn("fake: about to crash", err)
        self.assert_nothing_left()

    def test_daemon_that_refuses(self):
        _, err = self.rocemu_does("run", "--", "true", code=125, mode="refuse")
        self.assertIn("the moon is in the wrong phase; wait", err)
        self.rocemu_does("up", code=2, mode="refuse")
        self.assert_nothing_left()

    def test_kept_log(self):
        _, err = self.rocemu_does("run", "--keep-log", "--", "true")
        with open(os.path.join(self.root, err.split()[-1]), encoding="utf-8") as log:
            self.assertIn("fake: started", log.read())

    def test_shared_memory(self):
        program = ("--", "sh", "-c", "echo $ROCEMU_SHARE_MEMORY")
        self.assertEqual(self.rocemu_does("run", *program)[0], "\n")
        self.assertEqual(self.rocemu_does("run", "--share-memory", *program)[0], "1\n")
        self.rocemu_does("up")
        self.addCleanup(lambda: self.start("down").communicate())
        self.assertEqual(self.rocemu_does("exec", *program)[0], "\n")
        self.assertEqual(self.rocemu_does("exec", "--share-memory", *program)[0], "1\n")
        self.rocemu_does("down")

    def test_nested_runs(self):
        out, _ = self.rocemu_does("run", "--", self.rocemu, "run", "--devices", "3", "--", "sh", "-c",
                                  'echo $LD_PRELOAD; ls $ROCEMU_DIR/sys/class/infiniband')
        self.assertEqual(out.split(), [self.root + "/lib/librocemu-preload.so",
                                       "rocemu0", "rocemu1", "rocemu2"])
        self.assert_nothing_left()

    def test_foreign_base_is_refused(self):
        os.mkdir(self.base)
        os.chmod(self.base, 0o777)
        _, err = self.rocemu_does("run", "--", "true", code=125)
        self.assertIn("can be written by other users", err)

    # ---- run --server ----

    # A server that listens a moment after it has started, takes one connection and ends.
    SERVER = ("import socket, sys, time; print('begins'); time.sleep(0.3)\n"
              "s = socket.create_server(('127.0.0.1', 0)); open('port', 'w').write(str(s.getsockname()[1]))\n"
              "c = s.accept()[0]; print('said:', c.recv(100).decode(), file=sys.stderr, end='')\n"
              "sys.exit({code})")
    CLIENT = ("import socket, sys\n"
              "socket.create_connection(('127.0.0.1', int(open('port').read()))).sendall(b'hello')\n"
              "print('sent'); sys.exit({code})")

    def pair(self, server_code=0, client_code=0, **options):
        with open(os.path.join(self.root, "server.py"), "w", encoding="utf-8") as file:
            file.write(self.SERVER.format(code=server_code))
        return self.rocemu_does("run", "--server", f"{sys.executable} server.py", "--",
                                sys.executable, "-c", self.CLIENT.format(code=client_code), **options)

    def test_client_starts_when_the_server_listens(self):
        out, err = self.pair()
        self.assertEqual(out, "sent\n")
        self.assertEqual(sorted(err.splitlines()), ["[server] begins", "[server] said: hello"])
        self.assert_nothing_left()

    def test_both_exit_codes_count(self):
        self.pair(client_code=3, code=3)
        _, err = self.pair(server_code=4, code=4)
        self.assertIn("the server ended with exit code 4", err)
        self.pair(server_code=4, client_code=3, code=3)
        self.assert_nothing_left()

    def test_server_that_never_listens(self):
        out, err = self.rocemu_does("run", "--server", "echo oh; exit 6", "--", "echo", "client", code=6)
        self.assertEqual(out, "")
        self.assertIn("[server] oh\n", err)
        self.assertIn("the server ended with exit code 6 before it listened", err)
        self.rocemu_does("run", "--server", "true", "--", "true", code=125)
        _, err = self.rocemu_does("run", "--server", "no-such-program", "--", "true", code=127)
        self.assertIn("no-such-program", err)
        self.rocemu_does("run", "--server", "", "--", "true", code=125)
        self.assert_nothing_left()

    def test_client_that_cannot_run_takes_the_server_along(self):
        with open(os.path.join(self.root, "server.py"), "w", encoding="utf-8") as file:
            file.write(self.SERVER.format(code=0))
        _, err = self.rocemu_does("run", "--server", f"{sys.executable} server.py; true", "--",
                                  "no-such-program", code=127)
        self.assertIn("not found", err)
        self.assert_nothing_left()

    def test_signals_reach_server_and_client(self):
        with open(os.path.join(self.root, "server.py"), "w", encoding="utf-8") as file:
            file.write(self.SERVER.format(code=0))
        process = self.start("run", "--server", f"{sys.executable} server.py", "--", "sh", "-c",
                             "echo up; exec sleep 60")
        while process.stdout.readline() != "up\n":
            pass
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assert_nothing_left()

    # ---- up, exec, status, env, down ----

    def test_life_of_a_named_nic(self):
        out, _ = self.rocemu_does("up", "--name", "lab", "--devices", "3")
        self.assertEqual(out, "NIC 'lab' is up: rocemu0 rocemu1 rocemu2\n")
        self.addCleanup(lambda: self.start("down", "--name", "lab").communicate())
        _, err = self.rocemu_does("up", "--name", "lab", code=3)
        self.assertIn("rocemu down --name lab", err)

        out, _ = self.rocemu_does("exec", "--name", "lab", "--", "sh", "-c", "echo $ROCEMU_DIR")
        self.assertEqual(out, self.base + "/lab\n")
        sock = self.base + "/lab/nic.sock"
        self.rocemu_does("exec", "--socket", sock, "--", "sh", "-c", "exit 5", code=5)
        self.rocemu_does("exec", "--name", "lab", "--", "no-such-program", code=127)
        out, _ = self.rocemu_does("exec", "--name", "lab", "--", self.rocemu, "status", "--json")
        status = json.loads(out)
        self.assertEqual((status["name"], status["version"]), ("lab", "9.9"))
        self.assertIn("rocemu2", self.rocemu_does("status", "--name", "lab")[0])
        out, _ = self.rocemu_does("env", "--name", "lab")
        shell = subprocess.run(["sh", "-c", out + "echo $RDMAV_DRIVERS"], text=True, check=True,
                               stdout=subprocess.PIPE)
        self.assertEqual(shell.stdout, self.root + "/lib/librocemu\n")

        self.rocemu_does("up")
        self.environment["ROCEMU_DIR"] = self.base + "/lab"
        self.assertEqual(self.rocemu_does("down")[0], "NIC 'lab' is down\n")
        self.rocemu_does("down", code=3)
        other = os.path.join(self.root, "other")
        os.mkdir(other)
        for path in (other, ".", "/", self.base + "/../rocemu/.."):
            self.environment["ROCEMU_DIR"] = path
            self.assertIn("is not one that this user's rocemu up has started", self.rocemu_does("down", code=3)[1])
        self.assertTrue(os.path.isdir(other))
        self.environment.pop("ROCEMU_DIR")
        self.assertEqual(self.rocemu_does("run", "--", self.rocemu, "down")[0], "NIC 'default' is down\n")
        self.rocemu_does("up")
        self.environment["ROCEMU_DIR"] = self.base + "/default/"
        self.assertEqual(self.rocemu_does("down")[0], "NIC 'default' is down\n")
        self.environment.pop("ROCEMU_DIR")
        self.rocemu_does("down", "--name", "lab", code=3)
        self.rocemu_does("status", "--name", "lab", code=3)
        _, err = self.rocemu_does("exec", "--name", "lab", "--", "true", code=125)
        self.assertIn("rocemu up --name lab", err)
        self.assert_nothing_left()

    def test_up_in_json(self):
        out, _ = self.rocemu_does("up", "--json")
        self.addCleanup(lambda: self.start("down").communicate())
        report = json.loads(out)
        self.assertEqual(report["devices"], ["rocemu0", "rocemu1"])
        self.assertEqual(self.daemons(), [report["pid"]])
        self.rocemu_does("down")

    def test_nic_that_died_can_be_started_again(self):
        self.rocemu_does("up", mode="crash")
        # A process that has no command line any more may still have its socket.
        self.assertTrue(eventually(lambda: self.code_of("status") == 3))
        _, err = self.rocemu_does("status", code=3)
        self.assertIn(self.base + "/default/log", err)
        self.rocemu_does("up")
        self.rocemu_does("down")
        self.assert_nothing_left()

    def test_deaf_daemon_is_ended_by_signal(self):
        self.rocemu_does("up", mode="deaf")
        self.rocemu_does("status", code=1)
        self.rocemu_does("down")
        self.assert_nothing_left()

    def test_other_abi_is_said_with_both_versions(self):
        self.rocemu_does("up", mode="abi")
        _, err = self.rocemu_does("exec", "--", "true", code=125)
        self.assertIn("rocemud 9.9 with ABI 99", err)
        self.assertRegex(err, r"this is rocemu \S+ with ABI [0-9]+;")
        self.rocemu_does("down")
        self.assert_nothing_left()

    def test_wrong_sockets(self):
        self.rocemu_does("status", "--socket", "/etc/passwd", code=2)
        self.rocemu_does("status", "--socket", self.root + "/nic.sock", code=3)
        self.rocemu_does("up", "--name", "run-1", code=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
