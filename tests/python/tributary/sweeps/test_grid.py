# SPDX-License-Identifier: BSD-3-Clause
"""Lines of a sweep, its list, and which of them are done; running them is in the end-to-end tests."""
import hashlib
import json
import os
import stat
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tributary.sweeps import grid as sweeps

COMMON = {"payload": None, "place": "out", "iters": None, "warmup": None, "counters": False}
ALL = {"ranks": [None], "types": [None], "ops": [None], "faults": [None], "algos": [None], "seed": [None]}


class Sweeps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def put(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def test_one_value_or_several_are_a_list(self):
        for what, found in ((None, [None]), ("ab", ["ab"]), (Path("x"), [Path("x")]), (7, [7]), ((1, 2), [1, 2]), ([], [])):
            self.assertEqual(sweeps._each(what), found)

    def test_a_conf_of_the_sweep_is_written_once(self):
        used = {}
        path = sweeps._put(self.folder, "a b/c=1", "text", used)
        self.assertEqual(path, str(self.folder / "a_b_c=1.conf"))
        self.assertEqual(Path(path).read_text(encoding="utf-8"), "text")
        before = os.stat(path).st_ino
        self.assertEqual(sweeps._put(self.folder, "a b/c=1", "text", used), path)
        self.assertEqual(os.stat(path).st_ino, before)
        with self.assertRaises(ValueError) as e:
            sweeps._put(self.folder, "a b/c=1", "other", used)
        self.assertEqual(
            str(e.exception), "found two confs or fault plans named 'a_b_c=1', expected names that differ (Conf.copy(name=...))"
        )
        sweeps._put(self.folder, "a b/c=1", "new", {})  # of a sweep that is run again
        self.assertEqual(Path(path).read_text(encoding="utf-8"), "new")
        secret = sweeps._put(self.folder, "s", "trunk_key = 1;", used)
        self.assertEqual(stat.S_IMODE(os.stat(secret).st_mode), 0o600)

    def test_every_combination_is_a_line_the_last_dimension_fastest(self):
        grid = {"conf": ["x", "y"], "collective": ["k"], **ALL, "seed": [1, 2]}
        self.assertEqual(sweeps._lines(self.folder, grid, [[]], (), COMMON), [
            "x k --seed 1 --place out", "x k --seed 2 --place out", "y k --seed 1 --place out", "y k --seed 2 --place out",
        ])  # fmt: skip
        grid["seed"] = [1, 1]
        self.assertEqual(sweeps._lines(self.folder, {**grid, "conf": ["x"]}, [["-b", "4"], ["-b", "8"]], ["-v"], COMMON), [
            "x k --seed 1 --place out -b 4 -v", "x k --seed 1 --place out -b 8 -v",
        ])  # fmt: skip
        for conf, args, says in (
            ("a b", (), "found 'a b', expected no word of a sweep's line to be empty or to have a blank"),
            ("x", ("",), "found '', expected no word of a sweep's line to be empty or to have a blank"),
        ):
            with self.assertRaises(ValueError) as e:
                sweeps._lines(self.folder, {**grid, "conf": [conf]}, [[]], args, COMMON)
            self.assertEqual(str(e.exception), says)
        with self.assertRaises(ValueError) as e:
            sweeps._lines(self.folder, {**grid, "seed": []}, [[]], (), COMMON)
        self.assertEqual(str(e.exception), "found no value of seed, expected one or more (None: as the simulation has it)")

    def test_the_list_only_grows(self):
        self.assertEqual(sweeps._listed(self.folder, ["a", "b"]), {"a": 0, "b": 1})
        self.assertEqual((self.folder / "list").read_text(encoding="utf-8"), "a\nb\n")
        self.assertEqual(sweeps._listed(self.folder, ["c", "a"]), {"a": 0, "b": 1, "c": 2})
        inode = os.stat(self.folder / "list").st_ino
        sweeps._listed(self.folder, ["b"])
        self.assertEqual(os.stat(self.folder / "list").st_ino, inode)
        self.put("list", "# text\n\na\n  # more\nb\nb\nc\n")
        self.assertEqual(sweeps._listed(self.folder, ["b", "d"]), {"a": 0, "b": 1, "c": 3, "d": 4})

    def result(self, **more):
        return {"results": [{"wrong": 0}, {}], **more}

    def done(self, out, result):
        self.put("00000.out", out)
        self.put("00000.json", result if isinstance(result, str) else json.dumps(result))
        return sweeps.finished(self.folder / "00000", "x k")

    def test_a_line_is_done_when_its_results_are_whole_and_right(self):
        self.assertFalse(sweeps.finished(self.folder / "00000", "x k"))
        self.assertTrue(self.done("# trib sim x k\nmore\n", self.result()))
        self.assertTrue(self.done("# trib sim x k\n", self.result(run=None)))
        for out, result in (
            ("# trib sim x k --seed 1\n", self.result()), ("x k\n", self.result()), ("# trib sim x k", self.result()),
            ("# trib sim x k\n", "not finished"), ("# trib sim x k\n", {"results": {}}), ("# trib sim x k\n", {}),
            ("# trib sim x k\n", {"results": [{"wrong": 1}]}), ("# trib sim x k\n", {"results": [{"wrong": 0}, {"wrong": 1}]}), ("# trib sim x k\n", {"results": [7]}), ("# trib sim x k\n", self.result(error="e")),
        ):  # fmt: skip
            self.assertFalse(self.done(out, result), (out, result))

    def test_files_that_have_changed_make_a_result_old(self):
        path = self.put("used.conf", "a")
        used = {"path": str(path), "sha256": hashlib.sha256(b"a").hexdigest()}
        for files, same in (
            ([used], True), ([{**used, "sha256": "0"}], False), ([used, {**used, "sha256": "0"}], False), ([{"path": str(path)}], None), (7, True),
            ([7], True), ([{"path": "/nonexistent", "sha256": "0"}, used], True), ([{"path": "/nonexistent", "sha256": "0"}, {**used, "sha256": "0"}], False),
        ):  # fmt: skip
            if same is None:
                continue
            self.assertEqual(sweeps._same_files({"run": {"files": files}}), same, files)
        for result in ({}, {"run": 7}, {"run": {}}):
            self.assertTrue(sweeps._same_files(result))
        shown = mock.Mock(return_value="hidden")
        secret = {**used, "secrets": "hidden", "sha256": hashlib.sha256(b"hidden").hexdigest()}
        with mock.patch.object(sweeps, "output", shown):
            self.assertTrue(sweeps._same_files({"run": {"files": [secret]}}))
            self.assertFalse(sweeps._same_files({"run": {"files": [{**secret, "sha256": used["sha256"]}]}}))
        shown.assert_called_with(["plan", "--no-secrets", str(path)])
        self.assertFalse(self.done("# trib sim x k\n", self.result(run={"files": [{**used, "sha256": "0"}]})))

    def test_plans_have_labels_of_their_own(self):
        a, b = str(self.put("a.conf", "a")), str(self.put("b.conf", "b"))
        self.assertEqual(sweeps._plans(None, self.folder, {}), [None])
        self.assertEqual(sweeps._plans(a, self.folder, {}), [a])
        self.assertEqual(sweeps._plans([a, None], self.folder, {}), [a, None])
        self.assertEqual(sweeps._plans({"none": None, "A": a, "B": Path(b)}, self.folder, {}), [None, a, b])
        self.assertEqual(json.loads((self.folder / "labels").read_text(encoding="utf-8")), {"": "none", "a": "A", "b": "B"})
        with self.assertRaises(ValueError) as e:
            sweeps._plans({"A": a, "B": a}, self.folder, {})
        self.assertEqual(str(e.exception), "found 'A' and 'B' of the same plan 'a', expected plans with names of their own")


if __name__ == "__main__":
    unittest.main()
