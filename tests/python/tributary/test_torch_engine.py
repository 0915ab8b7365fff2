# SPDX-License-Identifier: BSD-3-Clause
"""Jobs and the engine's turns: what ends when, with which words, and what other ranks are told. Threads and time are moved by hand."""
import json
import logging
import types
import unittest
from unittest import mock

from tests.python.tributary import fake_torch as torch

torch.install()

from tributary import _torch_engine as engines  # noqa: E402
from tributary._torch_engine import Engine, Job  # noqa: E402
from tributary._torch_work import Work  # noqa: E402


class Completer:
    """Makes calls at once."""

    def put(self, call):
        call()

    def close(self):
        self.closed = True


class Request:
    def __init__(self, log):
        self.log, self.algo, self.answers = log, "ring", []

    def wait(self, seconds):
        self.log.append(seconds)
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer


class Comm:
    def __init__(self, rank=1, size=4):
        self.rank, self.size, self.error, self.fell_back, self.refused = rank, size, "", "", ""
        self.started, self.waits, self.request, self.calls, self.why_hosts, self.fails = [], [], Request([]), [], "", []

    def start(self, *args):
        self.started.append(args)
        if self.fails:
            raise self.fails.pop(0)
        return self.request

    def progress(self):
        self.calls.append("progress")

    def close(self):
        self.calls.append("close")

    def trees(self):
        return 1, self.why_hosts


class Oob:
    def __init__(self, rank=1):
        self.rank, self.hurry, self.calls, self.notes, self.count = rank, False, [], [], 0

    def meet(self, seconds=None):
        self.calls.append(("meet", seconds))

    def greatest(self, n):
        return n + 1

    def tell(self, text):
        self.calls.append(("tell", json.loads(text)))
        return 5

    def hear(self):
        found, self.notes = self.notes, []
        if isinstance(found, Exception):
            raise found
        return [(n, json.dumps(note)) for n, note in found]

    def answer(self, n):
        self.calls.append(("answer", n))

    def answers(self, n):
        self.calls.append(("answers", n))
        return self.count


def made(kind="all_reduce", result=(), timeout=3.0):
    return Work(kind, list(result), timeout, 0, Completer())


def job(kind="all_reduce", **more):
    return Job(kind, made(kind), **{"count": 4, "type": 7, **more})


