#!/usr/bin/python3 -B
"""import_device.py: a second process imports a context, its protection domain, a region and device memory by the
device's descriptor, writes to the device memory, and sees what the first one wrote; and it cannot import what it was
not given the descriptor of. To be run inside a NIC; needs Debian's python3-pyverbs."""
import os
import subprocess
import sys

SKIPPED = 77
# Of verbs.h: the module that has them has another name, and other names, in newer releases of pyverbs.
IBV_ACCESS_LOCAL_WRITE = 1
HERE, THERE = b"from the first process ", b"from the second process "

try:
    from pyverbs.device import DM, AllocDmAttr, Context
    from pyverbs.mr import MR
    from pyverbs.pd import PD
    from pyverbs.pyverbs_error import PyverbsRDMAError
except ImportError:
    print("SKIP: pyverbs is missing (Debian package python3-pyverbs)")
    sys.exit(SKIPPED)


def padded(text):
    return text.ljust(64)


def second(fd, pd_handle, mr_handle, dm_handle):
    context = Context(cmd_fd=fd)
    pd = PD(context, handle=pd_handle)
    mr = MR(pd, handle=mr_handle)
    dm = DM(context, handle=dm_handle)
    assert dm.copy_from_dm(0, 64) == padded(HERE), "other bytes in the device memory"
    dm.copy_to_dm(64, padded(THERE), 64)
    print(mr.lkey, mr.rkey)
    for what, attempt in (("region", lambda: MR(pd, handle=mr_handle + 1)),
                          ("domain", lambda: PD(context, handle=pd_handle + 1)),
                          ("device memory", lambda: DM(context, handle=dm_handle + 1))):
        try:
            attempt()
            sys.exit(f"imported a {what} that is not there")
        except PyverbsRDMAError:
            pass
    mr.unimport()
    dm.unimport()
    pd.unimport()


def first():
    context = Context(name="rocemu0")
    pd = PD(context)
    mr = MR(pd, 4096, IBV_ACCESS_LOCAL_WRITE)
    dm = DM(context, AllocDmAttr(length=4096))
    dm.copy_to_dm(0, padded(HERE), 64)
    fd = context.cmd_fd
    handles = [str(handle) for handle in (fd, pd.handle, mr.handle, dm.handle)]
    run = subprocess.run([sys.executable, "-B", __file__, *handles], pass_fds=[fd], text=True, timeout=30,
                         stdout=subprocess.PIPE, check=True)
    assert run.stdout.split() == [str(mr.lkey), str(mr.rkey)], f"other keys: {run.stdout}"
    assert dm.copy_from_dm(64, 64) == padded(THERE), "what the other process wrote is not there"
    read_end, write_end = os.pipe()
    try:
        Context(cmd_fd=read_end)
        sys.exit("a pipe was imported")
    except PyverbsRDMAError:
        os.close(write_end)
    print("PASS")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        second(*map(int, sys.argv[1:]))
    else:
        first()
