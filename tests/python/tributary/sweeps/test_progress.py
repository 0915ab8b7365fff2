# SPDX-License-Identifier: BSD-3-Clause
"""How long a sweep takes, by what it has done, and how that is shown."""
import io
import unittest
from unittest import mock

from tributary.sweeps import progress


def line(text, took=None, began=0.0):
    made = progress.Line(text)
    made.began_s = began
    if took is not None:
        made.took_s, made.done = took, True
    return made


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def setUp(self):
        self.now = 100.0
        patch = mock.patch("time.monotonic", lambda: self.now)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_line_weighs_its_ranks_times_its_bytes(self):
        a = progress.Line("x.conf all_reduce -g 4 --algo ring -e 3072 --seed 7")
        self.assertEqual(a.weight, 4 * (4096 + 65536))
        self.assertEqual((a.algo, a.shape), ("ring", "x.conf all_reduce -g 4 --algo ring -e 3072 "))
        b = progress.Line("x.conf all_reduce")
        self.assertEqual(b.weight, 8 * ((1 << 24) * 4 / 3 + 65536))
        self.assertEqual((b.algo, b.shape), ("", "x.conf all_reduce"))
        a.started()
        self.now += 2.5
        self.assertFalse(a.done)
        a.ended()
        self.assertEqual((a.took_s, a.done, a.began_s), (2.5, True, 100.0))

    def test_the_rest_takes_as_long_as_what_is_like_it(self):
        one, two = "c k -g 1 -e 3 --algo ", "c k -g 2 -e 3 --algo "  # weights 65540 and twice that
        for lines, left in (
            ([], None),
            ([line(one + "a")], None),
            ([line(one + "a", 3.0)], 0.0),
            # of the same shape but for the seed: their mean
            ([line(one + "a --seed 1", 3.0), line(one + "a --seed 2", 5.0), line(one + "a --seed 3")], 4.0),
            # of the same algorithm: by weight
            ([line(one + "a", 3.0), line(one + "b", 99.0), line(two + "a")], 6.0),
            # of no such algorithm: by the weight of all
            ([line(one + "a", 3.0), line(one + "b", 5.0), line(two + "c")], 8.0),
            # of what runs, what is over
            ([line(one + "a", 3.0), line(one + "a", began=99.0)], 2.0),
            ([line(one + "a", 3.0), line(one + "a", began=90.0)], 0.0),
            ([line(one + "a", 3.0), line(one + "a"), line(one + "a")], 6.0),
        ):
            self.assertEqual(progress.seconds(lines), left)

    def test_durations_are_in_two_units(self):
        for s, text in (
            (0, "0 s"), (0.4, "0 s"), (0.5, "1 s"), (59.4, "59 s"), (59.5, "1 min 0 s"), (90, "1 min 30 s"), (3599, "59 min 59 s"),
            (3600, "1 h 0 min"), (7325, "2 h 2 min"), (90000, "25 h 0 min"),
        ):  # fmt: skip
            self.assertEqual(progress.duration(s), text)

    def test_a_line_is_shown_every_ten_seconds(self):
        to, lines = io.StringIO(), [line("c k"), line("c k"), line("c k")]
        p = progress.Progress(lines, 2, 2, to)
        p.show()
        self.now += 9.9
        p.show()
        self.assertEqual(to.getvalue(), "")
        self.now += 0.1
        p.show()
        self.assertEqual(to.getvalue(), "sweep: 2 of 5 simulations (2 from before), 10 s\n")
        lines[0].took_s, lines[0].done = 8.0, True
        p.show()
        self.now += 10
        p.show()
        self.assertEqual(to.getvalue().splitlines()[1:], ["sweep: 3 of 5 simulations (2 from before), 20 s, 8 s left"])
        p.say("failed: x")
        lines[1].took_s, lines[1].done = 4.0, True
        self.now += 10
        p.show()
        lines[2].done = True
        p.end()
        self.assertEqual(to.getvalue().splitlines()[2:], [
            "sweep: failed: x", "sweep: 4 of 5 simulations (2 from before), 30 s, 6 s left, 1 failed",
            "sweep: 5 of 5 simulations (2 from before), 30 s, 1 failed",
        ])  # fmt: skip
        p.end()  # nothing new
        self.assertEqual(len(to.getvalue().splitlines()), 5)

    def test_a_terminal_has_one_line_that_is_overwritten(self):
        to = Terminal()
        p = progress.Progress([line("c k")], 0, 4, to)
        p.show()
        self.assertEqual(to.getvalue(), "sweep: 0 of 1 simulations, 0 s")
        self.now += 0.4
        p.show()
        self.assertEqual(to.getvalue(), "sweep: 0 of 1 simulations, 0 s")
        self.now += 0.6
        p.show()
        blank = "\r" + " " * 30 + "\r"
        self.assertEqual(to.getvalue(), f"sweep: 0 of 1 simulations, 0 s{blank}sweep: 0 of 1 simulations, 1 s")
        p.end()
        self.assertEqual(to.getvalue()[-2:], "s\n")

    def test_without_a_place_nothing_is_shown(self):
        p = progress.Progress([line("c k")], 0, 1, None)
        self.now += 100
        p.show()
        p.say("x")
        p.end()
        self.assertEqual((p.failed, p.shown, p.terminal), (1, "", False))


if __name__ == "__main__":
    unittest.main()
