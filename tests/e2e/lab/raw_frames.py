#!/usr/bin/python3 -B
"""A raw packet QP on rocemu0, by rdma-core's Python bindings.

    raw_frames.py collect             prints "ready", then each frame that comes in, in hexadecimal, up to one of EtherType 88b6
    raw_frames.py send FRAME...       sends frames given in hexadecimal
"""
import sys
import time

from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.flow import Flow, FlowAttr
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

# Of verbs.h: the module that has them has another name, and other names, in newer releases of pyverbs.
IBV_ACCESS_LOCAL_WRITE = 1
IBV_QPT_RAW_PACKET = 8
IBV_WC_SUCCESS = 0
IBV_FLOW_ATTR_ALL_DEFAULT = 1
IBV_WR_SEND = 2

DEPTH = 64
ROOM_BYTES = 2048
SECONDS = 60
LAST = b"\x88\xb6"


class RawQp:
    def __init__(self):
        self.context = Context(name="rocemu0")
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 2 * DEPTH)
        self.memory = MR(self.pd, DEPTH * ROOM_BYTES, IBV_ACCESS_LOCAL_WRITE)
        cap = QPCap(max_send_wr=DEPTH, max_recv_wr=DEPTH)
        self.qp = QP(self.pd, QPInitAttr(qp_type=IBV_QPT_RAW_PACKET, scq=self.cq, rcq=self.cq, cap=cap), QPAttr())

    def piece(self, place, size=ROOM_BYTES):
        return SGE(self.memory.buf + place * ROOM_BYTES, size, self.memory.lkey)

    def receive(self, place):
        self.qp.post_recv(RecvWR(wr_id=place, sg=[self.piece(place)], num_sge=1))

    def completions(self, until):
        while time.monotonic() < until:
            for completion in self.cq.poll(DEPTH)[1]:
                if completion.status != IBV_WC_SUCCESS:
                    sys.exit(f"a completion with status {completion.status}")
                yield completion
            time.sleep(0.001)


def collect():
    raw = RawQp()
    for place in range(DEPTH):
        raw.receive(place)
    flow = Flow(raw.qp, FlowAttr(num_of_specs=0, flow_type=IBV_FLOW_ATTR_ALL_DEFAULT))
    print("ready", flush=True)
    for completion in raw.completions(time.monotonic() + SECONDS):
        frame = raw.memory.read(completion.byte_len, completion.wr_id * ROOM_BYTES)
        if frame[12:14] == LAST:
            return flow.close()
        print(frame.hex(), flush=True)
        raw.receive(completion.wr_id)
    sys.exit("the last frame did not come")


def send(frames):
    raw = RawQp()
    for place, frame in enumerate(frames):
        raw.memory.write(frame, len(frame), place * ROOM_BYTES)
        raw.qp.post_send(SendWR(wr_id=place, opcode=IBV_WR_SEND, num_sge=1, sg=[raw.piece(place, len(frame))]))
    waiting = len(frames)
    for _ in raw.completions(time.monotonic() + SECONDS):
        waiting -= 1
        if waiting == 0:
            return
    sys.exit("frames were not sent")


if sys.argv[1] == "collect":
    collect()
else:
    send([bytes.fromhex(word) for word in sys.argv[2:]])
