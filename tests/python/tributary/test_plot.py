# SPDX-License-Identifier: BSD-3-Clause
"""How series of figures look and are called; figures themselves are in the end-to-end tests."""
import unittest

from tributary import plot
from tributary.plot import COLOURS, LINES, MARKERS, Look


class Plot(unittest.TestCase):
    def test_values_are_in_words(self):
        for name, value, text in (
            ("ranks", 8, "8 ranks"), ("faults", "", "no faults"), ("faults", "one_slow", "one slow"), ("in_place", True, "in place"),
            ("in_place", False, "out of place"), ("payload", "none", "payload none"), ("clock", "real", "real time"), ("size_bytes", 1024, "1 KiB"),
            ("collective", "all_reduce", "all reduce"), ("algo", "rec_dbl", "rec_dbl"), ("op", 7, "7"),
        ):  # fmt: skip
            self.assertEqual(plot.value_text(name, value), text)

    def test_the_first_column_is_the_colour_the_second_the_line_the_others_the_marker(self):
        one = Look(["algo"], {"algo": ["a", "b", "c"]})
        self.assertEqual(one.style(["b"]), {"color": COLOURS[1], "linestyle": LINES[0], "marker": MARKERS[1]})
        two = Look(["algo", "type"], {"algo": list("abcdefgh"), "type": list("123456")})
        self.assertEqual(two.style(["h", "3"]), {"color": COLOURS[0], "linestyle": LINES[2], "marker": MARKERS[7]})
        self.assertEqual(two.style(["b", "5"]), {"color": COLOURS[1], "linestyle": LINES[0], "marker": MARKERS[2]})
        four = Look(["algo", "type", "op", "ranks"], {"algo": ["a", "b"], "type": ["1"], "op": ["x", "y", "z"], "ranks": [2, 4]})
        self.assertEqual(four.style(["b", "1", "y", 4]), {"color": COLOURS[1], "linestyle": LINES[0], "marker": MARKERS[3]})
        self.assertEqual(four.style(["a", "1", "z", 4])["marker"], MARKERS[5])

    def test_a_label_has_what_differs(self):
        look = Look(["algo", "ranks"], {"algo": ["ring"], "ranks": [4]})
        self.assertEqual(look.label(["ring", 4]), "ring, 4 ranks")
        varied = Look(["conf"], {"conf": ["x,leaf_spine.spine_link.rate=1,mtu=256", "x,leaf_spine.spine_link.rate=2,mtu=256"]})
        self.assertEqual(varied.label([varied.values["conf"][0]]), "spine_link.rate=1")
        several = Look(["conf"], {"conf": ["x,a=1,b.c=2", "x,a=2,b.c=3"]})
        self.assertEqual(several.label(["x,a=1,b.c=2"]), "a=1, b.c=2")
        for confs in (["x,a=1", "y,a=2"], ["x,a", "x,b"], ["x", "y"]):
            self.assertEqual(Look(["conf"], {"conf": confs}).label([confs[0]]), confs[0])

    def test_a_band_is_of_quantiles(self):
        for band, limits in ((None, None), ("minmax", (0.0, 1.0)), ((5, 95), (0.05, 0.95)), ((0, 100), (0.0, 1.0))):
            self.assertEqual(plot._limits(band), limits)
        for band in ("max", (95, 5), (5, 5), (-1, 5), (5, 101), (1, 2, 3), [5, 95], 5):
            with self.assertRaisesRegex(ValueError, "^found band=.*, expected \"minmax\", a pair of percentiles such as \\(5, 95\\), or None$"):
                plot._limits(band)


if __name__ == "__main__":
    unittest.main()
