# SPDX-License-Identifier: BSD-3-Clause
"""What of a time line is drawn where, by axes that only note it."""
import json
import os
import tempfile
import unittest
from unittest import mock

from tributary import _plot_timeline as lines

OPERATION = {
    "collective": "all_reduce", "ran_by": "ring", "size_bytes": 2048, "fabric": "f", "time_us": 12.34567,
    "ranks": [{"rank": r, "pid": 10 + r, "host": f"h{r}", "entered_us": r * 0.5, "ended_us": 5.0 + (r * 7) % 5} for r in range(3)],
}  # fmt: skip
LINKS = [
    {"from": "a", "to": "b", "pid": 99, "tid": 1, "busy_us": 1.0}, {"from": "b", "to": "a", "pid": 99, "tid": 2, "busy_us": 3.0}, {"from": "c", "to": "a", "pid": 99, "tid": 3},
]  # fmt: skip


def event(pid, ts, dur, cat="send", tid=0, ph="X"):
    return {"pid": pid, "ts": ts, "dur": dur, "cat": cat, "tid": tid, "ph": ph}


EVENTS = [
    event(10, 1, 2), event(10, 4, 0), event(10, 5, 1, "receive"), event(11, 1, 2, "multimem"), event(11, 3, 4, "switch"), event(11, 7, 1, "rail switch"), event(12, 0, 9, "other"),
    event(99, 1, 1, "x", 1), event(99, 2, 1, "x", 2), event(99, 3, 1, "x", 10002), {"ph": "M", "pid": 10}, event(10, 50, 1, ph="B"),
]  # fmt: skip


class TimeLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "t.json")
        self.ax = mock.MagicMock()
        self.pyplot = mock.Mock(subplots=mock.Mock(return_value=("figure", self.ax)))
        patch = mock.patch.object(lines, "need", lambda module, package: {("matplotlib.pyplot", "python3-matplotlib"): self.pyplot}[module, package])
        patch.start()
        self.addCleanup(patch.stop)

    def put(self, operation=None, links=None, events=None):
        top = {"traceEvents": EVENTS if events is None else events, "otherData": {"operation": operation or OPERATION, "links": LINKS if links is None else links}}
        with open(self.path, "w", encoding="utf-8") as f:
            json.dump(top, f)

    def drawn(self, **given):
        self.ax.reset_mock()
        self.ax.broken_barh.side_effect = lambda what, where, facecolors, linewidth: (facecolors, len(what))
        self.assertIs(lines.timeline(self.path, **given), self.ax)
        bars = []
        for call in self.ax.broken_barh.call_args_list:
            (what, (at, height)), more = call
            self.assertEqual(more["linewidth"], 0)
            bars.append((what, round(at, 6), round(height, 6), more["facecolors"]))
        return bars

    def refused(self, says, **given):
        with self.assertRaises(ValueError) as e:
            lines.timeline(self.path, **given)
        self.assertEqual(str(e.exception), says)

    def test_ranks_and_links_have_rows(self):
        self.put()
        blue, sky, green = "#0072B2", "#56B4E9", "#009E73"
        self.assertEqual(self.drawn(), [
            ([(1, 2)], -0.4, 0.4, blue), ([(5, 1)], 0.0, 0.4, sky),
            ([(0.0, 0.5)], 0.6, 0.8, "#DDDDDD"), ([(3, 4), (7, 1)], 0.6, 0.4, sky), ([(1, 2)], 1.0, 0.4, green),
            ([(0.0, 1.0)], 1.6, 0.8, "#DDDDDD"),
            ([(2, 1)], 2.6, 0.8, "#D55E00"), ([(3, 1)], 2.6, 0.266667, "#000000"), ([(1, 1)], 3.6, 0.8, "#D55E00"),
        ])  # fmt: skip
        self.pyplot.subplots.assert_called_once_with(figsize=(9.0, 1.4 + 0.26 * 6), layout="constrained")
        calls = [c for c in self.ax.mock_calls if c[0] != "broken_barh"]
        shown = {"sends a message": (blue, 1), "waits for a message": (sky, 1), "not begun": ("#DDDDDD", 1), "waits for the switches": (sky, 2), "reduces, copies": (green, 1),
                 "link is busy": ("#D55E00", 1), "link is paused": ("#000000", 1)}  # fmt: skip
        legend = calls.pop()
        self.assertEqual((legend[0], [list(a) for a in legend[1]]), ("legend", [list(shown.values()), list(shown)]))
        self.assertEqual(legend[2], {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0, "frameon": False})
        call = mock.call
        self.assertEqual(calls, [
            call.set_yticks(range(6), ["rank 0 (h0)", "rank 1 (h1)", "rank 2 (h2)", "b → a", "a → b", "c → a"]), call.tick_params(axis="y", labelsize=8, length=0),
            call.set(xlim=(0.0, 12.34567), ylim=(5.6, -0.6), xlabel="fabric time (µs)", title="all reduce by ring, 2 KiB, 3 ranks on f: 12.35 µs"), call.title.set_fontsize(10),
            call.spines.__getitem__(["top", "right", "left"]), call.spines.__getitem__().set_visible(False), call.grid(axis="x", color="#000000", alpha=0.12, linewidth=0.6),
            call.set_axisbelow(True), call.axhline(2.5, color="#000000", linewidth=0.6),
        ])  # fmt: skip

    def test_some_ranks_and_links_are_chosen(self):
        self.put()
        self.drawn(ranks=[2, 0], links=["a>b"])
        self.assertEqual(self.ax.set_yticks.call_args[0][1], ["rank 2 (h2)", "rank 0 (h0)", "a → b"])
        self.drawn(links=1, legend=False)
        self.assertEqual(self.ax.set_yticks.call_args[0][1][3:], ["b → a"])
        self.ax.legend.assert_not_called()
        self.drawn(links=0)
        self.ax.axhline.assert_not_called()
        self.ax.legend.assert_called_once()
        many = {**OPERATION, "ranks": [{"rank": r, "pid": r, "host": "h", "entered_us": 0, "ended_us": r} for r in range(18)]}
        self.put(many, [], [])
        self.drawn()
        self.assertEqual(self.ax.set_yticks.call_args[0], (range(16), [f"rank {r} (h)" for r in range(2, 18)]))
        self.ax.legend.assert_not_called()

    def test_what_is_not_there_is_refused(self):
        self.put()
        self.refused("found rank 3, expected ranks of 0 to 2", ranks=[0, 3])
        self.refused("found the link 'x>y', expected one such as 'a>b'", links=["x>y"])
        self.put(links=[])
        self.refused("found the link 'x>y', expected one such as 'none: it has no links'", links=["x>y"])
        for top in ({}, {"otherData": 7, "traceEvents": []}, {"otherData": {}, "traceEvents": []}, {"otherData": {"operation": 1}, "traceEvents": 7}, {"otherData": {"operation": 1}}):
            with open(self.path, "w", encoding="utf-8") as f:
                json.dump(top, f)
            self.refused(f"{self.path}: found no operation and events, expected a time line of --timeline")
        self.put({"collective": "x"})
        self.refused(f"{self.path}: found a file that is not whole (no 'ranks'), expected a time line of --timeline")


if __name__ == "__main__":
    unittest.main()
