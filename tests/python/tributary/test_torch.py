# SPDX-License-Identifier: BSD-3-Clause
"""Calls of torch.distributed become jobs: which kind, buffers, counts, root and result, at the root and elsewhere; by an engine that keeps them."""
import os
import types
import unittest
from datetime import timedelta
from unittest import mock

from tests.python.tributary import fake_torch as torch

torch.install()

import tributary.torch as trib  # noqa: E402
from tributary import _lib, coll  # noqa: E402

INT32, UINT8 = coll.TYPES["int32"][0], coll.TYPES["uint8"][0]


def t(*values, dtype=torch.int32):
    return torch.tensor(values, dtype)


def opts(op="SUM", root=0):
    return types.SimpleNamespace(reduceOp=types.SimpleNamespace(name=op), rootRank=root)


class Engine:
    made = []

    def __init__(self, *args):
        self.args, self.level, self.jobs, self.completer, self.closed = args, args[4], [], mock.Mock(), []
        Engine.made.append(self)

    def submit(self, job):
        self.jobs.append(job)

    def close(self):
        order.append(self.level)


order = []


class Group(unittest.TestCase):
    def setUp(self):
        Engine.made.clear()
        order.clear()
        for where, name, instead in ((trib, "Engine", Engine), (_lib, "load", lambda: None)):
            patch = mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.dict(os.environ, {"TRIB_RUN": "r", "TRIB_HOST": "h"})
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("TRIB_ALGO", None)
        self.store = torch.Store()

    def group(self, rank=1, size=2, options=None, name="n"):
        return trib.ProcessGroupTrib(self.store, rank, size, timedelta(seconds=7), options, name)

    def job(self, work):
        job = Engine.made[-1].jobs[-1]
        self.assertIs(job.work, work)
        return job

    def seen(self, work):
        """Kind, elements, type, reduction, root, what is sent, whether it is received in place, and whether results are brought."""
        j = self.job(work)
        place = "-" if j.recv is None else "in" if j.send is j.recv else "out"
        return j.kind, j.count, j.type, j.op, j.root, None if j.send is None else j.send.tolist(), place, j.finish is not None

    def refused(self, says, call, *args):
        with self.assertRaises(RuntimeError) as e:
            call(*args)
        self.assertEqual(str(e.exception), says)

    def test_a_group_is_one_of_a_program_on_a_host(self):
        g = self.group(3, 4)
        self.assertEqual((g.made, g.rank(), g.size(), g.getRank(), g.getSize(), g.name(), g.getBackendName()), ((3, 4), 3, 4, 3, 4, "trib", "trib"))
        self.assertEqual((g.getGroupName(), g.getGroupDesc(), g.group_name, g.group_desc), ("n", "trib", "n", "trib"))
        g.setGroupName("a")
        g.setGroupDesc("b")
        self.assertEqual((g.group_name, g.group_desc, g._set_sequence_number_for_group()), ("a", "b", None))
        with self.assertRaises(TypeError) as e:
            self.group(options=7)
        self.assertEqual(str(e.exception), "pg_options: found 7, expected tributary.torch.Options")
        for name in ("TRIB_RUN", "TRIB_HOST"):
            with mock.patch.dict(os.environ):
                del os.environ[name]
                self.refused("found no TRIB_RUN and TRIB_HOST, expected a program that is run by trib exec CONF HOST -- PROGRAM", self.group)
        for call, says in ((lambda: g.send([], 1), "send"), (lambda: g.recv([], 1), "recv"), (lambda: g.recv_anysource([]), "recv from any rank")):
            self.refused(f"the backend trib has no {says}: found that call, expected a collective", call)

    def test_the_algorithm_is_asked_for_in_three_ways(self):
        for options, env, wanted in (
            (None, None, ("sharp,ring", 0)), (None, "tree", ("tree", 0)), (trib.Options("ring", 5), "tree", ("ring", 5)), (trib.Options(window=3), None, ("sharp,ring", 3)),
        ):  # fmt: skip
            with mock.patch.dict(os.environ, {"TRIB_ALGO": env} if env else {}), mock.patch.object(coll, "Communicator") as made:
                self.group(options=options)._create("oob")
            made.assert_called_once_with("oob", *wanted)

    def test_each_level_has_an_engine_which_is_closed_in_order(self):
        g = self.group()
        with mock.patch.object(trib, "level", lambda: 2):
            two = g._engine()
        zero = g._engine()
        self.assertIs(g._engine(), zero)
        for e, what, level in ((zero, "", 0), (two, "/2", 2)):
            name, oob, create, timeout, at = e.args
            self.assertEqual((name, timeout, at, create), ("group n", 7.0, level, g._create))
            self.assertEqual((oob.rank, oob.size, oob._store, oob._timeout_s, oob._top), (1, 2, self.store, 7.0, f"trib{what}"))
        g.shutdown()
        self.assertEqual(order, [0, 2])
        g.abort()
        self.assertEqual(order, [0, 2])
        other = self.group(name="")
        self.assertEqual(other._engine().args[0], "group of trib")
        other.abort()
        self.assertEqual(order, [0, 2, 0])

    def test_reductions(self):
        g, a, b = self.group(), t(1, 2), t(3)
        s, m = coll.OPS["sum"], coll.OPS["max"]
        self.assertEqual(self.seen(g.allreduce(a)), ("all_reduce", 2, INT32, s, 0, [1, 2], "in", True))
        self.assertEqual(self.seen(g.allreduce([a], opts("MAX"))), ("all_reduce", 2, INT32, m, 0, [1, 2], "in", True))
        work = g.allreduce_coalesced([a, b], opts("MAX").reduceOp)
        self.assertEqual(self.seen(work), ("all_reduce", 3, INT32, m, 0, [1, 2, 3], "in", True))
        self.assertEqual((work.name, work._result, work._timeout_s, work._level), ("all_reduce", [a, b], 7.0, 0))
        self.assertIs(work._completer, Engine.made[0].completer)
        self.assertEqual(self.seen(g.reduce([a], opts("MAX", 1))), ("reduce", 2, INT32, m, 1, [1, 2], "in", True))
        self.assertEqual(self.seen(g.reduce([a], opts("MAX", 0))), ("reduce", 2, INT32, m, 0, [1, 2], "-", False))
        for call in (lambda: g.reduce_scatter([b], [[t(1), t(2)]], opts("MAX")), lambda: g.reduce_scatter(b, t(1, 2), opts("MAX"))):
            self.assertEqual(self.seen(call()), ("reduce_scatter", 1, INT32, m, 0, [1, 2], "out", True))
        for call in (g._reduce_scatter_base, g.reduce_scatter_single):
            self.assertEqual(self.seen(call(b, a)), ("reduce_scatter", 1, INT32, s, 0, [1, 2], "out", True))
        for call in (g.reduce_scatter_tensor_coalesced, g.reduce_scatter_single_coalesced):
            work = call([b, t(0)], [a, t(5, 6)], opts("MAX"))
            self.assertEqual(self.seen(work), ("reduce_scatter", 2, INT32, m, 0, [1, 5, 2, 6], "out", True))
        self.assertEqual((self.job(work).recv.tolist(), work._result[0]), ([None, None], b))

    def test_movements_are_of_bytes(self):
        g, a, b = self.group(), t(1, 2), t(3)
        work = g.broadcast([a], opts(root=1))
        self.assertEqual((self.seen(work), work._result), (("broadcast", 8, UINT8, 0, 1, [1, 2], "-", False), [a]))
        self.assertEqual(self.seen(g.broadcast([a], opts(root=0))), ("broadcast", 8, UINT8, 0, 0, [1, 2], "-", True))
        outs = [t(0), t(0)]
        work = g.allgather([outs], [b])
        self.assertEqual((self.seen(work), work._result), (("all_gather", 4, UINT8, 0, 0, [3], "out", True), outs))
        for call in (g._allgather_base, g.all_gather_single):
            self.assertEqual(self.seen(call(a, b)), ("all_gather", 4, UINT8, 0, 0, [3], "out", False))
        for call in (g.allgather_into_tensor_coalesced, g.all_gather_single_coalesced):
            self.assertEqual(self.seen(call([a, t(0, 0, 0, 0)], [b, t(7, 8)])), ("all_gather", 12, UINT8, 0, 0, [3, 7, 8], "out", True))
        work = g.allgather_coalesced([[t(0), t(0, 0)], [t(0), t(0, 0)]], [b, t(7, 8)])
        self.assertEqual((self.seen(work), len(work._result)), (("all_gather", 12, UINT8, 0, 0, [3, 7, 8], "out", True), 4))
        self.assertEqual(self.seen(g.gather([outs], [b], opts(root=1))), ("gather", 4, UINT8, 0, 1, [3], "out", True))
        work = g.gather([], [b], opts(root=0))
        self.assertEqual((self.seen(work), work._result), (("gather", 4, UINT8, 0, 0, [3], "-", False), []))
        self.assertEqual(self.seen(g.scatter([b], [[t(1), t(2)]], opts(root=1))), ("scatter", 4, UINT8, 0, 1, [1, 2], "out", True))
        work = g.scatter([b], [], opts(root=0))
        self.assertEqual((self.seen(work), self.job(work).recv.tolist()), (("scatter", 4, UINT8, 0, 0, None, "out", True), [3]))
        self.assertEqual(self.seen(g.barrier()), ("barrier", 0, 0, 0, 0, None, "-", False))

    def test_exchanges_have_equal_blocks(self):
        g, a = self.group(), t(1, 2, 3, 4)
        out = t(0, 0, 0, 0)
        for call in (g.alltoall_base, g.all_to_all_single):
            self.assertEqual(self.seen(call(out, a)), ("all_to_all", 8, UINT8, 0, 0, [1, 2, 3, 4], "out", False))
            self.assertEqual(self.seen(call(out, a, [2, 2], [2, 2]))[1], 8)
        work = g.alltoall_base(a, a)
        self.assertNotEqual(self.job(work).send.data_ptr(), self.job(work).recv.data_ptr())
        self.assertEqual(self.job(work).recv.data_ptr(), a.data_ptr())
        outs = [t(0), t(0)]
        work = g.alltoall(outs, [t(5), t(6)])
        self.assertEqual((self.seen(work), work._result), (("all_to_all", 4, UINT8, 0, 0, [5, 6], "out", True), outs))
        self.refused("all_to_all: found blocks of [1, 3], expected equal ones", g.alltoall_base, out, a, [1, 3])
        self.refused("all_to_all: found blocks of [3, 1], expected equal ones", g.alltoall_base, out, a, [2, 2], [3, 1])
        self.refused("all_to_all: found 3 elements in all and 1 of a rank, expected 2 times as many in all", g.alltoall_base, out, t(1, 2, 3))

    def test_what_is_wrong_with_tensors_is_told_by_name(self):
        g, a, none = self.group(), t(1, 2), []
        two = [a, t(3, 4)]
        one = "expected 1: one a process"
        mixed = [a, t(1, dtype=torch.float32)]
        for call, says in (
            (lambda: g.allreduce(none), "all_reduce: found no tensor"), (lambda: g.reduce(two, opts()), f"reduce: found 2 tensors, {one}"),
            (lambda: g.broadcast(two, opts()), f"broadcast: found 2 tensors, {one}"), (lambda: g.allgather([two], two), f"all_gather: found 2 tensors, {one}"),
            (lambda: g.gather([two], two, opts()), f"gather: found 2 tensors, {one}"), (lambda: g.scatter(two, [two], opts()), f"scatter: found 2 tensors, {one}"),
            (lambda: g.reduce_scatter(two, [two]), f"reduce_scatter: found 2 tensors, {one}"),
            (lambda: g.alltoall(mixed, two), "all_to_all: found tensors of torch.int32 and torch.float32, expected one type"),
            (lambda: g.alltoall_base(mixed[1], a), "all_to_all: found tensors of torch.float32 and torch.int32, expected one type"),
            (lambda: g.reduce_scatter([a], [mixed]), "reduce_scatter: found tensors of torch.int32 and torch.float32, expected one type"),
            (lambda: g.allgather([mixed], [a]), "all_gather: found tensors of torch.int32 and torch.float32, expected one type"),
            (lambda: g.gather([mixed], [a], opts(root=1)), "gather: found tensors of torch.int32 and torch.float32, expected one type"),
            (lambda: g.scatter([a], [mixed], opts(root=1)), "scatter: found tensors of torch.int32 and torch.float32, expected one type"),
            (lambda: g.allreduce(a, opts("WHAT")), "all_reduce: found WHAT of torch.int32, expected one of SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR"),
        ):
            self.refused(says, call)

    def test_outputs_that_overlap_are_refused_after_others_are_told(self):
        g = self.group()
        wide = torch.Tensor(torch.Storage([1]), (3,), torch.int32, (0,))
        says = "found an output whose elements overlap in memory, of size [3] and stride [0], expected a place for each (clone() makes one)"
        for call, name in (
            (lambda: g.allreduce(wide), "all_reduce"), (lambda: g.reduce([wide], opts(root=1)), "reduce"), (lambda: g.broadcast([wide], opts(root=0)), "broadcast"),
            (lambda: g.allgather([[wide, wide]], [t(1, 2, 3)]), "all_gather"), (lambda: g.gather([[wide, wide]], [t(1, 2, 3)], opts(root=1)), "gather"),
            (lambda: g.scatter([wide], [[t(1, 2, 3)] * 2], opts(root=1)), "scatter"), (lambda: g.alltoall([wide, wide], [t(1, 2, 3)] * 2), "all_to_all"),
            (lambda: g.reduce_scatter([wide], [[t(1, 2, 3)] * 2]), "reduce_scatter"),
        ):  # fmt: skip
            n = len(Engine.made[0].jobs) if Engine.made else 0
            self.refused(f"{name}: {says}", call)
            job = Engine.made[0].jobs[-1]
            self.assertEqual((len(Engine.made[0].jobs), job.refused, job.work._asked), (n + 1, says, True))
        for call in (lambda: g.reduce([wide], opts(root=0)), lambda: g.broadcast([wide], opts(root=1)), lambda: g.gather([], [wide], opts(root=0))):
            call()  # which write nothing here
            self.assertEqual(Engine.made[0].jobs[-1].refused, "")

    def test_the_backend_is_registered_once(self):
        backend = trib.dist.Backend
        self.assertEqual(backend.registered, [(("trib", trib._create), {"extended_api": True, "devices": ["cpu"]})])
        trib._register()
        self.assertEqual(len(backend.registered), 1)

        class Old:
            calls = []

            @classmethod
            def register_backend(cls, *args, **kwargs):
                if "devices" in kwargs:
                    raise TypeError("devices")
                cls.calls.append((args, kwargs))

        with mock.patch.object(trib.dist, "Backend", Old):
            trib._register()
        self.assertEqual(Old.calls, [(("trib", trib._create), {"extended_api": True})])
        given = types.SimpleNamespace(store=self.store, group_rank=1, group_size=3, timeout=timedelta(seconds=2), group_id="id")
        g = trib._create(given, trib.Options("ring"))
        self.assertEqual((g._store, g.rank(), g.size(), g._timeout_s, g.group_name), (self.store, 1, 3, 2.0, "id"))


if __name__ == "__main__":
    unittest.main()
