# SPDX-License-Identifier: BSD-3-Clause
"""trib-calibrate: what options and files give together, what is told, and the conf that is written; trib sim is a formula here."""
import contextlib
import getopt
import io
import os
import subprocess
import tempfile
import unittest
from unittest import mock

from tributary._cli import Refused
from tributary.calibrate import command
from tributary._conf_text import Conf
from tributary.calibrate.paths import seconds
from tributary.calibrate.rows import MIB, Options, Row, Series

NODE = Conf("gpu_nodes = { gpus = 4; };")
ALL = "all_reduce, all_gather, reduce_scatter, alltoall, broadcast, reduce, sendrecv"


def options(**given):
    o = Options()
    for k, v in given.items():
        setattr(o, k, v)
    return o


def series(sizes=(), ranks=4, kind="time", collective="all_reduce", algo=None, hosts=None):
    s = Series("d/f", collective, algo, ranks, hosts, kind)
    s.rows = [Row(n, n / 1e5 + 10, i) for i, n in enumerate(sizes, 1)]
    return s


def times(conf, _s, _sizes):
    """What trib sim would say: a launch, and the size over the rate."""
    rate = 1e5 * float(conf.get("gpu_nodes.nvlink.efficiency") or 1)
    return {n: n / rate + 1e6 * seconds(conf.get("costs.nvlink.launch")) for n in (MIB, 8 * MIB)}


class Told(unittest.TestCase):
    def refused(self, says, call, *args):
        with self.assertRaises(Refused) as e:
            call(*args)
        self.assertEqual(str(e.exception), says)

    def said(self, call, *args):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            call(*args)
        return out.getvalue(), err.getvalue()


