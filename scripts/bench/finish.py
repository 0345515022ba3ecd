"""One run of a program, and what it took."""
import os
import subprocess
import tempfile

import lab


def finish(command, directory=None):
    """What it printed, the processor's time that it took, and the most memory that it had."""
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen([str(part) for part in command], stdout=output, stderr=subprocess.STDOUT,
                                 cwd=directory)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if child.returncode != 0:
        raise lab.MeasurementFailed(f"{command[0]}: exit code {child.returncode}: {text.strip()}")
    return text, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
