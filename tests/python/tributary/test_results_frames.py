# SPDX-License-Identifier: BSD-3-Clause
"""Runs and files of results as frames, by a trib that is only noted and by frames of the tests' own."""
import json
import os
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

from tests.python.tributary import fake_pandas as pandas
from tributary import conf, results
from tributary._trib import TribError

ROW = {"size_bytes": 8, "count": 2, "time_us": 1.5, "algbw_GBps": 1.0, "busbw_GBps": 2.0, "collective": "all_reduce", "algo": "ring", "type": "float32"}


class Frames(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.calls, self.answers = Path(folder.name), [], []
        self.conf = str(self.put("x.conf", "text"))
        for name, instead in (
            ("need", lambda module, package: {("pandas", "python3-pandas"): pandas.module}[module, package]), ("call", self.called), ("trib", lambda: Path("/bin/trib")),
        ):  # fmt: skip
            patch = mock.patch.object(results, name, instead)
            patch.start()
            self.addCleanup(patch.stop)

    def put(self, name, value):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    def called(self, command):
        self.calls.append(command)
        code, stderr, result = self.answers.pop(0) if self.answers else (0, "", {"conf": "x.conf", "results": [{**ROW, "in_place": i} for i in (False, True)]})
        if result is not None:
            Path(command[command.index("-J") + 1]).write_text(json.dumps(result), encoding="utf-8")
        return code, stderr

    def test_a_run_is_of_a_clock(self):
        frame = results.run(self.conf, "reduce", algos=["a", "b"], seed=7, args=["-v"])
        ((*command, file),) = self.calls
        self.assertEqual(command, ["/bin/trib", "sim", self.conf, "reduce", "--algo", "a,b", "--seed", "7", "--place", "out", "-v", "-J"])
        self.assertEqual((os.path.basename(file), os.path.exists(file), len(frame)), ("0.json", False, 2))
        self.assertEqual((frame.attrs["schema"], [r["file"] for r in frame.attrs["runs"]]), (1, [None]))
        for place, kept in (("out", [False]), ("in", [True]), ("both", [False, True])):
            frame = results.run("up", clock="real", place=place)
            self.assertEqual((self.calls[-1][:4], frame["in_place"].tolist()), (["/bin/trib", "perf", "up", "all_reduce"], kept))
        with self.assertRaises(FileNotFoundError):
            with mock.patch.object(results, "shipped", lambda *_: None), mock.patch.object(results, "no_such_file", lambda *_: FileNotFoundError("no")):
                results.run("none")

    def test_sizes_are_of_as_few_runs_as_there_can_be(self):
        frame = results.run(self.conf, sizes=[8, 16, 20])
        self.assertEqual([c[6:-2] for c in self.calls], [["-b", "8", "-e", "16", "-f", "2"], ["-b", "20", "-e", "20", "-f", "2"]])
        self.assertEqual([os.path.basename(c[-1]) for c in self.calls], ["0.json", "1.json"])
        self.assertEqual((frame["run"].tolist(), [r["file"] for r in frame.attrs["runs"]]), ([0, 0, 1, 1], [None, None]))
        out = self.folder / "o.json"
        with self.assertRaises(ValueError) as e:
            results.run(self.conf, sizes=[8, 16, 20], json=out)
        self.assertEqual(str(e.exception), "found 2 series of sizes with json=, expected one, in equal steps or with one factor")
        frame = results.run(self.conf, sizes=[8, 16], json=out)
        self.assertEqual((json.loads(out.read_text(encoding="utf-8"))["conf"], [r["file"] for r in frame.attrs["runs"]]), ("x.conf", [str(out)]))

    def test_confs_and_plans_may_be_objects(self):
        def written(command):
            seen.append((os.path.basename(command[2]), Path(command[2]).read_text(encoding="utf-8"), command[command.index("--faults") + 1]))
            seen.append(Path(seen[0][2]).read_text(encoding="utf-8"))
            return self.called(command)

        seen = []
        libconf = mock.Mock(dump=lambda groups, out: out.write(repr(groups)))
        with mock.patch.object(results, "call", written), mock.patch.object(conf, "need", lambda module, package: {("libconf", "python3-libconf"): libconf}[module, package]):
            results.run(conf.Conf(name="mine", mtu=9), faults=[{"at": 1}])
        self.assertEqual((seen[0][:2], os.path.basename(seen[0][2]), seen[1]), (("mine.conf", "{'name': 'mine', 'mtu': 9}"), "faults.conf", "{'faults': ({'at': 1},)}"))
        results.run(self.conf, faults=Path("a plan"))
        self.assertEqual(self.calls[-1][self.calls[-1].index("--faults") + 1], "a plan")

    def test_a_run_that_fails_has_its_rows(self):
        self.answers = [(1, "why\n", {"conf": "x", "results": [ROW]}), (1, "why\n", None), (2, "", {"x": 1})]
        for code, text, rows in ((1, "why", 1), (1, "why", None), (2, "exit code 2, without a word", None)):
            with self.assertRaises(TribError) as e:
                results.run(self.conf)
            self.assertEqual((str(e.exception), e.exception.code, e.exception.command[1], e.exception.rows and len(e.exception.rows)), (text, code, "sim", rows))
        self.answers = [(4, "3 rows\n", {"conf": "x", "results": [ROW]})]
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            self.assertEqual(len(results.run(self.conf)), 1)
        self.assertEqual([(str(w.message), w.filename) for w in found], [("trib left rows out: 3 rows", __file__)])

    def test_files_become_one_frame(self):
        a = self.put("d/1.json", {"conf": "a", "ranks": 2, "results": [ROW, {**ROW, "wrong": 1}]})
        b = self.put("d/2.json", {"conf": "b", "virtual": {"seed": 5, "links": [1]}, "results": [{**ROW, "aggregated_iters": 3.0}], "error": "e"})
        frame = results.read(self.folder / "d")
        self.assertEqual((frame["conf"].tolist(), frame["run"].tolist(), frame["seed"].tolist()), (["a", "a", "b"], [0, 0, 1], [None, None, 5]))
        self.assertEqual((frame["wrong"].tolist(), frame["aggregated_iters"].tolist()), ([None, 1, None], [None, None, 3]))
        self.assertEqual(frame.attrs["runs"], [{"file": str(a), "conf": "a", "ranks": 2}, {"file": str(b), "conf": "b", "virtual": {"seed": 5}, "error": "e"}])
        converted = []
        with mock.patch.object(pandas.Series, "astype", lambda series, kind: (converted.append((series.name, kind)), series)[1]):
            results.read(self.folder / "d")
        self.assertEqual(converted, [("wrong", "Int64"), ("seed", "Int64"), ("aggregated_iters", "Int64")])
        empty = results.read(self.put("e.json", {"results": []}))
        self.assertEqual((len(empty), empty.columns), (0, list(results.CONTEXT)))
        bad = self.put("bad.json", {"conf": "a", "results": [{**ROW, "count": "x"}]})
        with self.assertRaises(ValueError) as e:
            results.read([a, bad])
        self.assertEqual(str(e.exception), f"{bad}: found count 'x' in results[0], expected a number")

    def test_links_have_the_context_of_their_row(self):
        rows = [
            {"conf": "c", "algo": "ring", "other": 1, "links": [{"from": "a", "drops": {"x": 1}}, {"from": "b", "drops": {"x": 0}}]}, {"conf": "d", "algo": "tree", "other": 1, "links": None},
            {"conf": "e", "algo": "tree", "other": 1, "links": [{"from": "z"}]},
        ]  # fmt: skip
        self.assertEqual(results.links(pandas.DataFrame(rows)).to_dict("records"), [
            {"conf": "c", "algo": "ring", "from": "a", "drops.x": 1}, {"conf": "c", "algo": "ring", "from": "b", "drops.x": 0}, {"conf": "e", "algo": "tree", "from": "z", "drops.x": None},
        ])  # fmt: skip
        for frame in (pandas.DataFrame(rows[1:2]), pandas.DataFrame([{"conf": "c"}])):
            with self.assertRaises(ValueError) as e:
                results.links(frame)
            self.assertEqual(str(e.exception), "found no links, expected rows measured with counters=True (trib sim --counters)")


if __name__ == "__main__":
    unittest.main()
