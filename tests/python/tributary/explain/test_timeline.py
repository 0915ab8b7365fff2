# SPDX-License-Identifier: BSD-3-Clause
"""What is read of a time line: intervals, links and whose bytes they carried, steps, and counts of a fabric in real time."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from timelines import file_of, flow, link, rank, step, timeline_of  # noqa: E402

from tributary._cli import Refused  # noqa: E402
from tributary.explain.links import Intervals  # noqa: E402
from tributary.explain.timeline import Timeline  # noqa: E402


class Times(unittest.TestCase):
    def test_what_intervals_cover(self):
        i = Intervals()
        for a, b in ((1, 3), (2, 4), (6, 7), (6.5, 6.8)):  # what overlaps counts once
            i.add(a, b)
        for a, b, want in ((0, 10, 4), (0, 1, 0), (2, 3.5, 1.5), (4, 6, 0), (3, 6.5, 1.5), (5, 2, 0)):
            self.assertEqual(i.within(a, b), want, (a, b))


class File(unittest.TestCase):
    def test_bytes_are_the_operations_or_of_others(self):
        t = timeline_of([rank(0, 8.0), rank(1, 10.0)], [link("h0", "s", 1, [flow("h0", "h1", 300), flow("x", "h1", 100, True)], busy_us=5.0), link("s", "h0", 2)])
        self.assertEqual((t.time, t.links[0].own, t.links[0].others, t.links[0].util), (10.0, 300, 100, 0.5))
        self.assertEqual([x.name for x in t.used], ["h0 to s"])
        self.assertTrue(t.links[0].carries("h0", "h1"))
        self.assertFalse(t.links[0].carries("x", "h1"))

    def test_busy_is_exact_where_runs_are_known(self):
        events = [{"ph": "X", "cat": "link", "pid": 100, "tid": 1, "ts": 2.0, "dur": 2.0, "args": {"flows": {"h0>h1": 80, "x>h1 (background)": 20}}},
                  {"ph": "X", "cat": "pause", "pid": 100, "tid": 10001, "ts": 4.0, "dur": 1.0}]  # fmt: skip
        t = timeline_of([rank(0, 10.0)], [link("h0", "s", 1, busy_us=2.0), link("s", "h0", 2, busy_us=2.0)], events)
        known, unknown = t.links
        self.assertEqual((known.busy_within(0, 3), known.paused_within(4.5, 9), known.sent), (1.0, 0.5, [(2.0, 4.0, 80)]))
        self.assertEqual(unknown.busy_within(0, 5), 1.0)

    def test_steps_are_by_rank_lane_and_number(self):
        t = timeline_of([rank(0, 9.0), rank(1, 10.0)], [], [step(1, "send", 3, 1.0, 2.0, peer=1), {"ph": "M", "cat": "send"}, {"ph": "X", "cat": "operation"}])
        self.assertEqual(list(t.steps), [(1, 1, 3)])
        self.assertEqual((t.pid_of(1), t.rank(2), t.lane_of[1, "send", 1, 0, False]), (2, "rank 1 (h1)", 1))

    def counted(self, more=0, **other):
        """A link of a host in real time: its rank sends 100,000 bytes to h1 in 10 us; counters say more after 100 us."""
        links = [link("h0", "s", 1, measured="counters", bytes=100000 * 1.05 + 30000 + more, busy_us=2.0, paused_us=50.0)]
        return timeline_of([rank(0, 10.0, **other), rank(1, 10.0)], links, [step(1, "send", 0, 0.0, 9.0, peer=1, size=100000)], paths={"h0>h1": [0]}, counted_us=100.0).links[0]

    def test_counters_beyond_the_operations_own_are_others(self):
        few, many = self.counted(), self.counted(1000000)
        self.assertEqual((few.own, few.others), (135000.0, 0))
        self.assertEqual((many.own, many.others, many.bytes), (135000.0, 100000.0, 235000.0))
        self.assertAlmostEqual(many.util, 235000 * 8e-3 / 400 / 10)
        self.assertEqual(many.paused, 0.5)

    def test_counters_of_what_was_sent_again_stay(self):
        self.assertEqual(self.counted(1000000, timeouts=1).others, 0)

    def test_another_file_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            for top, ok in (({}, False), ({"otherData": {"kind": "else"}}, False), (file_of([rank(0, 1.0)], []), True)):
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(top, f)
                if ok:
                    self.assertEqual(Timeline(path).time, 1.0)
                    continue
                with self.assertRaisesRegex(Refused, 'found no otherData.kind "tributary time line", expected a file that --timeline wrote$'):
                    Timeline(path)
        with self.assertRaisesRegex(ValueError, "^no rank has ended$"):
            timeline_of([rank(0, None)], [], op={"time_us": 0})


if __name__ == "__main__":
    unittest.main()
