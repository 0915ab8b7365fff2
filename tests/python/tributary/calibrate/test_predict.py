# SPDX-License-Identifier: BSD-3-Clause
"""What is simulated of a series, how trib sim is called, and what is read between its sizes."""
import json
import subprocess
import tempfile
import unittest
from unittest import mock

from tributary._cli import Refused
from tributary.calibrate import predict
from tributary._conf_text import Conf
from tributary.calibrate.rows import MIB, Row, Series


def series(sizes, ranks=4, kind="time", algo="ring"):
    s = Series("f", "all_reduce", algo, ranks, None, kind)
    s.rows = [Row(size, 1.0, i) for i, size in enumerate(sizes)]
    return s


class Predict(unittest.TestCase):
    def test_two_hosts_have_the_links_of_the_network(self):
        conf = Conf('name = "x"; mtu = 1024; costs = { a = 1; }; ecmp = "x"; link_defaults = { rate = "1Gb/s"; };\ngpu_nodes = { gpus = 2; nic = { rate = "2Gb/s"; }; };\n')
        self.assertEqual(predict.two_hosts(conf), (
            'name = "two-hosts";\nmtu = 1024;\ncosts = { a = 1; };\nlink_defaults = { rate = "1Gb/s"; };\n'
            'single_switch = { hosts = 2; host_link = { rate = "2Gb/s"; }; };\n'
        ))  # fmt: skip
        self.assertEqual(predict.two_hosts(Conf('link_defaults = { rate = "1Gb/s"; };')), (
            'name = "two-hosts";\nlink_defaults = { rate = "1Gb/s"; };\nsingle_switch = { hosts = 2; host_link = { }; };\n'
        ))  # fmt: skip

    def test_time_bends_where_its_slope_or_its_links_say_so(self):
        for times, busy, found in (
            ({1: 9, 2: 1.0, 4: 3.0, 8: 7.0}, {2: 0, 4: 0, 8: 0}, False), ({2: 1.0, 4: 3.0, 8: 7.2}, {2: 0, 4: 0, 8: 0}, False),
            ({2: 1.0, 4: 3.0, 8: 7.3}, {2: 0, 4: 0, 8: 0}, True), ({2: 1.0, 4: 3.0, 8: 6.7}, {2: 0, 4: 0, 8: 0}, True), ({2: 1.0, 4: 3.0, 8: 7.0}, {2: 9, 4: 1.0, 8: 5.39}, False),
            ({2: 1.0, 4: 3.0, 8: 7.0}, {2: 9, 4: 1.0, 8: 5.41}, True), ({2: 1.0, 4: 1.0, 8: 1.0}, {2: 0, 4: 0, 8: 0}, True), ({2: 1.0, 4: 2.0, 8: 4.0}, {2: 0, 4: 0, 8: 0}, False),
            ({2: 1.0, 5: 7.0, 11: 19.0}, {2: 0, 5: 1, 11: 1}, False),
        ):  # fmt: skip
            self.assertEqual(predict.bends(times, busy), found, (times, busy))

    def test_sizes_are_between_those_of_the_rows(self):
        k = 1024
        for sizes, ranks, kind, found in (
            ([MIB, 16 * MIB], 4, "time", (MIB, 16 * MIB, 2)), ([MIB, 512 * MIB], 1, "time", (MIB, 512 * MIB, 4)), ([MIB, 511 * MIB], 1, "time", (MIB, 511 * MIB, 2)),
            ([MIB, 1024 * MIB], 4, "time", (MIB, 128 * MIB, 2)), ([64 * MIB, 1024 * MIB], 4, "time", (8 * MIB, 128 * MIB, 2)), ([4 * MIB, 1024 * MIB], 64, "time", (MIB, 16 * MIB, 2)),
            ([MIB], 4, "time", (MIB // 2, MIB, 2)), ([k], 4, "latency", (k, k, 2)), ([2], 2, "latency", (k, 32, 2)), ([2, 4 * k], 2, "latency", (8, 4 * k, 4)),
            ([2, 4096], 4, "latency", (16, 4096, 2)), ([8, 16], 8, "time", (32, 128, 2)), ([64 * k], 2, "rate", (MIB, 16 * MIB, 2)), ([64 * k, 8 * MIB], 2, "rate", (8 * MIB, 128 * MIB, 2)),
        ):  # fmt: skip
            self.assertEqual(predict.simulated_sizes(series(sizes, ranks, kind), series(sizes).rows), found, (sizes, ranks, kind))

    def test_between_the_sizes_is_a_line(self):
        times = {10: 1.0, 20: 3.0, 40: 5.0}
        for size, us in ((10, 1.0), (15, 2.0), (20, 3.0), (30, 4.0), (40, 5.0), (60, 7.0), (5, 0.0)):
            self.assertAlmostEqual(predict.between(times, size), us)
        self.assertAlmostEqual(predict.between({10: 1.0, 20: 3.0}, 15), 2.0)
        self.assertEqual(predict.predicted(series([15, 60]), times, series([15, 60]).rows), [2.0, 7.0])
        self.assertEqual(predict.predicted(series([15, 60], kind="rate"), times, series([15, 60]).rows), [1.5, 6.0])


class Simulations(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work, self.calls, self.answers = folder.name, [], []
        for name, instead in (("program", lambda name: f"/bin/{name}"), ("subprocess.run", self.ran)):
            patch = mock.patch.object(predict, name, instead) if name == "program" else mock.patch.object(subprocess, "run", instead)
            patch.start()
            self.addCleanup(patch.stop)

    def ran(self, command, **how):
        self.calls.append((command, how))
        with open(command[1], encoding="utf-8") as f:
            self.text = f.read()
        code, stderr, rows = self.answers.pop(0)
        if rows is not None:
            with open(command[command.index("-J") + 1], "w", encoding="utf-8") as f:
                json.dump({"results": rows}, f)
        return subprocess.CompletedProcess(command, code, "", stderr)

    def rows(self, **us):
        return [{"algo": "ring", "size_bytes": int(k[1:]), "time_us": v, "link_utilisation": 0.5} for k, v in us.items()]

    def test_trib_sim_is_called_without_payload(self):
        sim, s = predict.Simulator(self.work), series([4])
        other = [{"algo": "tree", "size_bytes": 4, "time_us": 9.0}, {"algo": "ring", "size_bytes": 16, "time_us": None}, {"algo": "ring", "size_bytes": 32, "time_us": 7.0}]
        self.answers = [(0, "", self.rows(b4=1.0, b8=3.0) + other)]
        with mock.patch.dict("os.environ", {"X": "y"}, clear=True):
            self.assertEqual(sim.run("text", s, (4, 8, 2)), ({4: 1.0, 8: 3.0, 32: 7.0}, {4: 0.5, 8: 1.5, 32: 0.0}))
        ((command, how),) = self.calls
        out = f"{self.work}/out.json"
        self.assertEqual(command, ["/bin/trib-sim", f"{self.work}/fabric.conf", "all_reduce", "-g", "4", "--algo", "ring", "--payload", "none", "--place", "out", "-w", "0",
                                   "-b", "4", "-e", "8", "-f", "2", "-J", out])  # fmt: skip
        self.assertEqual(how, {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "env": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "X": "y"}})
        self.assertEqual(self.text, "text")
        s.algo = "nvls"
        self.answers = [(0, "", [{"algo": "nvls", "size_bytes": 4, "time_us": 1.0}])]
        sim.run("text", s, (4, 8, 2))
        self.assertEqual(self.calls[1][0][-1], "--mm-self")

    def test_what_it_refuses_is_told(self):
        path = f"{self.work}/fabric.conf"
        head = "trib sim cannot predict all_reduce of 4 ranks by ring on CONF: "
        for code, stderr, rows, says in (
            (2, f"x\ntrib-sim: 1 s simulated in 2 s\ntrib-sim: {path}:3: no\n", None, "trib-sim: CONF:3: no"), (3, "", self.rows(b4=1.0), "exit status 3"), (0, "", [], "exit status 0"),
            (0, "", None, "exit status 0"),
        ):  # fmt: skip
            self.answers = [(0, "", self.rows(b4=1.0)), (code, stderr, rows)]
            sim = predict.Simulator(self.work)
            sim.run("text", series([4]), (4, 8, 2))
            with self.assertRaises(Refused) as e:  # what the run before has left is not taken
                sim.run("text", series([4]), (4, 8, 2))
            self.assertEqual(str(e.exception), head + says)

    def test_sizes_grow_until_time_is_a_line(self):
        line = {"b1": 1.0, "b2": 2.0, "b4": 4.0}
        bent = {"b1": 1.0, "b2": 2.0, "b4": 9.0}
        sim, conf = predict.Simulator(self.work), Conf("mtu = 1;\nlink_defaults = { };")
        self.answers = [(0, "", self.rows(**bent)), (0, "", self.rows(b8=23.0))]
        self.assertEqual(sim.times(conf, series([16]), (1, 4, 2)), {1: 1.0, 2: 2.0, 4: 9.0, 8: 23.0})
        self.assertEqual([c[0][c[0].index("-b"):][1:6:2] for c in self.calls], [["1", "4", "2"], ["8", "8", "2"]])
        self.assertEqual(sim.times(conf, series([16]), (1, 4, 2))[8], 23.0)  # it is known
        self.assertEqual(len(self.calls), 2)
        self.assertEqual(self.text, conf.text)
        for rows, sizes, ranks in ((line, [16], 4), (bent, [4], 4), ({"b1": 1.0, "b2": 9.0}, [16], 4), (bent, [16], 1 << 30)):
            self.answers = [(0, "", self.rows(**rows))]
            self.assertEqual(len(sim.times(conf, series(sizes, ranks), (1, 4, 3 + len(self.calls)))), len(rows))
        self.answers = [(0, "", self.rows(**bent)), (0, "", self.rows(b8=23.0))]
        self.assertEqual(len(sim.times(conf, series([16], 1 << 29), (1, 4, 99))), 4)  # 8 bytes of so many ranks are the most
        self.answers = [(0, "", self.rows(**line))]
        sim.times(conf, series([16], kind="rate"), (1, 4, 2))
        self.assertEqual(self.text, predict.two_hosts(conf))


if __name__ == "__main__":
    unittest.main()