class Jobs(unittest.TestCase):
    def test_a_call_has_addresses_and_numbers(self):
        comm, a, b = Comm(), torch.tensor([1, 2, 3, 4]), torch.tensor([0])
        j = job(send=a, recv=b, op=3, root=2)
        j.start(comm)
        self.assertEqual(comm.started, [("all_reduce", a.data_ptr(), b.data_ptr(), 4, 7, 3, 2, (a, b))])
        self.assertIs(j.request, comm.request)
        for j, started in ((job(count=0), []), (job("barrier", count=0), [("barrier", 0, 0, 0, 7, 0, 0, (None, None))])):
            comm.started.clear()
            j.start(comm)
            self.assertEqual(comm.started, started)

    def test_it_has_ended_when_its_request_has(self):
        j, comm = job(), Comm()
        self.assertTrue(j.poll(0.5))  # there was nothing to send
        j.start(comm)
        comm.request.answers = [TimeoutError(), None, ValueError("x")]
        self.assertEqual((j.poll(0.5), j.work.algo, j.poll(0.25), j.work.algo, comm.request.log), (False, "", True, "ring", [0.5, 0.25]))
        with self.assertRaisesRegex(ValueError, "x"):
            j.poll(1)

    def test_results_are_brought_in_the_mode_of_their_tensors(self):
        a, b, seen = torch.tensor([1]), torch.tensor([1]), []
        b.inference = True
        for result, mode in (([a], "no_grad"), ([a, b], "inference"), ([], "no_grad")):
            j = Job("x", made(result=result))
            torch.modes.clear()
            j.bring()
            self.assertEqual(torch.modes, [])
            j.finish = lambda: seen.append(list(torch.modes))
            j.bring()
            self.assertEqual(seen.pop(), [mode])

    def test_memory_of_its_own_takes_part_instead(self):
        a, b = torch.tensor([1, 2]), torch.tensor([3])
        j = job(send=a, recv=a, finish=print)
        j.substitute()
        self.assertIs(j.send, j.recv)
        self.assertEqual((j.send.tolist(), j.send.data_ptr() == a.data_ptr(), j.finish), ([1, 2], False, None))
        j = job(send=a, recv=b)
        j.substitute()
        self.assertEqual((j.send.tolist(), j.recv.shape, j.recv.data_ptr() in (a.data_ptr(), b.data_ptr())), ([1, 2], (1,), False))
        j = job(recv=b)
        j.substitute()
        self.assertEqual((j.send, j.recv.shape), (None, (1,)))
        j = job(send=a)
        j.substitute()
        self.assertIsNone(j.recv)

    def test_who_waits_for_whom_is_by_the_operation(self):
        for kind, root, rank, ranks in (
            ("broadcast", 1, 1, [0, 2]), ("broadcast", 0, 1, []), ("scatter", 1, 1, [0, 2]), ("scatter", 2, 1, []), ("reduce", 0, 1, [0]), ("reduce", 1, 1, []), ("gather", 2, 1, [2]),
            ("gather", 1, 1, []), ("all_reduce", 0, 1, [0, 2]), ("barrier", 0, 0, [1, 2]),
        ):  # fmt: skip
            self.assertEqual(job(kind, root=root).waited_for_by(rank, 3), ranks)

    def test_an_end_has_the_operation_s_name_once(self):
        for error, says in (("", None), ("no", "reduce: no"), ("reduce: no", "reduce: no")):
            j = job("reduce", send=torch.tensor([1]), finish=print)
            j.end(error)
            self.assertEqual((j.work._error, j.request, j.send, j.recv, j.finish, j.work.is_completed()), (says, None, None, None, None, True))


