# SPDX-License-Identifier: BSD-3-Clause
"""Frames of several links in the order of their times, and when they are written."""
import unittest

from tributary.capture.merge import FAR_ROUNDS, Merge


def frame(ns, link=0):
    return ns, link, 4, b"data"


class Rounds(unittest.TestCase):
    def times(self, merge, fresh, last=False):
        return [f[0] for f in merge.round([frame(*f) for f in fresh], last)]

    def test_those_of_a_round_wait_for_the_next(self):
        m = Merge(False)
        self.assertEqual(self.times(m, [(5, 0), (1, 1)]), [])
        self.assertEqual(self.times(m, [(4, 1)]), [1, 4])  # as many as came before, the earliest of all
        self.assertEqual(self.times(m, []), [5])
        self.assertEqual(self.times(m, []), [])

    def test_those_of_other_machines_wait_some_rounds(self):
        m = Merge(True)
        self.assertEqual(self.times(m, [(9, 0)]), [])
        for n in range(FAR_ROUNDS - 1):
            self.assertEqual(self.times(m, [(n, 1)]), [])
        self.assertEqual(self.times(m, []), [0])
        self.assertEqual(self.times(m, []), [1])

    def test_at_the_end_all_are_written(self):
        m = Merge(True)
        self.times(m, [(3, 0), (2, 1)])
        self.assertEqual(self.times(m, [(1, 1)], last=True), [1, 2, 3])
        self.assertEqual(self.times(m, [], last=True), [])

    def test_of_the_same_time_the_first_link_comes_first(self):
        m = Merge(False)
        self.assertEqual(m.round([frame(1, 2), frame(1, 0)], True), [frame(1, 0), frame(1, 2)])


if __name__ == "__main__":
    unittest.main()
