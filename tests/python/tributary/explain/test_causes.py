# SPDX-License-Identifier: BSD-3-Clause
"""Causes: each rule on a small time line that has it, just above its limit and just below; and what is printed of them."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from timelines import flow, link, rank, step, timeline_of  # noqa: E402

from tributary.explain import of_hosts, of_pauses, report  # noqa: E402
from tributary.explain.causes import causes  # noqa: E402
from tributary.explain.path import Path  # noqa: E402

OWN = [flow("h0", "h1", 1000)]
RANKS = [rank(0, 10.0), rank(1, 10.0), rank(2, 10.0)]


def star(changed, **keys):
    """Three hosts at a switch, whose links carry the operation; one direction has other keys."""
    links = []
    for i, (a, b) in enumerate([("h0", "s"), ("s", "h1"), ("h2", "s"), ("s", "h2"), ("s", "h0"), ("h1", "s")]):
        links.append(link(a, b, i, **{"flows": OWN, **(keys if f"{a} to {b}" == changed else {})}))
    return links


def found(ranks, links, events=(), **other):
    t = timeline_of(ranks, links, events, **other)
    return [(c.name, c.text) for c in causes(t, Path(t))]


class Causes(unittest.TestCase):
    def test_none_stands_out(self):
        self.assertEqual(found(RANKS, star("")), [])

    def test_a_group_that_was_refused(self):
        for why, name in (("leaf1 refused it", "refused group"), ("link h0-s is down", "failover")):
            self.assertEqual(found(RANKS, star(""), op={"fell_back": why, "algorithm": "sharp"}), [(name, f"sharp was asked for and ring ran: {why}")])

    def test_a_rank_that_enters_late(self):
        late = [rank(0, 10.0), rank(1, 10.0, entered_us=1.0), rank(2, 10.0)]
        self.assertEqual(found(late, star("")), [("straggling rank", "rank 1 (h1) enters 1.00 us after the others (10 % of the time)")])
        late[1]["entered_us"] = 0.9
        self.assertEqual(found(late, star("")), [])

    def test_frames_that_are_lost_where_time_is_more_than_predicted(self):
        again = [rank(0, 10.0, retransmits=2, timeouts=1), *RANKS[1:]]
        self.assertEqual(found(again, star("h0 to s", lost=1, corrupted=2), op={"predicted_us": 5.0}),
                         [("lossy link", "h0 to s loses 3 frames of 10; ranks sent 2 packets again after 1 timeout")])  # fmt: skip
        self.assertEqual(found(again, star("h0 to s", lost=1), op={"predicted_us": 9.6}), [])
        self.assertEqual(found(RANKS, star("h0 to s", link_down=1), op={"predicted_us": 5.0}), [("link down", "h0 to s was down and dropped 1 frame")])
        self.assertEqual(found(RANKS, star("s to h1", queue_full=4), op={"predicted_us": 5.0}),
                         [("full queue", "s to h1 dropped 4 frames, because its queue of 64 KiB was full and nothing paused the senders")])  # fmt: skip

    def test_flows_of_others(self):
        links = star("s to h1", flows=[*OWN, flow("x", "h1", 3000, True), flow("y", "h1", 10, True)], bytes=4010, busy_us=6.0)
        self.assertEqual(found(RANKS, links), [("background flow", "x>h1, which is not of the operation, takes 75 % of s to h1's bytes; the link is busy 60 % of the time")])
        links[1]["busy_us"] = 5.9
        self.assertEqual(found(RANKS, links), [])

    def test_links_that_are_slow(self):
        self.assertEqual(found(RANKS, star("h2 to s", rate_Gbps=100, busy_us=7.0)),
                         [("slow link", "h2 to s has 100 Gb/s, where others of its kind have 400; it is busy 70 % of the time, they at most 0 %")])  # fmt: skip
        self.assertEqual(found(RANKS, star("h2 to s", rate_Gbps=320, busy_us=7.0)), [])

    def test_links_that_are_long(self):
        events = [step(1, "send", 0, 0.0, 6.0, peer=1), step(2, "receive", 0, 0.0, 10.0, peer=0)]
        self.assertEqual(found(RANKS, star("s to h1", latency_us=2.0), events),
                         [("long link", "s to h1 has a latency of 2.00 us, where others of its kind have 0.30 us; messages were on their way there for 20 % of the time")])  # fmt: skip
        self.assertEqual(found(RANKS, star("s to h1", latency_us=1.1), events), [])  # less than four times the others'

    def test_links_between_switches(self):
        inner = [link(f"leaf{i}", f"spine{i}", 10 + i, [flow("h0", "h1", n)], busy_us=us) for i, (n, us) in enumerate(((1000, 7.0), (1000, 6.5)))]
        text = "leaf0 to spine0 is busy 70 % of the time, and the 2 links of its kind alike; hosts' links at most 0 %"
        self.assertEqual(found(RANKS, [*star(""), *inner]), [("oversubscribed", text)])
        inner[0]["bytes"], inner[0]["flows"] = 3000, [flow("h0", "h1", 3000)]
        self.assertEqual(found(RANKS, [*star(""), *inner])[0][0], "uneven load")
        busy = star("h0 to s", busy_us=6.5)
        self.assertEqual(found(RANKS, [*busy, *inner]), [])  # hosts' links limit as well

    def test_a_queue_of_its_own_and_pfc(self):
        links = star("s to h1", busy_us=9.0, queue_peak_bytes=32768)
        links[0]["paused_us"], links[2]["paused_us"] = 6.0, 5.0
        links[1]["flows"] = [flow("h0", "h1", 500), flow("h2", "h1", 500)]
        text = "s to h1 is busy 90 % of the time and its queue has up to 32 KiB, as 2 hosts send to h1 at once, so PFC pauses 2 links behind it: h0 to s 60 % of the time"
        self.assertEqual(found(RANKS, links), [("incast", text)])
        links[1]["flows"] = OWN
        self.assertEqual(found(RANKS, links)[0][0], "backpressure")
        links[0]["paused_us"] = links[2]["paused_us"] = 4.9
        self.assertEqual(found(RANKS, links), [])

    def test_a_victim_of_pfc(self):
        links = star("s to h1", busy_us=9.0, queue_peak_bytes=32768, bytes=9000, flows=[flow("x", "h1", 9000, True)])
        links[0]["paused_us"] = 2.0
        text = "h0 to s is paused 20 % of the time, because s to h1 (busy 90 %, queue 32 KiB) does not drain: x>h1, not of the operation, fills it"
        self.assertEqual(found(RANKS, links), [("PFC victim", text)])

    def test_pauses_are_followed_to_their_root(self):
        links = [link("h0", "a", 1, OWN, paused_us=5.0), link("a", "b", 2, OWN, paused_us=5.0, queue_peak_bytes=1), link("a", "c", 3, OWN, queue_peak_bytes=9), link("b", "h1", 4, OWN)]
        t = timeline_of(RANKS, links)
        self.assertEqual(of_pauses.root_of_pauses(t, t.links[0]).name, "b to h1")

    def test_a_process_that_does_not_run(self):
        slow = [rank(i, 10.0, slow_us=us, slow_of_us=10.0) for i, us in enumerate((0.1, 3.0, 0.2))]
        self.assertEqual(found(slow, star(""))[0][1].split(",")[0], "frames wait for the process of h1 30 % of the time")
        slow[0]["slow_us"] = 1.1
        self.assertEqual(found(slow, star("")), [])

    def sends(self, idle):
        """h0 has two messages at 0, and sends the second one so much later than the first."""
        events = [step(1, "send", n, 0.0, 9.0, posted=0.0, peer=1, size=40000) for n in (0, 1)] + [step(3, "send", 0, 0.0, 9.0, posted=0.0, peer=1, size=40000)]
        runs = ((0, 0.0, "h0>h1"), (0, 1.0 + idle, "h0>h1"), (2, 0.0, "h2>h1"))
        return events + [{"ph": "X", "cat": "link", "pid": 100, "tid": tid, "ts": at, "dur": 1.0, "args": {"flows": {f: 40000}}} for tid, at, f in runs]

    def test_a_host_that_is_slow(self):
        text = "h0 has messages to send for 2.00 us more than its link is busy with them (20 % of the time; other hosts: 0.00 us)"
        self.assertEqual(found(RANKS, star(""), self.sends(2.0)), [("slow host", text)])
        self.assertEqual(found(RANKS, star(""), self.sends(1.9)), [])

    def test_a_window_of_queue_pairs_that_is_small(self):
        op = {"transport": {"mtu": 4096, "round_trip_us": 2.0, "window_packets": 8}}
        (name, text), = found(RANKS, star("h0 to s", busy_us=2.0, bytes=80000, flows=[flow("h0", "h1", 80000)]), self.sends(3.0), op=op)
        self.assertEqual((name, text.split(":")[0]), ("small window", "the window of a queue pair, 8 packets, is less than the 24 of a round trip"))

    def test_a_window_is_full_while_the_next_message_does_not_fit(self):
        self.assertEqual(of_hosts.full_share([(0.0, 4.0, 2), (1.0, 3.0, 2)], 4), 0.5)
        self.assertEqual(of_hosts.full_share([(0.0, 4.0, 2), (1.0, 3.0, 2)], 6), 0.0)
        self.assertEqual(of_hosts.full_share([(1.0, 1.0, 2)], 1), 0.0)

    def test_the_one_that_costs_most_is_first_and_backpressure_is_last_resort(self):
        links = star("s to h1", busy_us=9.0)
        links[0]["paused_us"] = 6.0
        late = [rank(0, 10.0), rank(1, 10.0, entered_us=3.0), rank(2, 10.0, entered_us=0.5)]
        self.assertEqual([n for n, _ in found(late, links, op={"fell_back": "refused"})], ["refused group", "straggling rank"])


class Printed(unittest.TestCase):
    def test_sentences_and_the_critical_path(self):
        t = timeline_of(RANKS, star("h0 to s", busy_us=9.0), [step(1, "send", 0, 0.0, 6.0, peer=1), step(2, "receive", 0, 0.0, 10.0, peer=0)],
                        op={"left_out": {"events": 1, "ranks": 2}, "fidelity": "lag", "error": "x", "predicted_us": 5.0})  # fmt: skip
        path = Path(t)
        self.assertEqual(report.lines(t, path, []), [
            "all_reduce by ring, 4 KiB, 3 ranks on f, in virtual time: 10.00 us, 2.00 times the 5.00 us of the model", "It failed: x",
            "The file leaves out 1 event and the steps of 2 ranks.", "", "The emulation lagged at dilation 1: times are not to be relied on.",
            "Nothing stands out: links are busy 90 % of the time at most (h0 to s).", "\nThe critical path, to the end of rank 0 (h0):",
            "   54 %      5.40 us  h0 to s is busy", "   40 %      4.00 us  rank 0 (h0) has nothing to wait for but itself", "    6 %      0.60 us  on the way over idle links",
        ])  # fmt: skip

    def test_numbers_of_json_are_rounded(self):
        t = timeline_of(RANKS, star(""))
        found = report.as_json(t, Path(t), [of_hosts.Cause("slow host", 0.12345678, "text")])
        self.assertEqual(found["causes"], [{"cause": "slow host", "weight": 0.123457, "text": "text"}])
        self.assertEqual((found["operation"]["time_us"], found["operation"]["clock"], found["critical_path"]), (10.0, "virtual", []))


if __name__ == "__main__":
    unittest.main()