class Engines(unittest.TestCase):
    def setUp(self):
        self.now, self.slept, self.completers = 100.0, [], []
        time = types.SimpleNamespace(monotonic=lambda: self.now, sleep=self.slept.append)
        for name, instead in (("time", time), ("Thread", lambda *args: (self.completers.append(args), Completer())[1])):
            patch = mock.patch.object(engines, name, instead)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.object(engines.threading, "Thread")
        self.thread = patch.start()
        self.addCleanup(patch.stop)
        self.oob, self.comm, self.created = Oob(), Comm(), []
        self.engine = Engine("g", self.oob, self.create, 3.0, 2)

    def create(self, oob):
        self.created.append(oob)
        return self.comm

    def submit(self, *jobs):
        for j in jobs:
            self.engine.submit(j)
        return jobs[0] if len(jobs) == 1 else jobs

    def error(self, j):
        return j.work._error if j.work.is_completed() else "runs"

    def test_jobs_have_numbers_and_one_thread(self):
        a, b = self.submit(job(), job())
        self.assertEqual((a.number, b.number, list(self.engine._calls), self.engine.level), (1, 2, [a, b], 2))
        self.thread.assert_called_once_with(target=self.engine._run, name="trib g 2", daemon=True)
        self.thread.return_value.start.assert_called_once_with()
        self.engine.close()
        self.thread.return_value.join.assert_called_once_with()
        self.assertTrue(self.engine.completer.closed)
        self.assertEqual(self.completers, [("trib g futures 2", 3)])
        self.assertFalse(self.oob.hurry)
        late = job("reduce")
        with self.assertRaisesRegex(RuntimeError, "^reduce: the group was destroyed$"):
            self.engine.submit(late)
        self.engine._failed = "why"
        with self.assertRaisesRegex(RuntimeError, "^reduce: why$"):
            self.engine.submit(job("reduce"))

    def test_a_turn_starts_as_many_as_there_may_be(self):
        jobs = self.submit(*(job() for _ in range(10)))
        self.engine._turn(self.comm)
        self.assertEqual((len(self.comm.started), len(self.engine._running), len(self.engine._calls)), (8, 7, 2))
        self.assertEqual((self.error(jobs[0]), self.error(jobs[1]), self.comm.request.log), (None, "runs", [engines._SLICE_S]))
        self.assertEqual((jobs[1].started, self.comm.calls), (100.0, []))

    def test_an_idle_turn_helps_others_and_sees_errors(self):
        self.engine._turn(self.comm)
        self.assertEqual((self.comm.calls, self.engine._failed), (["progress"], ""))
        self.comm.error = "a switch has died"
        self.engine._turn(self.comm)
        self.assertEqual(self.engine._failed, "a switch has died")
        j = job()
        self.engine._start(j, self.comm)
        self.assertEqual(self.error(j), "all_reduce: a switch has died")

    def test_an_operation_that_does_not_end_fails_with_all_others(self):
        a, b, c = self.submit(job("reduce"), job(), job())
        self.engine._calls.pop()
        self.comm.request.answers = [TimeoutError()] * 9
        self.engine._turn(self.comm)
        self.now = 103.0
        self.engine._turn(self.comm)
        self.assertEqual(self.error(a), "runs")
        self.engine._calls.append(c)
        self.now = 103.1
        self.engine._serve()
        self.assertEqual([self.error(j) for j in (a, b, c)], ["reduce: not done after 3 s", "all_reduce: reduce: not done after 3 s", "all_reduce: reduce: not done after 3 s"])
        self.assertEqual((len(self.engine._running), len(self.engine._calls)), (0, 0))

    def test_why_it_is_late_may_be_the_store_s_end(self):
        j = self.submit(job())
        self.comm.request.answers = [TimeoutError()] * 9
        self.oob.notes = OSError("gone")
        self.engine._turn(self.comm)
        self.assertEqual(self.engine._deaf, "gone")
        self.oob.notes = OSError("other")
        self.engine._turn(self.comm)
        self.assertEqual((self.engine._deaf, str(self.oob.notes)), ("gone", "other"))
        self.now = 200.0
        self.engine._turn(self.comm)
        self.assertEqual(self.error(j), "all_reduce: not done after 3 s; its store: gone")

    def test_a_request_that_fails_ends_the_group(self):
        a, b = self.submit(job("reduce"), job())
        self.comm.request.answers = [ValueError("reduce: died")]
        self.engine._turn(self.comm)
        self.assertEqual((self.error(a), self.error(b), self.engine._failed), ("reduce: died", "all_reduce: reduce: died", "reduce: died"))

    def test_results_that_cannot_be_brought_fail_alone(self):
        a, b = self.submit(job(finish=lambda: 1 // 0), job())
        self.engine._turn(self.comm)
        self.engine._turn(self.comm)
        self.assertEqual((self.error(a), self.error(b), self.engine._failed), ("all_reduce: integer division or modulo by zero", None, ""))

    def note(self, call, by, why, to=(0, 1, 2)):
        return {"call": call, "by": by, "to": list(to), "why": why}

    def test_what_others_tell_fails_the_call_it_is_about(self):
        a, b = self.submit(job(finish=lambda: self.fail("it is not brought")), job())
        self.comm.request.answers = [TimeoutError()]
        self.oob.notes = [(1, self.note(1, 2, "two")), (2, self.note(1, 0, "zero")), (3, self.note(1, 3, "three")), (4, self.note(2, 0, "not for me", (0, 2)))]
        self.engine._turn(self.comm)
        self.assertEqual(self.oob.calls, [("answer", 1), ("answer", 2), ("answer", 3)])
        self.engine._turn(self.comm)
        self.engine._turn(self.comm)
        self.assertEqual((self.error(a), self.error(b), self.engine._heard), ("all_reduce: rank 0: zero", None, {}))

    def test_a_call_that_cannot_be_made_is_told_and_made_with_other_memory(self):
        a, b = self.submit(job("reduce", refused="overlaps", send=torch.tensor([1]), root=0), job())
        self.engine._turn(self.comm)
        self.assertEqual(self.oob.calls, [("tell", {"call": 1, "by": 1, "to": [0], "why": "overlaps"}), ("answers", 5)])
        self.assertEqual((self.comm.started, len(self.engine._calls), self.slept), ([], 1, [engines._ANSWER_S]))
        self.engine._turn(self.comm)
        self.assertEqual(len(self.oob.calls), 2)  # not yet again
        self.now += engines._ANSWER_S
        self.oob.count = 1
        self.engine._turn(self.comm)
        self.assertEqual((len(self.comm.started), self.engine._refusal), (1, None))
        self.engine._turn(self.comm)
        self.assertEqual((self.error(a), len(self.engine._running)), ("reduce: overlaps", 1))
        self.engine._turn(self.comm)
        self.assertEqual(self.error(b), None)

    def test_a_refusal_waits_beside_what_runs(self):
        a, b = self.submit(job(), job("broadcast", refused="why", root=2))
        self.comm.request.answers = [TimeoutError()]
        self.engine._turn(self.comm)
        self.assertEqual((self.comm.request.log, self.oob.calls, self.slept), ([engines._ANSWER_S], [], []))
        self.assertEqual([j.kind for j in self.engine._running], ["all_reduce", "broadcast"])  # nobody needs its part
        self.engine._turn(self.comm)
        self.engine._turn(self.comm)
        self.assertEqual((self.error(a), self.error(b)), (None, "broadcast: why"))

    def test_a_call_that_the_library_refuses_is_a_refusal(self):
        j = self.submit(job())
        self.comm.fails = [ValueError("all_reduce: no memory"), ValueError("again")]
        self.engine._heard[1] = (0, "x")
        self.oob.count = 3
        self.engine._turn(self.comm)
        self.assertEqual(self.oob.calls[0], ("tell", {"call": 1, "by": 1, "to": [0, 2, 3], "why": "no memory"}))
        self.assertEqual((self.error(j), self.engine._refusal, self.engine._heard, self.engine._failed), ("all_reduce: no memory", None, {}, ""))

    def test_a_refusal_ends_with_the_communicator_or_in_time(self):
        for error, later, says in (("died", 0, "all_reduce: died"), ("", 3.1, "all_reduce: not done after 3 s")):
            self.setUp()
            j = self.submit(job(refused="why"))
            self.engine._turn(self.comm)
            self.comm.error = error
            self.now += later
            self.engine._refuse(self.engine._refusal, self.comm)
            self.assertEqual((self.error(j), self.engine._refusal), (says, None))
        self.setUp()
        self.comm.error = "died"
        j = self.submit(job(refused="why"))
        self.engine._turn(self.comm)
        self.assertEqual((self.error(j), self.oob.calls), ("all_reduce: died", []))

    def test_calls_that_differ_end_the_communicator_alone(self):
        for why in ("x (E_OP_MISMATCH)", "rank 2 disagrees on the type"):
            self.setUp()
            a, b, c = self.submit(job("reduce"), job(refused="no"), job())
            self.comm.request.answers = [ValueError(why)]
            self.engine._turn(self.comm)
            self.assertEqual((self.engine._differ, self.engine._failed, self.error(a)), (why, "", "runs"))
            self.engine._lose("y (E_OP_MISMATCH)")
            self.assertEqual(self.engine._differ, why)
            old, self.comm = self.comm, Comm()
            self.engine._heard[9] = (1, "x")
            self.assertIs(self.engine._renew(old), self.comm)
            self.assertEqual((old.calls, self.oob.calls[-1], self.engine.comm, self.engine._differ, self.engine._void), (["close"], ("meet", 10), None, "", (4, why)))
            self.assertEqual([self.error(j) for j in (a, b, c)], [f"reduce: {why}", f"all_reduce: {why}", "runs"])
            self.assertEqual((self.engine._heard, self.engine._refusal, len(self.engine._running)), ({}, None, 0))
            d, e = self.submit(job(), job())
            self.engine._turn(self.comm)
            self.engine._turn(self.comm)
            self.assertEqual([self.error(j) for j in (c, d, e)], [f"all_reduce: {why}", f"all_reduce: {why}", None])
            self.assertEqual(len(self.comm.started), 1)
        self.engine._differ, self.engine._closing = "why", True
        j = job("reduce")
        self.engine._start(j, self.comm)
        self.assertEqual(self.error(j), "reduce: why")
        with self.assertRaisesRegex(RuntimeError, "the group was destroyed"):
            self.engine._renew(self.comm)
        self.engine.close()
        self.assertTrue(self.oob.hurry)

    def test_rank_0_says_why_hosts_reduce_once(self):
        self.comm.rank, self.comm.why_hosts = 0, "no tree"
        with self.assertLogs("tributary.torch", logging.WARNING) as logs:
            self.engine._tell(self.comm)
            self.engine._tell(self.comm)
            self.comm.fell_back = "a tree has died"
            self.engine._tell(self.comm)
            self.comm.rank, self.comm.fell_back = 1, "other"
            self.engine._tell(self.comm)
        self.assertEqual(logs.output, ["WARNING:tributary.torch:g: not in the switches: no tree", "WARNING:tributary.torch:g: not in the switches: a tree has died"])

    def test_the_thread_runs_until_it_is_closed(self):
        j = self.submit(job())
        self.engine._changed = mock.MagicMock()
        self.engine._changed.wait = lambda seconds: (self.assertEqual(seconds, engines._SLICE_S), setattr(self.engine, "_closing", True))
        self.engine._run()
        self.assertEqual((self.error(j), self.created, self.oob.calls, self.comm.calls, self.engine.comm), (None, [self.oob], [("meet", None)], ["progress", "close"][1:], None))
        self.assertEqual(self.engine._failed, "the group was destroyed")

    def test_a_communicator_that_cannot_be_made_fails_the_group(self):
        j = self.submit(job())
        self.engine._create = mock.Mock(side_effect=ValueError("no fabric"))
        self.engine._run()
        self.assertEqual(self.error(j), "all_reduce: g: cannot create its communicator: no fabric")

    def test_calls_that_differ_are_left_by_the_thread(self):
        j = self.submit(job())
        comms = [Comm(), Comm()]
        comms[0].request.answers = [ValueError("x (E_OP_MISMATCH)")]
        self.engine._create = lambda oob: comms[len(self.created)] if not self.created.append(oob) and False else comms[len(self.created) - 1]
        self.engine._changed = mock.MagicMock()
        self.engine._changed.wait = lambda _: setattr(self.engine, "_closing", True)
        self.engine._run()
        self.assertEqual((self.error(j), comms[0].calls, comms[1].calls), ("all_reduce: x (E_OP_MISMATCH)", ["close"], ["close"]))
        for differ, error, says in (("", "", "g: its store: gone"), ("", "died", "died"), ("differ", "died", "differ")):
            self.setUp()
            j = self.submit(job())
            self.comm.error = error
            self.engine._turn = mock.Mock(side_effect=OSError("gone"))
            self.engine._differ = differ
            self.engine._tell = lambda _: setattr(self.engine, "_closing", self.engine._failed != "")
            self.engine._run()
            self.assertEqual(self.error(j), f"all_reduce: {says}")
        self.setUp()
        j = self.submit(job())
        self.comm.request.answers = [ValueError("x (E_OP_MISMATCH)")]
        self.oob.greatest = mock.Mock(side_effect=TimeoutError("rank 1 did not come"))
        self.engine._run()  # the others have gone: it ends by itself
        self.assertEqual((self.error(j), self.engine.comm, self.comm.calls), ("all_reduce: x (E_OP_MISMATCH)", None, ["close"]))


if __name__ == "__main__":
    unittest.main()
