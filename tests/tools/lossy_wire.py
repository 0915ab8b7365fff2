#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A wire between interfaces of the kernel that loses, delays and reorders packets: what comes in at one goes out at all others.

usage: lossy_wire.py [--loss SHARE] [--delay SECONDS] [--reorder SHARE] [--seed N] INTERFACE...

A packet that is reordered waits twice the delay, or a millisecond.
"""
import argparse
import heapq
import random
import select
import socket
import time

p = argparse.ArgumentParser()
p.add_argument("--loss", type=float, default=0)
p.add_argument("--delay", type=float, default=0)
p.add_argument("--reorder", type=float, default=0)
p.add_argument("--seed", type=int, default=1)
p.add_argument("interface", nargs="+")
o = p.parse_args()
draw = random.Random(o.seed)
ends = []
for name in o.interface:
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((name, 0))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    s.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    s.setsockopt(263, 15, 1)  # PACKET_VNET_HDR: checksums that are left to the NIC stay so
    s.setblocking(False)
    ends.append(s)
waiting, n = [], 0


def flush():
    now = time.monotonic()
    while waiting and waiting[0][0] <= now:
        _, _, came, data = heapq.heappop(waiting)
        for s in ends:
            if s is not came:
                try:
                    s.send(data)
                except OSError:
                    pass
    return max(0, waiting[0][0] - now) if waiting else 1


while True:
    for s in select.select(ends, [], [], flush())[0]:
        for _ in range(64):
            try:
                data = s.recv(65536)
            except BlockingIOError:
                break
            if draw.random() < o.loss:
                continue
            at = time.monotonic() + o.delay + ((o.delay or 0.001) if draw.random() < o.reorder else 0)
            n += 1
            heapq.heappush(waiting, (at, n, s, data))
