# SPDX-License-Identifier: BSD-3-Clause
"""A training step and jobs as bars and tables: every number, by a table that is kept as lists and axes that only note what is drawn."""
import unittest
from unittest import mock

from tributary import plot
from tributary.report import parts

STEP = {
    "workload": "w", "fabric": "f", "gpus": 16, "math_us": 4000, "pipeline_us": 500, "theory_us": {"tensor": 100, "data": 0},
    "hosts": {"step_us": 7000, "comms_us": 3000, "exposed_us": 2500, "exposed_by_us": {"tensor": 1000, "data": 1200}, "binds": "nic"},
    "switches": {"step_us": 6000, "comms_us": 2000, "exposed_us": 1500.5, "exposed_by_us": {"tensor": 1500}},
    "collectives": [
        {"parallel": "tensor", "collective": "all_reduce", "group": 8, "size_bytes": 2048, "times": 3, "hosts": {"algo": "ring", "time_us": 1000, "high_us": 1500},
         "switches": {"algo": "sharp", "time_us": 1000, "high_us": 1000.9}},
        {"parallel": "data", "experts": True, "group": 2, "hosts": 7}, 7,
    ],
}  # fmt: skip
JOBS = {
    "fabric": "f",
    "jobs": [
        {"name": "a", "time_us": 30, "alone_us": 20, "ranks": 4, "iterations": 2, "end": "done", "slowdown": 1.5, "wrong": 0,
         "operations": [{"collective": "all_reduce", "ran_by": "ring", "algo": "x", "size_bytes": 1024}, {"collective": "bcast", "algo": "tree"}, 7]},
        {"name": "b", "time_us": 10, "alone_us": 20, "end": "failed", "why": "no", "fell_back": "tree"}, {"name": "c"},
    ],
}  # fmt: skip