class Parts(Told):
    def test_options_become_values(self):
        o = command.options_of({})
        self.assertEqual((o.output, o.algo, o.collective, o.ranks, o.place, o.least), (None, None, None, None, "out", None))
        o = command.options_of({"output": "x", "algo": "ring", "collective": "reduce", "ranks": "2", "place": "in", "from": "64K"})
        self.assertEqual((o.output, o.algo, o.collective, o.ranks, o.place, o.least), ("x", "ring", "reduce", 2, "in", 65536))
        for text, size in (("0", 0), ("7", 7), ("7B", 7), ("2K", 2048), ("2KB", 2048), ("3MiB", 3 << 20), ("1G", 1 << 30)):
            self.assertEqual(command.options_of({"from": text}).least, size)
        for key, text, says in (
            ("ranks", "1", "--ranks: found '1', expected a number of ranks, 2 or more"), ("ranks", "x", "--ranks: found 'x', expected a number of ranks, 2 or more"),
            ("ranks", "123456", "--ranks: found '123456', expected a number of ranks, 2 or more"), ("from", "1T", "--from: found '1T', expected a size such as 64K or 4M"),
            ("from", "", "--from: found '', expected a size such as 64K or 4M"), ("from", "1.5M", "--from: found '1.5M', expected a size such as 64K or 4M"),
        ):  # fmt: skip
            with self.assertRaises(getopt.GetoptError) as e:
                command.options_of({key: text})
            self.assertEqual(str(e.exception), says)
        self.assertEqual(command.options_of({"ranks": "99999"}).ranks, 99999)

    def test_what_a_file_does_not_name_is_usual(self):
        for s, o, collective, ranks, algo in (
            (series(), {}, "all_reduce", 4, "ring"), (series(ranks=8), {}, "all_reduce", 8, "hier"), (series(collective="alltoall"), {}, "alltoall", 4, "direct"),
            (series(ranks=8, collective="sendrecv"), {}, "sendrecv", 8, "direct"), (series(ranks=8, collective="broadcast"), {}, "broadcast", 8, "ring"),
            (series(ranks=8, collective="reduce"), {}, "reduce", 8, "ring"), (series(ranks=0, collective=None), {"ranks": 2, "collective": "reduce"}, "reduce", 2, "ring"),
            (series(ranks=2), {"ranks": 3, "collective": "reduce", "algo": "tree"}, "all_reduce", 2, "tree"), (series(algo="chain"), {}, "all_reduce", 4, "chain"),
            (series(algo="chain"), {"algo": "tree"}, "all_reduce", 4, "tree"), (series(kind="rate", algo="direct"), {"algo": "tree"}, "all_reduce", 4, "direct"),
            (series(algo="nvls"), {}, "all_reduce", 4, "nvls"), (series(ranks=8, algo="nvls"), {"algo": "nvls_sharp"}, "all_reduce", 8, "nvls_sharp"),
            (series(ranks=8, hosts=2), {}, "all_reduce", 8, "hier"), (series(ranks=5, hosts=2), {}, "all_reduce", 5, "hier"), (series(hosts=3, kind="rate"), {}, "all_reduce", 4, None),
        ):  # fmt: skip
            command.complete(NODE, s, options(**o))
            self.assertEqual((s.collective, s.ranks, s.algo), (collective, ranks, algo))
        s = series((4, 8))
        s.per_rank = True
        command.complete(NODE, s, options())
        self.assertEqual([r.size for r in s.rows], [16, 32])
        for conf in (Conf("mtu = 1;"), Conf("gpu_nodes = { gpus = 1; };")):
            s = series(ranks=8, hosts=3, algo="nvls")
            command.complete(conf, s, options())
            self.assertEqual(s.algo, "nvls")
            s = series(ranks=8)
            command.complete(conf, s, options())
            self.assertEqual(s.algo, "ring")

    def test_what_nobody_names_is_refused(self):
        not_ours = series()
        not_ours.not_ours = "why not"
        for s, says in (
            (series(collective=None), f"d/f: found no name of a collective, expected --collective with one of {ALL}"),
            (series(collective="scan"), f"d/f: found the collective scan, expected --collective with one of {ALL}"),
            (series(ranks=0), "d/f: found no number of ranks (# Rank lines), expected -g RANKS"), (series(ranks=1), "d/f: found no number of ranks (# Rank lines), expected -g RANKS"),
            (series(ranks=8, hosts=1), "d/f: found 8 ranks on 1 hosts, expected 2 hosts: CONF has 4 GPUs a node"),
            (series(ranks=9, hosts=2), "d/f: found 9 ranks on 2 hosts, expected 3 hosts: CONF has 4 GPUs a node"), (not_ours, "why not"),
            (series(ranks=8, algo="nvls"),
             "d/f: found NVLS of 8 ranks on nodes of 4 GPUs, which is NVLS in nodes and SHARP between them, expected --algo nvls_sharp"),
        ):  # fmt: skip
            self.refused(says, command.complete, NODE, s, options())
        command.complete(NODE, not_ours, options(algo="ring"))
        self.assertEqual(not_ours.algo, "ring")

    def test_rows_from_a_size_on_count(self):
        k = 1024
        for kind, least, sizes, used in (
            ("time", None, (k, MIB, 2 * MIB, 4 * MIB), 3), ("time", k, (k, MIB, 2 * MIB), 3), ("rate", None, (64 * k - 1, 64 * k), 1), ("latency", None, (1, 2, 4), 3),
            ("time", 0, (1, 2, 4), 3),
        ):  # fmt: skip
            s = series(sizes, kind=kind)
            command.choose_rows(s, options(least=least))
            self.assertEqual(sum(r.use == "used" for r in s.rows), used)
            self.assertTrue(all(r.use.startswith("below ") for r in s.rows[: len(sizes) - used]))
            self.assertGreater(s.sizes[1], 0)
        s = series((k, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB))
        s.rows[5].us *= 2
        s.expected = [k, 2 * k, MIB, 32 * MIB, 64 * MIB]
        command.choose_rows(s, options())
        self.assertEqual((s.rows[0].use, s.rows[5].use, s.notes), ("below 1 MiB", "outlier", ["f: no rows of 2 sizes that its head announces: 32 MiB, 64 MiB"]))
        self.assertEqual(s.sizes, (MIB, 16 * MIB, 2))
        s = series((MIB, 2 * MIB, 4 * MIB))
        s.expected = [n * MIB for n in range(4, 12)]
        command.choose_rows(s, options())
        self.assertEqual(s.notes, ["f: no rows of 7 sizes that its head announces: 5 MiB, 6 MiB, 7 MiB, 8 MiB, 9 MiB, 10 MiB, ..."])
        s.expected, s.notes = s.expected[:7], []
        command.choose_rows(s, options())
        self.assertEqual(s.notes, ["f: no rows of 6 sizes that its head announces: 5 MiB, 6 MiB, 7 MiB, 8 MiB, 9 MiB, 10 MiB"])
        for sizes, kind, says in (
            ((k, MIB), "time", "d/f: found 1 size from 1 MiB on, expected 3 or more (--from takes smaller ones)"),
            ((MIB, 2 * MIB, MIB), "time", "d/f: found 2 sizes from 1 MiB on, expected 3 or more (--from takes smaller ones)"),
            ((k,), "rate", "d/f: found 0 sizes from 64 KiB on, expected 1 or more (--from takes smaller ones)"),
        ):
            self.refused(says, command.choose_rows, series(sizes, kind=kind), options())

    def test_neighbours_that_differ_together_are_a_regime(self):
        text = (
            "trib-calibrate: d/f: %s to %s differ together: another regime rather than outliers (a protocol, or steps that CONF has no costs of); --from leaves small sizes "
            "out, results of several numbers of ranks tell steps\n"
        )
        for uses, told in (
            ("ooouu", [("1 MiB", "3 MiB")]), ("uuooo", [("3 MiB", "5 MiB")]), ("oouoo", []), ("ooxouooo", [("1 MiB", "4 MiB"), ("6 MiB", "8 MiB")]), ("ouuuu", []),
        ):  # fmt: skip
            s = series([n * MIB for n in range(len(uses), 0, -1)])
            for r, use in zip(s.rows, uses[::-1]):
                r.use = {"o": "outlier", "u": "used", "x": "below 1 MiB"}[use]
            self.assertEqual(self.said(command.regime, s), ("", "".join(text % t for t in told)))

    def test_the_table_has_each_row(self):
        s = series((1000, 2000, 4000, 8000), algo="ring")
        s.rows[0].use, s.rows[3].use = "below 1 MiB", "outlier"
        for r, us in zip(s.rows, (9.0, 20.0, 50.0, 100.0)):
            r.us = us
        sim = mock.Mock(times=lambda conf, s, sizes: {1000: 10.0, 8000: 80.0})
        out, err = self.said(command.show, [s], NODE, sim)
        self.assertEqual(out, (
            "# f: all_reduce by ring, 4 ranks\n"
            "#     size (B)  measured (us) predicted (us)     error\n"
            "          1000           9.00              -         -  below 1 MiB\n"
            "          2000          20.00          20.00    +0.0 %  used\n"
            "          4000          50.00          40.00   -20.0 %  used\n"
            "          8000         100.00          80.00   -20.0 %  outlier\n"
            "# error of 2 rows: median 10.0 %, worst 20.0 %\n"
        ))  # fmt: skip
        self.assertEqual(err, "trib-calibrate: d/f:4: 8000 B is an outlier, left out: measured 100.00 us, +25 % of the prediction\n")

    def test_keys_that_results_do_not_tell_are_said(self):
        conf = Conf('costs = { nvlink = { launch = "1us"; step = "2us"; }; };')
        path = mock.Mock(efficiency=["a.e", "b.e"], launch="costs.nvlink.launch", step="costs.nvlink.step")
        low = "trib-calibrate: costs.nvlink.%s is 0: the floor of the results is below that of CONF: expected less of the other costs (step, gpu), or results of two numbers of ranks\n"
        for unknown, bound, step, out, err in (
            (["slowness"], [], path.step, ["a.e = None", "b.e = None", "the floor stays: bandwidths of message streams have none"], ""),
            (["slowness", "launch"], ["launch"], path.step, ["a.e = None", "b.e = None", "costs.nvlink.launch = 1us",
             "costs.nvlink.step stays 2us: one number of ranks tells the sum of launch and steps only"], low % "launch"),
            (["slowness", "launch"], [], "x.step", ["a.e = None", "b.e = None", "costs.nvlink.launch = 1us",
             "x.step stays absent: one number of ranks tells the sum of launch and steps only"], ""),
            (["slowness", "launch", "step"], ["slowness", "step"], path.step, ["a.e = None", "b.e = None", "costs.nvlink.launch = 1us", "costs.nvlink.step = 2us"], low % "step"),
            (["slowness", "launch"], [], None, ["a.e = None", "b.e = None", "costs.nvlink.launch = 1us"], ""),
        ):  # fmt: skip
            path.step, found = step, []
            f = mock.Mock(path=path, unknown=unknown, at_bound=bound)
            self.assertEqual(self.said(lambda f=f, found=found: found.append(command.tell(f, conf))), ("", err))
            self.assertEqual(found, [out])


