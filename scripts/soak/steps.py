"""One part under way: its deadline, its log, what it has counted and what failed."""
import os
import signal
import subprocess
import time

GRACE_SECONDS = 60


class Steps:
    def __init__(self, name, seconds, options, before):
        self.name, self.options = name, options
        self.seconds = seconds  # without builds
        self.before = before  # the figures of this part in the report there was
        self.figures, self.failures = {}, []
        self.complete = True
        self.used_seconds = 0.0
        self.log_path = os.path.join(options.report, name + ".log")
        open(self.log_path, "w").close()

    def left(self):
        return self.seconds - self.used_seconds

    def count(self, figure, amount):
        self.figures[figure] = self.figures.get(figure, 0) + amount

    def cut(self, why):
        self.complete = False
        print(f"    not to the end: {why}", flush=True)

    def build(self, preset, *targets):
        """Configured and built; time that does not count. Whether it went well."""
        words = f"cmake --preset {preset} -DBUILD_TESTING=ON && cmake --build --preset {preset}"
        words += f" --target {' '.join(targets)}" if targets else ""
        code, _ = self._run(["bash", "-c", words], None, {})
        if code != 0:
            self.failures.append(f"the build {preset} failed")
        return code == 0

    def run(self, command, seconds=None, environment=()):
        """Exit code and output; None for the code when it was ended, since the time was over."""
        limit = self.left() if seconds is None else seconds
        started = time.monotonic()
        try:
            return self._run(command, max(limit, 1), dict(environment))
        finally:
            self.used_seconds += time.monotonic() - started

    def _run(self, command, limit, environment):
        print(f"    {time.strftime('%H:%M:%S')} {' '.join(command)}", flush=True)
        with open(self.log_path, "ab") as log:
            log.write(f"\n$ {' '.join(command)}\n".encode())
            log.flush()
            start = log.tell()
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                       start_new_session=True, env={**os.environ, **environment})
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self._end(process)
        with open(self.log_path, "rb") as log:
            log.seek(start)
            return code, log.read().decode(errors="replace")

    @staticmethod
    def _end(process):
        """The process and its group, politely at first."""
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is not None:
                return
            os.killpg(process.pid, signal_number)
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
