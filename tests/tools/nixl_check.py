#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""NIXL between two hosts of a fabric: writes with notifications and reads of 1 byte to 4 MiB, every byte checked.

usage: nixl_check.py PORT target     first; the other connects to it on this machine
       nixl_check.py PORT
"""
import os
import pickle
import socket
import struct
import sys
import time

import numpy
from nixl._api import nixl_agent, nixl_agent_config

SIZES = (1, 4096, 65536, 4 << 20)


def send(sock, value):
    data = pickle.dumps(value)
    sock.sendall(struct.pack("!I", len(data)) + data)


def receive(sock):
    def some(n):
        data = b""
        while len(data) < n:
            part = sock.recv(n - len(data))
            assert part, "the other has gone"
            data += part
        return data

    return pickle.loads(some(struct.unpack("!I", some(4))[0]))


def pattern(n, seed):
    return (numpy.arange(n, dtype=numpy.uint32) * 2654435761 + seed >> 13).astype(numpy.uint8)


def transfer(agent, *what):
    handle = agent.initialize_xfer(*what)
    state, end = agent.transfer(handle), time.monotonic() + 30
    while state != "DONE":
        assert state != "ERR" and time.monotonic() < end, state
        state = agent.check_xfer_state(handle)
    agent.release_xfer_handle(handle)


def write_and_read(agent, sock, memory, address, theirs, other):
    wrong = 0
    for i, n in enumerate(SIZES):
        here, there = (agent.get_xfer_descs([(a, n, 0)], "DRAM") for a in (address, theirs))
        memory[:n] = pattern(n, i)
        transfer(agent, "WRITE", here, there, other, b"w%d" % i)
        send(sock, "written")
        receive(sock)
        transfer(agent, "READ", here, there, other)
        wrong += int((memory[:n] != pattern(n, 100 + i)).sum())
    return wrong


def be_written(agent, sock, memory):
    wrong, told, end = 0, [], time.monotonic() + 30
    for i, n in enumerate(SIZES):
        receive(sock)
        wrong += int((memory[:n] != pattern(n, i)).sum())
        memory[:n] = pattern(n, 100 + i)
        send(sock, "to be read")
    while len(told) < len(SIZES) and time.monotonic() < end:
        told += [m for messages in agent.get_new_notifs().values() for m in messages]
    return wrong + (told != [b"w%d" % i for i in range(len(SIZES))])


port, target = int(sys.argv[1]), sys.argv[2:] == ["target"]
me = "target" if target else "initiator"
agent = nixl_agent(me, nixl_agent_config(backends=["UCX"]))
memory = numpy.zeros(max(SIZES), dtype=numpy.uint8)
address = memory.ctypes.data
agent.register_memory([(address, memory.nbytes, 0, "")], "DRAM")
if target:
    sock, _ = socket.create_server(("127.0.0.1", port)).accept()
else:
    sock = socket.create_connection(("127.0.0.1", port))
send(sock, (agent.get_agent_metadata(), address))
metadata, theirs = receive(sock)
other = agent.add_remote_agent(metadata)
other = other.decode() if isinstance(other, bytes) else other
wrong = be_written(agent, sock, memory) if target else write_and_read(agent, sock, memory, address, theirs, other)
send(sock, "end")
receive(sock)
print(f"nixl_check: {me}: {len(SIZES)} sizes, {wrong} wrong", flush=True)
os._exit(wrong > 0)  # the wheel's libnl and the system's end in a fault when both are unloaded, on any fabric