class Whole(Told):
    TEXT = 'gpu_nodes = { gpus = 4; nvlink = { rate = "100GB/s"; }; };\n'

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        at = os.getcwd()
        self.addCleanup(os.chdir, at)
        os.chdir(folder.name)
        self.answers = {}
        self.put("x.conf", self.TEXT)
        self.put("f.txt", "# Algorithm: ring\nall_reduce_perf\n# size count type time algbw busbw\n" + "".join(
            f"#  Rank {i} Pid 1 on a\n" for i in range(4)) + "".join(f"{n * MIB} 1 float {n * MIB / 8e4 + 10:.4f} 1 1\n" for n in (1, 2, 4, 8)))  # fmt: skip
        for where, name, instead in (
            (subprocess, "run", self.ran), (command, "trib", lambda: "/bin/trib"), (command, "program", lambda name: f"/bin/{name}"),
            (command, "Simulator", lambda scratch: mock.Mock(times=times)),
        ):
            patch = mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)

    def put(self, path, text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def ran(self, words, **_):
        code, out, err = self.answers.get(os.path.basename(words[0]), (0, f"{words[-1]}\n", ""))
        if callable(code):
            code = code(words)
        return subprocess.CompletedProcess(words, code, out, err)

    def main(self, *argv):
        codes = []
        out, err = self.said(lambda: codes.append(command.main(argv)))
        return codes[0], out, err

    def test_a_conf_is_written_with_what_was_fitted(self):
        code, out, err = self.main("x.conf", "f.txt")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out.splitlines()[-5:], [
            "# error of 4 rows: median 0.0 %, worst 0.0 %", "# gpu_nodes.nvlink.efficiency = 0.8000", "# costs.nvlink.launch = 10000ns",
            "# costs.nvlink.step stays absent: one number of ranks tells the sum of launch and steps only", "# written: x-calibrated.conf",
        ])  # fmt: skip
        with open("x-calibrated.conf", encoding="utf-8") as f:
            made = Conf(f.read())
        self.assertEqual((made.get("gpu_nodes.nvlink.efficiency"), made.get("costs.nvlink.launch")), ("0.8000", "10000ns"))
        self.assertIn("# calibrated: costs.nvlink.launch from f.txt, 4 of 4 rows (1 MiB to 8 MiB), all_reduce ring, 4 ranks\n", made.text)
        self.assertEqual(self.main("x.conf", "f.txt"), (1, "", "trib-calibrate: found x-calibrated.conf here, expected -o x-calibrated.conf if it is to be replaced\n"))
        self.assertEqual(self.main("x.conf", "f.txt", "-o", "x-calibrated.conf")[0], 0)
        self.assertEqual(self.main("x.conf", "f.txt", "-o", "/none/x"), (1, "", "trib-calibrate: cannot write /none/x\n"))
        self.assertEqual(self.main("x.conf", "f.txt", "-o", "."), (1, "", "trib-calibrate: cannot write .\n"))

    def test_a_conf_that_is_none_is_refused(self):
        usage = "expected CONF and one FILE or more (-h shows all)\n"
        self.assertEqual(self.main(), (2, "", f"trib-calibrate: found no CONF, {usage}"))
        self.assertEqual(self.main("x\x1b"), (2, "", f"trib-calibrate: found 'x?', {usage}"))
        self.answers = {"trib": (1, "", "trib: no conf trib: y\n")}
        self.assertEqual(self.main("x.conf", "f.txt"), (1, "", "trib-calibrate: no conf trib: y\n"))
        self.answers = {"trib-plan": (1, "", "trib-plan: x.conf:1: no\ntrib-plan: z\n")}
        self.assertEqual(self.main("x.conf", "f.txt"), (1, "", "trib-calibrate: x.conf:1: no\nz\n"))
        self.answers = {"trib-plan": (lambda words: int(words[-1] != "x.conf"), "", "trib-plan: no\n")}
        self.assertEqual(self.main("x.conf", "f.txt"), (1, "", "trib-calibrate: the conf as calibrated is refused: no\n"))
        self.assertFalse(os.path.exists("x-calibrated.conf"))

    def test_a_conf_is_as_open_as_the_one_it_comes_from(self):
        for mode, text, made in ((0o644, "a", None), (0o640, "a", 0o600), (0o604, "trunk_key", 0o600)):
            os.chmod("x.conf", mode)
            self.assertEqual(command.mode_of("x.conf", text), made)

    def test_notes_of_a_file_are_told(self):
        with open("f.txt", encoding="utf-8") as f:
            self.put("g.txt", f.read() + "16777216 1 float 4\n")
        code, _, err = self.main("x.conf", "g.txt")
        self.assertEqual((code, err), (0, "trib-calibrate: g.txt:12: the last row is cut off and left out (found 4 columns, expected 6)\n"))


if __name__ == "__main__":
    unittest.main()
