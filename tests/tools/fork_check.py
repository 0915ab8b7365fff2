#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Devices across fork: fork_check.py WHAT, as a host of a fabric (trib exec).

children METHOD OPENED [N]
                        four (or N) children of multiprocessing, each with a device of its own,
                        exchange data, two and two; OPENED: the parent has connected queue pairs before
                        (yes) or not (no), and they work afterwards too
closed                  the program closes all descriptors and opens files of its own under their
                        numbers: its connections go on, and its files stay as they are
inherited               what a child may do with its parent's objects: every use is EIO, giving
                        them up is harmless, whatever way the child ends
"""
import atexit
import ctypes
import errno
import multiprocessing as mp
import os
import select
import subprocess
import sys
import tempfile
import threading
import time

from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.enums import (IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_QPT_RC, IBV_WR_SEND)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError, PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 30000
ROUNDS = 20


class End:
    """A queue pair with its device."""

    def __init__(self, ctx=None):
        self.ctx = ctx or Context(name="trib0")
        self.pd = PD(self.ctx)
        self.channel = CompChannel(self.ctx)
        self.cq = CQ(self.ctx, 64, None, self.channel, 0)
        self.mr = MR(self.pd, 2 * SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
        cap = QPCap(max_send_wr=16, max_recv_wr=16)
        self.qp = QP(self.pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap), QPAttr())

    def name(self):
        return self.qp.qp_num, str(self.ctx.query_gid(1, 0))

    def connect(self, name):
        route = GlobalRoute(dgid=GID(name[1]), sgid_index=0)
        a = QPAttr(port_num=1)
        a.dest_qp_num = name[0]
        a.path_mtu = 5
        a.max_rd_atomic = a.max_dest_rd_atomic = 1
        a.min_rnr_timer, a.retry_cnt, a.rnr_retry, a.timeout = 12, 7, 7, 16
        a.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
        a.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.to_rts(a)

    def post_recv(self):
        self.qp.post_recv(RecvWR(sg=[SGE(self.mr.buf + SIZE, SIZE, self.mr.lkey)], num_sge=1))

    def send(self, byte):
        self.mr.write(bytes([byte]) * SIZE, SIZE)
        self.qp.post_send(SendWR(opcode=IBV_WR_SEND, num_sge=1, sg=[SGE(self.mr.buf, SIZE, self.mr.lkey)]))

    def wait(self, n):
        got = 0
        while got < n:
            k, wcs = self.cq.poll(n - got)
            for wc in wcs or []:
                assert wc.status == 0, f"status {wc.status}"
            got += k

    def exchange(self, byte, expected):
        self.post_recv()
        self.send(byte)
        self.wait(2)
        assert self.mr.read(SIZE, SIZE) == bytes([expected]) * SIZE, "wrong bytes"


def child(me, pipes, barrier):
    end = End()
    peer = me ^ 1
    pipes[me].send(end.name())
    end.connect(pipes[me].recv())
    barrier.wait(30)
    for i in range(ROUNDS):
        end.exchange((16 * me + i) % 256, (16 * peer + i) % 256)
        barrier.wait(30)


def duo():
    a = End()
    b = End(a.ctx)
    a.connect(b.name())
    b.connect(a.name())
    return a, b


def both(ends, byte):
    for e in ends:
        e.post_recv()
    for e in ends:
        e.send(byte)
    for e in ends:
        e.wait(2)
        assert e.mr.read(SIZE, SIZE) == bytes([byte]) * SIZE, "wrong bytes"


def children(method, opened, count="4"):
    n = int(count)
    ctx = mp.get_context(method)
    ends = duo() if opened == "yes" else ()
    if ends:
        both(ends, 1)
    pipes = [ctx.Pipe() for _ in range(n)]
    barrier = ctx.Barrier(n)
    ps = [ctx.Process(target=child, args=(i, [p[1] for p in pipes], barrier)) for i in range(n)]
    for p in ps:
        p.start()
    names = [pipes[i][0].recv() for i in range(n)]
    for i in range(n):
        pipes[i][0].send(names[i ^ 1])
    for i in range(ROUNDS if ends else 0):
        both(ends, i)
    for p in ps:
        p.join(60)
        assert p.exitcode == 0, f"a child ended with {p.exitcode}"
    if ends:
        both(ends, 99)
    print(f"{n} by {method}, parent opened: {opened}: ok")


def refused(what, fn):
    try:
        fn()
    except PyverbsError as e:
        if isinstance(e, PyverbsRDMAError) and e.error_code not in (errno.EIO, -errno.EIO):
            raise AssertionError(f"{what}: {e}") from e
        return
    raise AssertionError(f"{what} is taken")


def use_inherited(ends):
    a, b = ends
    refused("alloc_pd", lambda: PD(a.ctx))
    refused("create_cq", lambda: CQ(a.ctx, 4, None, None, 0))
    refused("create_comp_channel", lambda: CompChannel(a.ctx))
    refused("reg_mr", lambda: MR(a.pd, 4096, IBV_ACCESS_LOCAL_WRITE))
    refused("post_send", lambda: a.send(5))
    refused("post_recv", a.post_recv)
    refused("poll_cq", lambda: a.cq.poll(1))
    refused("req_notify_cq", lambda: a.cq.req_notify())
    refused("get_cq_event", lambda: a.channel.get_cq_event(a.cq))
    refused("modify_qp", lambda: a.qp.modify(QPAttr(), 1))
    refused("query_qp", lambda: a.qp.query(1))
    for e in ends:
        e.qp.close(), e.cq.close(), e.channel.close(), e.mr.close(), e.pd.close()
    a.ctx.close()
    own = duo()
    both(own, 77)


def in_child(ends, way):
    pid = os.fork()
    if not pid:
        try:
            use_inherited(ends)
        except BaseException as e:  # pylint: disable=broad-except
            print(e, file=sys.stderr)
            os._exit(1)
        if way == "exec":
            os.execvp("true", ["true"])
        if way == "exit":
            ctypes.CDLL(None).exit(0)
        os._exit(0)
    return pid


def inherited():
    ends = duo()
    both(ends, 1)
    stop = threading.Event()
    worker = threading.Thread(target=lambda: [both(ends, i % 200) for i in iter(int, 1) if not stop.is_set() or sys.exit()])
    worker.start()  # forks happen while frames are on their way
    try:
        for way in ("_exit", "exit", "exec") * 3:
            _, status = os.waitpid(in_child(ends, way), 0)
            assert status == 0, f"a child that ends by {way}: status {status}"
            subprocess.run(["true"], check=True)  # vfork or posix_spawn
            os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
    finally:
        stop.set()
        worker.join()
    both(ends, 3)
    print("inherited: ok")


def closed():
    ends = duo()
    both(ends, 1)
    for fd in (ends[0].ctx.cmd_fd,):
        os.fstat(fd)
        assert not select.select([fd], [], [], 0)[0], f"descriptor {fd} is readable"
    inside = [n for n in os.listdir("/proc/self/fd") if "socket" in link_of(n)]
    os.closerange(3, 4096)
    files = [tempfile.TemporaryFile() for _ in range(64)]
    low = {f.fileno() for f in files}
    assert set(range(3, 40)) <= low, f"numbers {sorted(low)}"
    for i in range(ROUNDS):
        both(ends, i)
        time.sleep(0.02)  # longer than the port is left alone
    ends[0].ctx.close()
    for f in files:
        assert os.fstat(f.fileno()).st_size == 0, "something was written into a file of the program"
    print(f"closed: ok, sockets before: {len(inside)}", flush=True)
    atexit.register(lambda: print("files at exit:", sum(os.fstat(f.fileno()).st_size for f in files)))


def link_of(n):
    try:
        return os.readlink(f"/proc/self/fd/{n}")
    except OSError:
        return ""


if __name__ == "__main__":
    if sys.argv[1] == "closed":
        closed()
    elif sys.argv[1] == "children":
        children(*sys.argv[2:])
    else:
        inherited()
