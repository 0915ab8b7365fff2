# SPDX-License-Identifier: BSD-3-Clause
"""Options of runs, and what files of results are made of; frames are in the end-to-end tests."""
import json
import os
import tempfile
import unittest
from pathlib import Path

from tributary import results

ROW = {
    "collective": "all_reduce", "algo": "ring", "type": "float", "size_bytes": 4, "count": 1, "time_us": 1.5, "algbw_GBps": 2, "busbw_GBps": 3.0,
    "wrong": 0, "predicted_us": None,
}  # fmt: skip


class Options(unittest.TestCase):
    def test_each_has_its_word(self):
        self.assertEqual(results.options(), ["--place", "out"])
        self.assertEqual(
            results.options(
                ranks=4, algos=("ring", "tree"), types="float", ops=["sum"], seed=0, faults="f", payload="none", place="both", iters=2, warmup=0, counters=True
            ),
            ["-g", "4", "--algo", "ring,tree", "-d", "float", "-o", "sum", "--seed", "0", "--faults", "f", "--payload", "none", "--place", "both",
             "-n", "2", "-w", "0", "--counters"],
        )  # fmt: skip
        self.assertEqual(results.options(clock="real", ranks=2, place="in"), ["-g", "2", "--place", "in"])

    def test_what_a_clock_does_not_have_is_refused(self):
        for more, says in (
            ({"clock": "wall"}, "found clock='wall', expected \"virtual\" or \"real\""),
            ({"place": "on"}, "found place='on', expected \"out\", \"in\" or \"both\""),
            ({"clock": "real", "seed": 0}, "found seed=0 with clock=\"real\", expected it with clock=\"virtual\""),
            ({"clock": "real", "faults": "x"}, "found faults='x' with clock=\"real\", expected it with clock=\"virtual\""),
            ({"clock": "real", "payload": "none"}, "found payload='none' with clock=\"real\", expected it with clock=\"virtual\""),
            ({"clock": "real", "counters": True}, "found counters=True with clock=\"real\", expected it with clock=\"virtual\""),
        ):
            with self.assertRaises(ValueError) as e:
                results.options(**more)
            self.assertEqual(str(e.exception), says)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def put(self, value, name="x.json"):
        path = self.folder / name
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    def test_nested_names_have_dots(self):
        self.assertEqual(results.flatten({"a": {"b": 1, "c": {"d": [2]}}, "e": None}), {"a.b": 1, "a.c.d": [2], "e": None})

    def test_a_file_of_results_is_of_this_schema(self):
        for good in ({"results": []}, {"results": [{}], "schema": 1, "run": None, "virtual": {}}):
            self.assertEqual(results.load(self.put(good)), good)
        for bad, says in (
            ({}, "found no rows, expected results of a collective by trib sim, trib perf or trib-sweep --merge"),
            ({"results": {}}, "found no rows, expected results of a collective by trib sim, trib perf or trib-sweep --merge"),
            ({"results": [], "schema": 2}, "found schema 2, expected 1"),
            ({"results": [{}, 7]}, "found 7 in results[1], expected a row, an object"),
            ({"results": [], "run": []}, "run: found [], expected an object"),
            ({"results": [], "virtual": "x" * 50}, f"virtual: found {'x' * 40}, expected an object"),
            ("[]", "found no object, expected a file of trib's -J"),
        ):
            path = self.put(bad)
            with self.assertRaises(ValueError) as e:
                results.load(path)
            self.assertEqual(str(e.exception), f"{path}: {says}")

    def test_a_stem_is_without_folder_and_conf(self):
        for path, stem in (("a/b.conf", "b"), ("b", "b"), ("x.json", "x.json"), (".conf", ""), ("", "")):
            self.assertEqual(results.stem(path), stem)

    def test_labels_are_texts(self):
        self.assertEqual(results.labels_of(self.folder), {})
        self.put({"a": "A", "b": 7}, results.LABELS)
        self.assertEqual(results.labels_of(self.folder), {"a": "A"})
        self.put("[", results.LABELS)
        self.assertEqual(results.labels_of(self.folder), {})

    def test_rows_have_the_context_of_their_file(self):
        run = {"command": ["trib-sim", "c", "--faults", "d/loss.conf"]}
        for result, labels, context in (
            ({"conf": "a/lab.conf", "ranks": 4, "virtual": {"seed": 7}, "run": run}, {}, ("lab", 4, "virtual", 7, "data", "loss")),
            ({"conf": "lab", "virtual": {"seed": 0, "payload": "none"}, "run": run}, {"loss": "some loss"}, ("lab", None, "virtual", 0, "none", "some loss")),
            ({"conf": "lab", "ranks": 2, "run": {"command": ["x", "--faults"]}}, {"": "no plan"}, ("lab", 2, "real", None, "data", "no plan")),
            ({"conf": "lab", "run": {"command": 7}}, {}, ("lab", None, "real", None, "data", "")),
            ({"conf": "lab"}, {}, ("lab", None, "real", None, "data", "")),
        ):  # fmt: skip
            self.assertEqual(tuple(results._context(result, labels).values()), context)
            self.assertEqual(tuple(results._context(result, labels)), results.CONTEXT[:-1])
            (row,) = results._rows({**result, "results": [{**ROW, "fidelity": {"ok": True}}]}, 3, labels)
            self.assertEqual((row["conf"], row["run"], row["fidelity.ok"], row["time_us"]), (context[0], 3, True, 1.5))
        (row,) = results._rows({"results": [{**ROW, "conf": "own/x.conf"}]}, 0, {})  # of a merged file
        self.assertEqual((row["conf"], row["clock"]), ("x", "virtual"))

    def test_a_row_has_its_numbers_and_texts(self):
        results._check_row(ROW, 0)
        results._check_row({**ROW, "wrong": 1, "predicted_us": 2.5, "p99_us": 3}, 0)
        for key in results.NUMBERS:
            for value in (None, "1", True, [1]):
                with self.assertRaises(ValueError) as e:
                    results._check_row({**ROW, key: value}, 5)
                self.assertEqual(str(e.exception), f"found {key} {value!r} in results[5], expected a number")
        for key in results.NUMBERS_OR_NONE:
            with self.assertRaisesRegex(ValueError, f"found {key} 'x' in results\\[0\\], expected a number"):
                results._check_row({**ROW, key: "x"}, 0)
        for key in results.TEXTS:
            for value in (None, 7):
                with self.assertRaisesRegex(ValueError, f"found {key} {value} in results\\[0\\], expected text"):
                    results._check_row({**ROW, key: value}, 0)
        with self.assertRaisesRegex(ValueError, "^found a training step, expected rows of collectives$"):
            results._rows({"results": [{}]}, 0, {})
        with self.assertRaisesRegex(ValueError, "in results\\[1\\], expected a number"):
            results._rows({"results": [ROW, {**ROW, "count": "x"}]}, 0, {})

    def test_where_rows_come_from_is_kept_without_them(self):
        virtual = {"seed": 1, "links": [1, 2]}
        found = results._provenance("p", {"results": [1], "virtual": virtual, "run": {"a": 1}})
        self.assertEqual(found, {"file": "p", "virtual": {"seed": 1}, "run": {"a": 1}})
        self.assertIn("links", virtual)
        self.assertEqual(results._provenance("p", {"virtual": None}), {"file": "p", "virtual": None})

    def test_files_are_found_by_paths_patterns_and_folders(self):
        for name in ("2.json", "10.json", "x.json", "y.txt"):
            self.put("{}", name)
        at = lambda *names: [self.folder / n for n in names]  # noqa: E731
        self.assertEqual(results._files(self.folder), at("2.json", "10.json"))
        self.assertEqual(results._files(str(self.folder / "*.json")), at("10.json", "2.json", "x.json"))
        self.assertEqual(results._files([self.folder / "x.json", str(self.folder / "2.json")]), at("x.json", "2.json"))
        self.assertEqual(results._files(self.folder / "none"), at("none"))
        os.mkdir(self.folder / "d")
        with self.assertRaisesRegex(FileNotFoundError, "found no results in .*/d, expected files of trib's -J"):
            results._files(self.folder / "d")
        self.put("{}", "d/z.json")
        self.assertEqual(results._files(self.folder / "d"), at("d/z.json"))
        with self.assertRaises(FileNotFoundError):
            results._files(str(self.folder / "q*.json"))


if __name__ == "__main__":
    unittest.main()
