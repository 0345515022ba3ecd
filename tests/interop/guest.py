"""The virtual machine: qemu's software emulation, Debian's kernel with Soft RoCE on eth0, commands over a control
link of its own. It keeps nothing between boots."""
import base64
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from machine_kind import AMD64

BOOT_SECONDS = 180
STOP_SECONDS = 60
AGENT_PORT = 7000
END = re.compile(rb"\x1erc=(\d+)\n")


class GuestFailed(Exception):
    pass


class Command:
    """A command that runs in the guest. Its output is collected while somebody waits for it."""

    def __init__(self, guest, command):
        self.command = command
        self._guest = guest
        self._socket = socket.create_connection(("127.0.0.1", guest.port))
        self._socket.sendall(base64.b64encode(command.encode()) + b"\n")
        self._received = b""
        self._code = None

    def _receive(self, seconds):
        self._socket.settimeout(max(seconds, 0.001))
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            return
        except ConnectionError:
            data = b""
        self._received += data
        end = END.search(self._received)
        if end:
            self._code = int(end[1])
        elif not data:
            self._code = 255  # the guest went away
        if self._code is not None:
            self._socket.close()

    def output(self):
        _, _, text = self._received.partition(b"\n")
        return END.sub(b"", text).decode(errors="replace")

    def code(self):
        if self._code is None:
            self._receive(0)
        return self._code

    def wait(self, seconds):
        """The exit code, or None when it does not end in time."""
        deadline = time.monotonic() + seconds
        while self._code is None and time.monotonic() < deadline:
            self._receive(deadline - time.monotonic())
        return self._code

    def stop(self):
        """Ends its process group, if it still runs."""
        deadline = time.monotonic() + STOP_SECONDS
        while self.code() is None and b"\n" not in self._received:
            if time.monotonic() > deadline:
                raise GuestFailed(f"the guest has not started '{self.command}' within {STOP_SECONDS} s")
            self._receive(1)
        if self._code is None:
            group = self._received.split(b"\n", 1)[0].decode()
            self._guest.run(f"kill -TERM -{group}; sleep 0.1; kill -KILL -{group} 2>/dev/null; true")
            self.wait(10)
            self._socket.close()


# No offloads: a checksum that is left to the device, or a frame of several, is no frame of the wire.
VIRTIO = "virtio-net-pci,romfile=,csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ufo=off"


def tap_link(tap):
    """qemu's words for an eth0 that is linked to a tap of the host."""
    return ["-netdev", f"tap,id=link,ifname={tap},script=no,downscript=no,vnet_hdr=off",
            "-device", f"{VIRTIO},netdev=link,mac=52:54:00:77:00:02"]


class Guest:
    """Use as a context: entering boots it, leaving ends it. `links` are qemu's words for its network devices, but for
    that by which commands come in; `settings` what guest/boot reads; `machine` other words for qemu."""

    def __init__(self, image, links, settings, machine=(), memory="1G", kernel_words="", kind=AMD64):
        self.image, self.links, self.machine, self.memory, self.kind = image, links, machine, memory, kind
        self.kernel_words = " ".join([kernel_words, *(f"interop.{key}={value}" for key, value in settings.items())])
        self.port = None
        self.boot_seconds = None
        self._folder = tempfile.mkdtemp(prefix="rocemu-interop-")
        self._process = None

    def _text(self, name):
        try:
            with open(f"{self._folder}/{name}", encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def __enter__(self):
        self.boot()
        self.wait_for_boot()
        return self

    def boot(self):
        """Begins to. wait_for_boot() is to follow."""
        self._started = time.monotonic()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [self.kind.qemu, "-accel", "tcg,thread=multi", *self.kind.words, "-smp", "2", "-m", self.memory,
                   "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                   "-serial", f"file:{self._folder}/console", "-qmp", f"unix:{self._folder}/qmp,server=on,wait=off",
                   "-kernel", self.image / "vmlinuz", "-initrd", self.image / "initrd",
                   "-append", f"console={self.kind.console} quiet loglevel=4 rdinit=/sbin/init panic=-1 nokaslr "
                              f"random.trust_cpu=on {self.kind.kernel_words} {self.kernel_words}", *self.machine, *self.links,
                   "-netdev", f"user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:{AGENT_PORT}",
                   "-device", "virtio-net-pci,netdev=control,mac=52:54:00:cc:00:01,romfile="]
        with open(f"{self._folder}/qemu", "wb") as log:
            # A runner that is killed leaves no machine behind.
            self._process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)],
                                             stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_for_boot(self):
        try:
            self._wait_for_agent(self._started + BOOT_SECONDS)
        except BaseException:
            self.__exit__()
            raise
        self.boot_seconds = time.monotonic() - self._started

    def _wait_for_agent(self, deadline):
        while "INTEROP_READY" not in self._text("console"):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise GuestFailed(f"the guest did not boot: {self._text('qemu')}{self._text('console')[-2000:]}")
            time.sleep(0.1)
        while True:
            try:
                self.run("true")
                return
            except (GuestFailed, OSError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def __exit__(self, *_):
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def console(self):
        return self._text("console")

    def monitor(self, command, **arguments):
        """A command to qemu itself (its QMP). GuestFailed when qemu refuses it."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{self._folder}/qmp")
            with connection.makefile("rw", encoding="utf-8") as stream:
                stream.readline()  # its greeting
                for words in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                    stream.write(json.dumps(words) + "\n")
                    stream.flush()
                    answer = {"event": ""}
                    while "event" in answer:
                        answer = json.loads(stream.readline())
                    if "error" in answer:
                        raise GuestFailed(f"qemu refuses {words}: {answer['error']}")

    def start(self, command):
        return Command(self, command)

    def run(self, command, seconds=60):
        """What it printed. GuestFailed when it did not end well."""
        running = self.start(command)
        code = running.wait(seconds)
        if code != 0:
            raise GuestFailed(f"'{command}' in the guest: exit code {code}\n{running.output()}")
        return running.output()

    def push(self, path):
        """Copies a program to the guest's /usr/local/bin."""
        target = shlex.quote(f"/usr/local/bin/{os.path.basename(path)}")
        with open(path, "rb") as file:
            self._send(file.read(), f"cat > {target} && chmod 755 {target}")

    def libraries(self):
        """The names of those that it has."""
        return set(self.run(f"ls /lib/{self.kind.triplet} /{self.kind.library_folder()}").split())

    def unpack(self, archive):
        """Unpacks the bytes of a tar file in the guest's root."""
        self._send(archive, "tar -x -C /")

    def _send(self, data, command):
        sending = self.start(f"head -c {len(data)} | ({command})")
        sending._socket.settimeout(60)
        sending._socket.sendall(data)
        if sending.wait(60) != 0:
            raise GuestFailed(f"'{command}' did not get its {len(data)} bytes: {sending.output()}")