class Parts(unittest.TestCase):
    def setUp(self):
        self.tables, self.figures, self.bars = [], [], []
        for name, instead in (("table", self.table), ("_bars", lambda *args: self.bars.append(args))):
            if name == "_bars":
                self.real_bars = parts._bars
            patch = mock.patch.object(parts, name, instead)
            patch.start()
            self.addCleanup(patch.stop)

    def table(self, caption, heads, rows, numbers_from=1):
        self.tables.append((caption, list(heads), [tuple(r) for r in rows], numbers_from))
        return "T"

    def draw(self, make, label):
        make()
        self.figures.append(label)
        return "F"

    def test_what_a_file_is(self):
        for found, step, jobs, title in (
            (STEP, True, False, "a training step of w on f, 16 GPUs"), (JOBS, False, True, "jobs on f"), ({"collectives": [], "hosts": {}}, False, False, ""),
            ({"collectives": {}, "hosts": {"step_us": 1}}, False, False, ""), ({"collectives": [], "nvswitches": {"step_us": 1}}, True, False, "a training step of  on ,  GPUs"),
            ({"jobs": [7]}, False, False, ""), ({"jobs": [{}, 7]}, False, False, ""), ({"jobs": {}}, False, False, ""), ({"jobs": []}, False, True, "jobs on "),
        ):  # fmt: skip
            self.assertEqual((parts.is_step(found), parts.is_jobs(found), parts.title_of(found)), (step, jobs, title))

    def test_times_are_in_ms(self):
        for us, ms in ((1500, 1.5), (None, 0.0), (0.1 + 0.2, 0.0003), ("7", 0.007)):
            self.assertEqual(parts._ms(us), ms)

    def test_a_step_is_bars_and_three_tables(self):
        self.assertEqual(parts.step(STEP, "n", self.draw), "FTTT")
        title = "a training step of w on f, 16 GPUs"
        self.assertEqual(self.figures, [f"Where the time of {title} goes, ms: computing, and what communication adds to it, by who adds up: hosts; NVSwitches and switches"])
        ((names, bars, unit, said),) = self.bars
        self.assertEqual((names, unit, said), (["hosts", "NVSwitches and switches"], "time (ms)", title))
        self.assertEqual(bars, [
            ("computing", "#777777", [4.0, 4.0]), ("pipeline bubble", "#BBBBBB", [0.5, 0.5]), ("exposed: tensor", plot.COLOURS[0], [1.0, 1.5]), ("exposed: data", plot.COLOURS[1], [1.2, 0.0]),
            ("exposed: several at once", plot.COLOURS[2], [0.3, 0.0]),
        ])  # fmt: skip
        by = ("hosts", "NVSwitches and switches")
        self.assertEqual(self.tables, [
            ("The step, n", ["who adds up", "computing (ms)", "pipeline bubble (ms)", "communication (ms)", "exposed of it (ms)", "step (ms)", "what binds"],
             [("hosts", 4.0, 0.5, 3.0, 2.5, 7.0, "nic"), ("NVSwitches and switches", 4.0, 0.5, 2.0, 1.5005, 6.0, "")], 1),
            ("By parallelism, n", ["parallelism", "communication by theory (ms)", *(f"exposed, {b} (ms)" for b in by)], [("tensor", 0.1, 1.0, 1.5), ("data", None, 1.2, 0.0)], 1),
            ("Collectives of a GPU, n; a second time is the most that it may be",
             ["parallelism", "collective", "GPUs", "size", "a step", "hosts: by", "hosts: time (ms)", "NVSwitches and switches: by", "NVSwitches and switches: time (ms)"],
             [("tensor", "all reduce", 8, "2 KiB", 3, "ring", "1 to 1.5", "sharp", "1"), ("data (experts)", "", 2, "0 B", None, "", "0", "", "0")], 2),
        ])  # fmt: skip
        self.bars.clear()
        parts.step({**STEP, "hosts": {**STEP["hosts"], "exposed_us": 2207}}, "n", self.draw)  # a thousandth of the step and no more
        self.assertEqual(len(self.bars[0][1]), 4)
        parts.step({**STEP, "hosts": {**STEP["hosts"], "exposed_us": 2207.1}}, "n", self.draw)
        self.assertEqual(len(self.bars[1][1]), 5)

    def test_jobs_are_bars_and_a_table(self):
        self.assertEqual(parts.jobs(JOBS, "n", self.draw), "FT")
        self.assertEqual(self.figures, ["Time of an iteration of each job of n, µs: alone, and what the others add"])
        self.assertEqual(self.bars, [(
            ["a", "b"], [("alone", plot.COLOURS[0], [20.0, 20.0]), ("more beside the others", plot.COLOURS[1], [10.0, 0.0])], "time (µs)", "jobs on f, an iteration of each",
        )])  # fmt: skip
        self.assertEqual(self.tables, [(
            "jobs of n", ["job", "operations", "ranks", "iterations", "ended", "time (µs)", "alone (µs)", "slow-down", "wrong elements", "fell back"],
            [("a", "all reduce by ring, 1 KiB; bcast by tree, 0 B", 4, 2, "done", 30, 20, 1.5, 0, ""), ("b", "", None, None, "failed: no", 10, 20, None, None, "tree"),
             ("c", "", None, None, "", None, None, None, None, "")], 2,
        )])  # fmt: skip
        self.assertEqual(parts.jobs({"jobs": [{"name": "c", "time_us": 1}, {"alone_us": 1}]}, "n", self.draw), "T")

    def test_bars_are_stacked(self):
        ax = mock.MagicMock()
        pyplot = mock.Mock(subplots=mock.Mock(return_value=(None, ax)))
        with mock.patch.object(parts, "need", lambda module, package: {("matplotlib.pyplot", "python3-matplotlib"): pyplot}[module, package]):
            self.assertIs(self.real_bars(["x", "y"], [("a", "red", [1.0, 2.0]), ("b", "blue", [3.0, 4.0]), ("c", "grey", [0.0, 0.0])], "ms", "t"), ax)
        pyplot.subplots.assert_called_once_with(figsize=(7.5, 2.3), layout="constrained")
        call = mock.call
        self.assertEqual(ax.mock_calls, [
            call.barh(range(2), [1.0, 2.0], left=[0.0, 0.0], color="red", label="a", height=0.6), call.barh(range(2), [3.0, 4.0], left=[1.0, 2.0], color="blue", label="b", height=0.6),
            call.barh(range(2), [0.0, 0.0], left=[4.0, 6.0], color="grey", label="c", height=0.6), call.set_yticks(range(2), ["x", "y"]), call.invert_yaxis(), call.set_xlim(left=0),
            call.set_xlabel("ms"), call.set_title("t", fontsize="medium", wrap=True), call.grid(True, axis="x", alpha=0.3), call.spines.__getitem__(["top", "right"]),
            call.spines.__getitem__().set_visible(False), call.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False),
        ])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
