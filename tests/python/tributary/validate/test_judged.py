# SPDX-License-Identifier: BSD-3-Clause
"""Limits of rows, which rows count, and where a class got worse."""
import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from tributary.validate import fitted, judged


def series(source, bus, algo="ring", ranks="8", error=20):
    rows = [{"size": 1 << 26, "bus": b, "fitted": False, "error": error} for b in bus]
    return {"class": "x", "ranks": ranks, "collective": "all_reduce", "algo": algo, "source": source, "rows": rows}


class Limits(unittest.TestCase):
    """A row's limit is 10 %, or the spread between publications of the same thing where that is larger."""

    def limits(self, *all_series):
        judged.spread(all_series)
        return [round(r["limit"], 9) for s in all_series for r in s["rows"]]

    def test_the_spread_between_publications(self):
        self.assertEqual(self.limits(series("a/b/one", [100]), series("c/d", [130])), [30, 30])
        self.assertEqual(self.limits(series("a/b/one", [100]), series("c/d", [104])), [10, 10])

    def test_rows_of_one_publication_or_of_another_thing_are_no_spread(self):
        self.assertEqual(self.limits(series("a/b/one", [100]), series("a/b/two", [130])), [10, 10])
        self.assertEqual(self.limits(series("a/b", [100]), series("c/d", [130], algo="nvls")), [10, 10])
        self.assertEqual(self.limits(series("a/b", [100]), series("c/d", [130], ranks="4")), [10, 10])

    def test_a_row_beyond_its_limit_is_counted(self):
        one, other = series("a/b", [100]), series("c/d", [130])
        judged.spread((one, other))
        self.assertEqual((judged.figures(one["rows"])["over"], "worst" in judged.misses(judged.figures(one["rows"]))), (0, False))
        one["rows"][0]["error"] = -31
        self.assertEqual((judged.figures(one["rows"])["over"], "worst" in judged.misses(judged.figures(one["rows"]))), (1, True))


class Figures(unittest.TestCase):
    def test_fitted_rows_do_not_count(self):
        rows = [{"size": n << 20, "fitted": f, "error": e, "limit": 10} for n, f, e in ((16, False, -4), (32, False, 6), (64, True, 50), (8, False, 70))] + [
            {"size": 1024, "fitted": False, "error": 30, "limit": 10}]  # fmt: skip
        self.assertEqual(judged.figures(rows), {"n": 2, "median": 5.0, "worst": 6, "over": 0, "nsmall": 1, "small": 30})
        self.assertEqual(judged.misses(judged.figures(rows)), ["small"])

    def test_a_class_that_got_worse_by_a_point_is_told(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            path = str(Path(folder) / "expected.tsv")
            self.assertEqual(judged.check({"x": {"median": 3.0, "small": None}}, path, True), 0)
            self.assertEqual(Path(path).read_text().splitlines()[2:], ["class\tmedian\tsmall", "x\t3.0\t-"])
            self.assertEqual(judged.check({"x": {"median": 4.0, "small": 99.0}}, path, False), 0)
            self.assertEqual(judged.check({"x": {"median": 4.1, "small": None}}, path, False), 1)
        self.assertEqual(out.getvalue(), "validate: x: median error is 4.1 %, expected at most 3.0 + 1\n")


class Fit(unittest.TestCase):
    def test_a_line_through_times(self):
        a, b = fitted.line_fit([(size << 20, 5.0 + 2e-6 * (size << 20)) for size in (16, 256, 1024)])
        self.assertAlmostEqual(b, 2e-6, 9)
        self.assertAlmostEqual(a, 5.0, 6)

    def test_a_fabric_without_costs(self):
        conf = 'nvlink = { efficiency = 0.9; rate = "x"; };\ncosts = {\n    launch = 1;\n};\nend = 1;\n'
        self.assertEqual(fitted.ideal(conf), 'nvlink = { rate = "x"; };\n\nend = 1;\n')


if __name__ == "__main__":
    unittest.main()
