# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of NCCL on a fabric: their variables, their commands, whom a signal ends and what is heard of them; processes are only noted."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import types
import unittest
from unittest import mock

from tributary._cli import Refused
from tributary.nccl import launch


class Rank:
    made = []

    def __init__(self, words, **how):
        self.words, self.how, self.pid, self.status, self.waits = words, how, 1000 + len(Rank.made), [], []
        Rank.made.append(self)

    def poll(self):
        return self.status.pop(0) if len(self.status) > 1 else self.status[0] if self.status else None

    def wait(self, seconds=None):
        self.waits.append(seconds)
        if seconds is not None and not self.status:
            raise subprocess.TimeoutExpired("x", seconds)


class Launch(unittest.TestCase):
    def setUp(self):
        Rank.made.clear()
        self.now, self.slept, self.signals = 100.0, [], []
        for where, name, instead in (
            (launch, "trib", lambda: "/bin/trib"), (launch, "time", types.SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)), (os, "killpg", self.kill),
        ):
            patch = mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.dict(os.environ, {"HOME": "/h"}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def kill(self, pid, number):
        self.signals.append((pid, number))
        if pid == 1001:
            raise ProcessLookupError

    def refused(self, says, call, *args):
        with self.assertRaises(Refused) as e:
            call(*args)
        self.assertEqual(str(e.exception), says)

    def test_variables_are_of_the_algorithm_and_a_user_s_win(self):
        off = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
        ring = {"NCCL_ALGO": "allreduce:Ring", "NCCL_NET": "IB", "NCCL_NET_PLUGIN": "none"}
        plugin = {"NCCL_NET_PLUGIN": "/d/libnccl-net-x.so", "NCCL_COLLNET_ENABLE": "1", "NCCL_PLUGIN_P2P": "ib"}
        for args, found in (
            ((None, None), off), (("ring", "/d/libnccl-net-x.so"), {**off, **ring}), (("sharp", None), {**off, "NCCL_ALGO": "allreduce:CollNetChain", "NCCL_COLLNET_ENABLE": "1"}),
            (("sharp", "/d/libnccl-net-x.so"), {**off, "NCCL_ALGO": "allreduce:CollNetChain", **plugin}), ((None, "/d/libnccl-net-x.so"), {**off, **plugin}),
        ):  # fmt: skip
            self.assertEqual(launch.variables(*args), found)
        os.environ.update(NCCL_ALGO="mine", NCCL_P2P_DISABLE="0", LD_LIBRARY_PATH="/l", X="y")
        self.assertEqual(launch.variables("ring", None), {**off, **ring, "NCCL_ALGO": "mine", "NCCL_P2P_DISABLE": "0"})
        found = launch.variables("sharp", "/d/libnccl-net-x.so", "2.25.1")
        self.assertEqual((found["NCCL_NET_PLUGIN"], found["LD_LIBRARY_PATH"]), ("x", "/d:/l"))
        del os.environ["LD_LIBRARY_PATH"]
        for path, version, found in (
            ("/d/libnccl-net-x.so", "2.25.9", {"NCCL_NET_PLUGIN": "x", "LD_LIBRARY_PATH": "/d"}), ("/d/libnccl-net-x.so", "2.26.0", {"NCCL_NET_PLUGIN": "/d/libnccl-net-x.so"}),
            ("/d/x.so", "2.20.1", {"NCCL_NET_PLUGIN": "/d/x.so"}), ("/d/libnccl-net-x.so", "", {"NCCL_NET_PLUGIN": "/d/libnccl-net-x.so"}),
        ):  # fmt: skip
            self.assertEqual(launch._plugin_variables(path, version), found)

    def test_a_fabric_is_up_as_long_as_it_is_used(self):
        calls, code = [], 0

        def ran(words, **how):
            calls.append((words, how))
            return subprocess.CompletedProcess(words, code, "", " trib: it is up \n")

        with mock.patch.object(subprocess, "run", ran):
            with contextlib.suppress(KeyError), launch.fabric("c", 50) as up:
                self.assertEqual((up, len(calls)), ("c", 1))
                raise KeyError
            how = {"stdin": subprocess.DEVNULL, "capture_output": True}
            self.assertEqual(calls, [(["/bin/trib", "up", "c", "--dilation", "50"], {**how, "text": True, "errors": "replace"}), (["/bin/trib", "down", "c"], how)])
            code = 1
            self.refused("it is up", launch.fabric("c", 50).__enter__)
            self.assertEqual(len(calls), 3)

    def test_a_rank_is_started_on_each_host(self):
        with mock.patch.object(subprocess, "Popen", Rank):
            ranks = launch.start("c", ["h0", "h1", "h2"], [["a"], ["b", "x"], ["c"]], {"E": "f", "HOME": "/g"}, 2, list("abcdef"), 77)
            self.assertEqual(ranks, Rank.made)
            self.assertEqual([r.words for r in ranks], [["/bin/trib", "exec", "--clock", "fabric", "c", f"h{i}", "--", *w] for i, w in enumerate((["a"], ["b", "x"], ["c"]))])
            how = ranks[1].how
            self.assertEqual(how.pop("env"), {"HOME": "/g", "RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "77", "E": "f"})
            self.assertEqual(how, {"stdin": subprocess.DEVNULL, "text": True, "start_new_session": True, "stdout": "c", "stderr": "d"})
            self.assertEqual(ranks[2].how["env"]["LOCAL_RANK"], "0")
            Rank.made.clear()
            (rank,) = launch.start("c", ["h0"], [["a"]], {}, 1)
            self.assertEqual((rank.how["env"]["MASTER_PORT"], "stdout" in rank.how), ("0", False))
            with self.assertRaises(IndexError):  # of the second
                launch.start("c", ["h0", "h1"], [["a"]], {}, 1)
            self.assertEqual(self.signals, [(1001, signal.SIGTERM), (1001, signal.SIGKILL)])

    def ranks(self, *status):
        Rank.made.clear()
        found = [Rank([]) for _ in status]
        for rank, s in zip(found, status):
            rank.status = list(s)
        return found

    def test_waiting_ends_with_all_or_the_first_that_fails_or_in_time(self):
        for status, seconds, found, slept in (
            (([None, None, 0], [None, 0, 0]), 9, [0, 0], None), (([None], [3]), 9, [None, 3], 1.0), (([None], [0]), 0.05, [None, 0], None), (([-9], [0]), 9, [-9, 0], 1.0),
        ):  # fmt: skip
            self.slept.clear()
            self.assertEqual(launch.wait(self.ranks(*status), seconds), found)
            self.assertEqual(self.slept[-1:] == [1], slept == 1.0)
            self.assertTrue(all(s == 0.02 for s in self.slept[: -1 if slept else None]))
        self.assertEqual(launch.wait(self.ranks([None]), 0.05), [None])

    def test_all_have_ended_after_a_while(self):
        ranks = self.ranks([], [], [0])
        launch._stop(ranks)
        self.assertEqual(self.signals, [(1000 + i, signal.SIGTERM) for i in range(3)] + [(1000 + i, signal.SIGKILL) for i in range(3)])
        self.assertEqual([r.waits for r in ranks], [[10.0, None]] * 3)
        ranks = self.ranks([0], [0])
        ranks[0].wait = lambda seconds=None: setattr(self, "now", self.now + 99)
        launch._stop(ranks)
        self.assertEqual(ranks[1].waits, [0.1, None])

    def test_what_ranks_said_is_heard(self):
        hosts = ["h0", "h1", "h2"]
        heard = launch._heard(hosts, [0, 0, 0], ['{"a": 1}\nnoise\n{"b": 2}\n{cut\n', "", "x}"], ["", "e", ""], 5)
        self.assertEqual(heard, [[{"a": 1}, {"b": 2}], [], []])
        self.refused(
            "rank 0 (h0): no NCCL\nrank 1 (h1): why not\nrank 2 (h2): ended by signal 9", launch._heard, hosts, [1, 2, -9],
            ['{"size": 4}\n{"failed": "no NCCL"}\n', "", ""], ["words", "trib: the clock of h1 lags\nwhy not\n", ""], 5,
        )
        self.refused("rank 1 (h1): exit code 1, without a word", launch._heard, hosts, [0, 1, None], ["", "", ""], ["x", "trib: the clock of h1 lags\n", "y"], 5)
        self.refused(
            "ranks 0, 2 of 3 had not ended after 5 s; --timeout gives them longer, NCCL_DEBUG=INFO says what they wait for", launch._heard, hosts, [None, 0, None], [""] * 3, [""] * 3, 5.2,
        )

    def test_each_rank_measures_its_task(self):
        seen = {}

        def start(conf, hosts, commands, env, gpus, to):
            seen.update(conf=conf, commands=commands, env=env, gpus=gpus, to=to)
            for r in range(len(hosts)):
                to[2 * r].write(json.dumps({"rank": r}) + "\n")
                to[2 * r + 1].write("words")
            return "ranks"

        os.environ["PYTHONPATH"] = "/mine"
        with mock.patch.object(launch, "start", start), mock.patch.object(launch, "wait", lambda ranks, seconds: seen.update(waited=(ranks, seconds)) or [0, 0, 0]):
            self.assertEqual(launch.measure("c", ["h0", "h1", "h2"], {"n": 1}, {"E": "f"}, 2, 9), [[{"rank": r}] for r in range(3)])
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(launch.__file__))))
        self.assertEqual((seen["conf"], seen["gpus"], seen["waited"], seen["env"]), ("c", 2, ("ranks", 9), {"E": "f", "PYTHONPATH": f"{package}:/mine"}))
        tasks = [json.loads(c.pop()) for c in seen["commands"]]
        self.assertEqual(seen["commands"], [[sys.executable, "-m", "tributary.nccl.rank"]] * 3)
        meet = tasks[0]["meet"]
        self.assertEqual(tasks, [{"n": 1, "rank": r, "ranks": 3, "gpu": r % 2, "meet": meet} for r in range(3)])
        self.assertEqual((os.path.basename(meet), os.path.exists(os.path.dirname(meet)), all(f.closed for f in seen["to"])), ("id", False, True))


if __name__ == "__main__":
    unittest.main()
