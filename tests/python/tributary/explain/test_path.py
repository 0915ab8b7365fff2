# SPDX-License-Identifier: BSD-3-Clause
"""The critical path: each piece of the time goes to what was waited for."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from timelines import flow, link, path_of, rank, step, timeline_of  # noqa: E402

from tributary.explain.path import Path  # noqa: E402


def way(*busy):
    """h0 to h1 by a switch; busy: each link's us."""
    flows = [flow("h0", "h1", 4096)]
    return [link("h0", "s", 1, flows, busy_us=busy[0]), link("s", "h1", 2, flows, busy_us=busy[1])]


RANKS = [rank(0, 6.0), rank(1, 10.0)]


class Walk(unittest.TestCase):
    def test_a_message_is_the_busiest_link_its_flight_and_the_rest(self):
        # posted at 2, there at 10, over a link that is busy for half of the operation
        t = timeline_of(RANKS, way(5.0, 1.0), [step(1, "send", 0, 2.0, 6.0, peer=1), step(2, "receive", 0, 0.0, 10.0, peer=0)])
        self.assertEqual(path_of(t), {
            ("link", "h0 to s"): 4.0, ("flight", ""): 0.6, ("between", "rank 0 (h0) and rank 1 (h1)"): 3.4, ("hosts", "rank 0 (h0)"): 2.0})  # fmt: skip

    def test_one_right_behind_another_has_no_flight(self):
        events = [step(1, "send", n, 0.0, 6.0, peer=1, size=40000) for n in (0, 1)]
        events += [step(2, "receive", 0, 0.0, 9.2, peer=0, size=40000), step(2, "receive", 1, 0.0, 10.0, peer=0, size=40000)]
        found = path_of(timeline_of(RANKS, way(5.0, 1.0), events))
        self.assertEqual((found["link", "h0 to s"], found["flight", ""]), (5.0, 0.6))  # that of the first

    def test_a_paused_link_comes_before_busy_ones(self):
        links = way(5.0, 0.0)
        links[1]["measured"] = "counters"
        links[1]["paused_us"] = 5.0
        t = timeline_of(RANKS, links, [step(1, "send", 0, 0.0, 6.0, peer=1), step(2, "receive", 0, 0.0, 10.0, peer=0)])
        t.links[1].between.add(("h0", "h1"))
        found = path_of(t)
        self.assertEqual((found["paused", "s to h1"], found["link", "h0 to s"]), (5.0, 5.0))

    def test_a_rank_that_comes_late_is_waited_for(self):
        t = timeline_of([rank(0, 6.0, entered_us=4.0), rank(1, 10.0), rank(2, 6.0)], way(0.0, 0.0), [step(1, "send", 0, 4.0, 6.0, peer=1), step(2, "receive", 0, 0.0, 10.0, peer=0)])
        self.assertEqual(path_of(t)["entry", "rank 0 (h0)"], 4.0)
        usual = timeline_of([rank(0, 6.0, entered_us=4.0), rank(1, 10.0, entered_us=4.0)], way(0.0, 0.0), [step(1, "send", 0, 4.0, 6.0, peer=1), step(2, "receive", 0, 0.0, 10.0, peer=0)])
        self.assertEqual(path_of(usual)["entry", ""], 4.0)

    def test_a_step_follows_those_that_it_depends_on(self):
        events = [step(2, "compute", 0, 1.0, 5.0, tid=3), step(2, "compute", 0, 5.0, 10.0, tid=4, after=[[3, 0]])]
        self.assertEqual(path_of(timeline_of(RANKS, way(0.0, 0.0), events)), {("compute", "rank 1 (h1)"): 9.0, ("hosts", "rank 1 (h1)"): 1.0})

    def test_switches_wait_for_the_last_rank(self):
        flows = [flow("h0", "s", 4096)]
        links = [link("h0", "s", 1, flows), link("h1", "s", 2, [flow("h1", "s", 4096)], latency_us=0.5)]
        t = timeline_of(RANKS, links, [step(1, "switch", 0, 3.0, 10.0), step(2, "switch", 0, 0.0, 10.0)])
        found = path_of(t)
        self.assertEqual(found["between", "rank 0 (h0) and the switches"], 6.5)
        self.assertEqual((found["flight", ""], found["hosts", "rank 0 (h0)"]), (0.5, 3.0))

    def test_what_has_no_step_is_lost(self):
        t = timeline_of(RANKS, way(0.0, 0.0), [step(2, "receive", 0, 0.0, 7.0, peer=0)])
        self.assertEqual(path_of(t), {("hosts", "rank 1 (h1)"): 3.0, ("lost", ""): 7.0})
        self.assertEqual(path_of(timeline_of(RANKS, [])), {})

    def test_lines_are_sorted_and_name_uneven_links(self):
        flows = [flow("h0", "h1", 4096)]
        links = [link("a", "b", 1, flows, busy_us=8.0), link("c", "d", 2)]
        t = timeline_of(RANKS, links, [step(1, "send", 0, 0.0, 6.0, peer=1), step(2, "receive", 0, 0.0, 10.0, peer=0)])
        self.assertEqual([(round(share, 6), us, text) for share, us, text in Path(t).lines()], [
            (0.8, 8.0, "a to b is busy, which carries 2.0 times the mean of its kind"), (0.17, 1.7, "between rank 0 (h0) and rank 1 (h1), while links were idle"),
            (0.03, 0.3, "on the way over idle links")])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
