# SPDX-License-Identifier: BSD-3-Clause
"""trib-nccl: options, what is read of trib sim, the table, and exit statuses; the fabric and the ranks are only noted."""
import contextlib
import getopt
import io
import json
import os
import signal
import subprocess
import tempfile
import unittest
from unittest import mock

from tributary._cli import Refused
from tributary.nccl import command
from tributary.nccl.needs import Found, Missing

FOUND = Found("/lib/libnccl.so.2", "2.27.3", ["GPU A", "GPU B"], "/lib/plugin.so")


def sim_row(algo, size, us, predicted=10.0, in_place=False):
    return {"algo": algo, "size_bytes": size, "time_us": us, "predicted_us": predicted, "in_place": in_place}


class Parts(unittest.TestCase):
    def refused(self, kind, says, call, *args):
        with self.assertRaises(kind) as e:
            call(*args)
        self.assertEqual(str(e.exception), says)

    def test_numbers_and_sizes(self):
        for text, least, n in (("7", 1, 7), ("0", 0, 0), ("999999", 1, 999999), ("2", 2, 2)):
            self.assertEqual(command.number_of({"n": text}, "n", 5, least), n)
        self.assertEqual(command.number_of({}, "n", 5), 5)
        for text, least in (("0", 1), ("1", 2), ("x", 0), ("1234567", 1), ("", 0), ("-1", 0)):
            self.refused(getopt.GetoptError, f"--n: found '{text}', expected a whole number, {least} or more", command.number_of, {"n": text}, "n", 5, least)
        self.assertEqual(command.size_of({"b": "4"}, "b", "8"), 4)
        self.assertEqual(command.size_of({"b": "8G"}, "b", "8"), 1 << 33)
        self.refused(getopt.GetoptError, "--b: found '8589934596', expected a size of whole floats from 4 to 8G, such as 64K", command.size_of, {"b": "8589934596"}, "b", "8")
        self.assertEqual(command.sizes_of({}), [65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20])
        with self.assertRaisesRegex(getopt.GetoptError, "--stepfactor: found '1', expected a whole number, 2 or more"):
            command.sizes_of({"stepfactor": "1"})

    def test_hosts_are_read_by_rank(self):
        for text, hosts in (
            ("# x\n# Ranks on hosts: 0:h0 1:h1\n# 2:h2\n# Reduced\n# 3:h3", ["h0", "h1", "h2"]), ("# 0:h0 1:h1\n", []), ("# Ranks on hosts: 0:a:b\n", ["a:b"]),
            ("# Ranks on hosts: 0:h0 x\n", []), ("", []), ("# Ranks on hosts: 0:h0\n#\n# 1:h1\n", ["h0"]),
        ):  # fmt: skip
            self.assertEqual(command.hosts_by_rank(text), hosts)
        command.one_each(["a", "b"])
        self.refused(Refused, "found 3 ranks on 2 hosts, expected a host for each; -g takes fewer", command.one_each, ["a", "b", "a"])

    def test_trib_sim_is_asked_for_all_sizes(self):
        calls = []

        def ran(words, **how):
            calls.append((words, how))
            with open(words[words.index("-J") + 1], "w", encoding="utf-8") as f:
                json.dump({"ranks": 2, "results": [sim_row("ring", 4, 1.0), sim_row("ring", 4, 9.0, in_place=True), sim_row("sharp", 8, 2.0)]}, f)
            return subprocess.CompletedProcess(words, code, hosts, "x simulated in y\ntrib: no\n")

        with mock.patch.object(command, "trib", lambda: "/bin/trib"), mock.patch.object(subprocess, "run", ran):
            code, hosts = 0, "# Ranks on hosts: 0:h0 1:h1\n"
            found, rows = command.simulated("c", {}, ["ring", "sharp"], [4, 16, 64], 4)
            self.assertEqual((found, {k: v["time_us"] for k, v in rows.items()}), (["h0", "h1"], {("ring", 4): 1.0, ("sharp", 8): 2.0}))
            words, how = calls[0]
            file = words[words.index("-J") + 1]
            self.assertEqual(words, ["/bin/trib", "sim", "c", "all_reduce", "--algo", "ring,sharp", "-n", "1", "-w", "0", "-J", file, "-b", "4", "-e", "64", "-f", "4"])
            self.assertEqual(how, {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"})
            self.assertFalse(os.path.exists(os.path.dirname(file)))
            command.simulated("c", {"ranks": "2"}, ["ring"], [4], 2)
            self.assertEqual(calls[1][0][-2:], ["-g", "2"])
            hosts = "# Ranks on hosts: 0:h0\n"
            self.refused(Refused, "trib sim: found 1 ranks on hosts, expected 2", command.simulated, "c", {}, ["ring"], [4], 2)
            code = 1
            self.refused(Refused, "no", command.simulated, "c", {}, ["ring"], [4], 2)

    def test_times_are_from_the_last_start_to_the_last_end(self):
        def line(size, at, begin, end, wrong=0):
            return {"size": size, "at": at, "begin": begin, "end": end, "wrong": wrong}

        said = [[line(4, 0, 1.0, 3.0, 1), line(4, 1, 5.0, 6.0), line(8, 0, 1.0, 2.0), line(8, 1, 1.0, 2.0)], [line(4, 0, 2.0, 2.5, 2), line(4, 1, 4.0, 6.5), line(8, 0, 1.5, 1.75), line(8, 1, 1, 2)]]
        self.assertEqual(command.merge(said, [4, 8], 2), {4: {"times_us": [1e6, 1.5e6], "wrong": 3}, 8: {"times_us": [0.5e6, 1e6], "wrong": 0}})
        self.refused(Refused, "operation 2 of 4 bytes: found the times of 0 ranks, expected 2", command.merge, said, [4], 3)
        self.refused(Refused, "operation 1 of 8 bytes: found the times of 1 ranks, expected 2", command.merge, [said[0], said[1][:3]], [4, 8], 2)

    def test_the_table_has_both_beside_each_other(self):
        nccl = {"ring": {1024: {"times_us": [1.0, 30.0, 20.0], "wrong": 1}}, "sharp": {1024: {"times_us": [8.0], "wrong": 2}}}
        sim = {("ring", 1024): sim_row("ring", 1024, 16.0, 12.0), ("sharp", 1024): sim_row("sharp", 1024, 5.0, 4.0)}
        self.assertEqual(command.table(["ring", "sharp"], [1024], nccl, sim), [
            "#     size   NCCL ring  NCCL sharp speed-up   sim ring  sim sharp speed-up theory  NCCL/sim ring NCCL/sim sharp #wrong",
            "      1024       20.00        8.00    2.500      16.00       5.00    3.200  3.000          1.250          1.600      3",
        ])  # fmt: skip
        self.assertEqual(command.table(["ring"], [1024], nccl, sim), ["#     size   NCCL ring   sim ring  NCCL/sim ring #wrong", "      1024       20.00      16.00          1.250      1"])
        sim["sharp", 1024]["predicted_us"] = None
        self.assertIn("    3.200      -  ", command.table(["ring", "sharp"], [1024], nccl, sim)[1])


class Work(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.json, self.log, self.wrong = os.path.join(folder.name, "o.json"), [], 0
        self.hosts, self.status, self.lacks = ["h0", "h1", "h2"], [0, 0, 0], None
        for where, name, instead in (
            (command, "find", self.find), (command, "simulated", self.simulated), (command.launch, "fabric", self.fabric), (command.launch, "measure", self.measure),
            (command.launch, "start", self.start), (command.launch, "wait", self.wait), (command, "free_port", lambda: 4711), (signal, "signal", lambda *_: None),
            (command.launch, "variables", lambda algo, plugin, version="": {"ALGO": algo, "PLUGIN": plugin, "VERSION": version}),
        ):  # fmt: skip
            patch = mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)

    def find(self, *args):
        self.log.append(("find", *args))
        if self.lacks:
            raise Missing(self.lacks)
        return FOUND

    def simulated(self, conf, given, algos, sizes, factor):
        self.log.append(("sim", conf, list(algos), list(sizes), factor))
        return self.hosts, {(a, s): sim_row(a, s, 10.0) for a in algos for s in sizes}

    @contextlib.contextmanager
    def fabric(self, conf, dilation):
        self.log.append(("up", conf, dilation))
        yield "up-" + conf
        self.log.append("down")

    def measure(self, up, hosts, task, env, gpus, seconds):
        self.log.append(("measure", up, task, env, gpus, seconds))
        return [[{"size": s, "at": at, "begin": 1.0, "end": 1.00002, "wrong": self.wrong} for s in task["sizes"] for at in range(task["n"])] for _ in hosts]

    def start(self, up, hosts, commands, env, gpus, port):
        self.log.append(("start", up, list(hosts), [list(c) for c in commands], env, gpus, port))
        return "ranks"

    def wait(self, ranks, seconds):
        self.log.append(("wait", ranks, seconds))
        return self.status

    def main(self, *argv):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(list(argv))
        return code, out.getvalue(), err.getvalue()

    def test_both_algorithms_are_measured_in_one_fabric(self):
        code, out, err = self.main("c", "-b", "64K", "-e", "256K", "-n", "2", "-w", "0", "--dilation", "50", "--timeout", "9", "-J", self.json)
        self.assertEqual((code, err), (0, ""))
        task = {"nccl": FOUND.nccl, "sizes": [65536, 262144], "n": 2, "warm_up": 0}
        self.assertEqual(self.log, [
            ("find", None, None, True, True), ("sim", "c", ["ring", "sharp"], [65536, 262144], 4), ("up", "c", 50),
            ("measure", "up-c", task, {"ALGO": "ring", "PLUGIN": FOUND.plugin, "VERSION": "2.27.3"}, 2, 9),
            ("measure", "up-c", task, {"ALGO": "sharp", "PLUGIN": FOUND.plugin, "VERSION": "2.27.3"}, 2, 9), "down",
        ])  # fmt: skip
        self.assertEqual(out.splitlines(), [
            "# trib nccl: NCCL 2.27.3, all_reduce of float, sum, 3 ranks on 2 x GPU A", "# Ranks on hosts: 0:h0 1:h1 2:h2",
            "# dilation 50, median of 2, times in us of fabric time; NCCL's own work on GPU and CPU counts 1/50",
            f"# ring: ALGO=ring PLUGIN={FOUND.plugin} VERSION=2.27.3", f"# sharp: ALGO=sharp PLUGIN={FOUND.plugin} VERSION=2.27.3",
            "#     size   NCCL ring  NCCL sharp speed-up   sim ring  sim sharp speed-up theory  NCCL/sim ring NCCL/sim sharp #wrong",
            "     65536       20.00       20.00    1.000      10.00      10.00    1.000  1.000          2.000          2.000      0",
            "    262144       20.00       20.00    1.000      10.00      10.00    1.000  1.000          2.000          2.000      0", "# Out of bounds values : 0 OK",
        ])  # fmt: skip
        with open(self.json, encoding="utf-8") as f:
            saved = json.load(f)
        self.assertEqual({k: v for k, v in saved.items() if k != "results"}, {"nccl": "2.27.3", "gpus": ["GPU A", "GPU B"], "hosts": self.hosts, "dilation": 50})
        self.assertEqual([(r["algo"], r["size_bytes"], len(r["times_us"]), r["wrong"], r["sim_us"], r["predicted_us"]) for r in saved["results"]],
                         [(a, s, 2, 0, 10.0, 10.0) for a in ("ring", "sharp") for s in (65536, 262144)])  # fmt: skip

    def test_defaults_and_wrong_elements(self):
        self.wrong = 1
        code, out, err = self.main("c", "--algo", "ring", "-e", "64K")
        self.assertEqual((code, err, out.splitlines()[-1]), (1, "trib-nccl: found 15 wrong elements, expected none\n", "# Out of bounds values : 15 FAILED"))
        self.assertEqual(self.log[:3], [("find", None, None, True, False), ("sim", "c", ["ring"], [65536], 4), ("up", "c", 1000)])
        self.assertEqual((self.log[3][2]["n"], self.log[3][2]["warm_up"], self.log[3][-1]), (5, 2, 300))
        self.hosts = ["a", "a"]
        self.assertEqual(self.main("c")[::2], (1, "trib-nccl: found 2 ranks on 1 hosts, expected a host for each; -g takes fewer\n"))
        self.lacks = "no GPU\nno plug-in"
        self.assertEqual(self.main("c"), (1, "", "trib-nccl: no GPU\ntrib-nccl: no plug-in\n"))

    def test_a_program_runs_on_each_host(self):
        self.assertEqual(self.main("c", "--algo", "sharp", "--plugin", "p", "--nccl", "l", "--timeout", "7", "--", "prog", "-x"), (0, "", ""))
        self.assertEqual(self.log, [
            ("find", "l", "p", False, True), ("sim", "c", ["ring"], [4], 2), ("up", "c", 1000),
            ("start", "up-c", self.hosts, [["prog", "-x"]] * 3, {"ALGO": "sharp", "PLUGIN": FOUND.plugin, "VERSION": ""}, 2, 4711), ("wait", "ranks", 7), "down",
        ])  # fmt: skip
        for options, sharp in (((), False), (("--plugin", "p"), True), (("--algo", "ring"), False)):
            self.log.clear()
            self.main("c", *options, "--", "prog")
            self.assertEqual(self.log[0], ("find", None, "p" if options[:1] == ("--plugin",) else None, False, sharp))
        for status, says in (([0, 3, 0], "rank 1 (h1): exit status 3"), ([0, 0, None], "rank 2 (h2): had not ended"), ([-9, 0, 0], "rank 0 (h0): ended by signal 9")):
            self.status = status
            self.assertEqual(self.main("c", "--", "prog"), (1, "", f"trib-nccl: {says}\n"))
        self.assertEqual(self.main("c", "--algo", "ring,sharp", "--", "prog"), (2, "", "trib-nccl: --algo: found 'ring,sharp', expected one algorithm with PROGRAM\n"))

    def test_a_command_line_that_is_wrong(self):
        usage = "expected: trib nccl CONF [OPTION...] [-- PROGRAM [ARG...]]\n"
        for argv, says in (
            ((), f"found no CONF, {usage}"), (("a", "b\x1b"), f"found a b?, {usage}"), (("c", "-g", "1"), "--ranks: found '1', expected a whole number, 2 or more\n"),
            (("c", "-b", "2K", "-e", "1K"), "-b: found 2048 bytes, expected no more than the 1024 of -e\n"),
            (("c", "--warmup_iters", "x"), "--warmup_iters: found 'x', expected a whole number, 0 or more\n"), (("c", "-n", "0"), "--iters: found '0', expected a whole number, 1 or more\n"),
        ):  # fmt: skip
            self.assertEqual(self.main(*argv), (2, "", f"trib-nccl: {says}"))

    def test_signals_end_what_was_started(self):
        handlers = {}
        with mock.patch.object(signal, "signal", handlers.__setitem__):
            self.main()
        self.assertEqual(sorted(handlers), sorted([signal.SIGTERM, signal.SIGHUP]))
        for number, handler in handlers.items():
            with self.assertRaises(SystemExit) as e:
                handler(number, None)
            self.assertEqual(e.exception.code, 128 + number)


if __name__ == "__main__":
    unittest.main()
