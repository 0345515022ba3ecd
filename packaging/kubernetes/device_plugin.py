#!/usr/bin/env python3
"""A device plugin of Kubernetes: the node's NIC as the resource rocemu.io/nic.

A container that asks for it gets the NIC's state directory, the libraries, and the environment that `rocemu env` prints.
SHARES containers of a node have it at a time, all with the same devices. The kubelet's API (deviceplugin/v1beta1) is
gRPC with so few messages that they are written here by hand, so nothing but python3-grpcio is needed.
"""
import os
import socket
import threading
import time
from concurrent import futures

import grpc

KUBELET = os.environ.get("KUBELET_PLUGINS", "/var/lib/kubelet/device-plugins")
STATE = os.environ.get("ROCEMU_STATE", "/run/rocemu")  # the same path on the node and in containers
INSTALL = os.environ.get("ROCEMU_INSTALL", "/opt/rocemu")  # likewise
SHARES = int(os.environ.get("ROCEMU_SHARES", "16"))
RESOURCE = "rocemu.io/nic"
SOCKET = "rocemu.sock"


# ---- protobuf: all fields of these messages are strings, messages and booleans ----

def varint(number):
    more = bytearray()
    while number > 127:
        more.append(number & 127 | 128)
        number >>= 7
    return bytes(more) + bytes([number])


def field(number, content):
    if isinstance(content, bool):
        return varint(number << 3) + varint(int(content))
    if isinstance(content, str):
        content = content.encode()
    return varint(number << 3 | 2) + varint(len(content)) + content


def message(*fields):
    return b"".join(field(number, content) for number, content in fields)


def count_messages(text, number):
    """How many fields of that number the message has; all its fields are messages."""
    count = at = 0
    while at < len(text):
        count += text[at] >> 3 == number
        length = shift = 0
        while True:
            at += 1
            length |= (text[at] & 127) << shift
            shift += 7
            if text[at] < 128:
                break
        at += 1 + length
    return count


# ---- what the kubelet is told ----

def devices(healthy):
    """ListAndWatchResponse: Device {1: ID, 2: health}."""
    health = "Healthy" if healthy else "Unhealthy"
    return message(*((1, message((1, f"share{i}"), (2, health))) for i in range(SHARES)))


def edits():
    """ContainerAllocateResponse: what a container with the NIC gets. 1: environment, 2: mounts."""
    library = f"{INSTALL}/lib/rocemu/librocemu"
    environment = {"ROCEMU_DIR": STATE, "LD_PRELOAD": f"{library}-preload.so", "RDMAV_DRIVERS": library, "IBV_DRIVERS": library}
    mounts = [(STATE, False), (INSTALL, True)]
    return message(*((1, message((1, name), (2, value))) for name, value in environment.items()),
                   *((2, message((1, path), (2, path), (3, read_only))) for path, read_only in mounts))


def is_up():
    """Whether somebody listens: a NIC that was killed leaves its socket behind."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
        end.settimeout(1)
        try:
            end.connect(f"{STATE}/nic.sock")
        except OSError:
            return False
    return True


def list_and_watch(_request, context):
    told = None
    while context.is_active():
        if is_up() != told:
            told = is_up()
            yield devices(told)
        time.sleep(1)


def allocate(request, _context):
    """AllocateRequest has a message for each container (1), and so has the answer."""
    return message(*((1, edits()) for _ in range(count_messages(request, 1))))


def serve():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", {
        "GetDevicePluginOptions": unary(lambda _request, _context: b""),
        "ListAndWatch": stream(list_and_watch),
        "Allocate": unary(allocate),
    })])
    path = f"{KUBELET}/{SOCKET}"
    if os.path.exists(path):
        os.unlink(path)
    server.add_insecure_port(f"unix:{path}")
    server.start()
    with grpc.insecure_channel(f"unix:{KUBELET}/kubelet.sock") as channel:
        register = channel.unary_unary("/v1beta1.Registration/Register")
        register(message((1, "v1beta1"), (2, SOCKET), (3, RESOURCE)), timeout=10, wait_for_ready=True)
    print(f"{RESOURCE}: registered, {SHARES} shares", flush=True)
    return server


def main():
    """A kubelet that starts again removes all sockets, and has to be told anew."""
    while True:
        server = serve()
        while os.path.exists(f"{KUBELET}/{SOCKET}"):
            time.sleep(1)
        server.stop(0)


main()
