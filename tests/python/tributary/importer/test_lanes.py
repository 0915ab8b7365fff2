# SPDX-License-Identifier: BSD-3-Clause
"""Data rates of links, by the names and by the signalling rates that tools print."""
import unittest

from tributary._cli import Refused
from tributary.importer import lanes


class Lanes(unittest.TestCase):
    def refused(self, says, call, *args):
        with self.assertRaises(Refused) as e:
            call(*args, "f:1")
        self.assertEqual(str(e.exception), says)

    def test_a_comment_ends_with_width_and_speed(self):
        for comment, rate in (
            ("lid 5 4xHDR", 200.0), ('"node 1xSDR" lid 5 4xFDR10', 40.0), ("1xSDR", 2.0), ("2xDDR", 8.0), ("8xQDR", 64.0), ("12xFDR", 12 * 13.64),
            ("4xEDR 4xNDR", 400.0), ("4xXDR", 800.0), ('"4xHDR 4xHDR" 4xEDR', 100.0),
        ):  # fmt: skip
            self.assertEqual(lanes.rate_of_name(comment, "f:1"), rate)
        for comment in ("", "lid 5", '"4xHDR"', "4xhdr", "4 xHDR"):
            self.refused("f:1: found a link without its rate, expected one as 4xHDR at its end", lanes.rate_of_name, comment)
        known = "expected 1, 2, 4, 8 or 12 times one of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR"
        self.refused(f"f:1: found 3xHDR, {known}", lanes.rate_of_name, "3xHDR")
        self.refused(f"f:1: found 4xZDR, {known}", lanes.rate_of_name, "4xZDR")

    def test_a_state_has_lanes_and_the_rate_of_each(self):
        for state, rate in (
            ("4X 53.125 Gbps Active/ LinkUp", 200.0), ("4X 50.0 Gbps Active", 200.0), (" 1X 2.5 Gbps x", 2.0), ("4X 10.0 Gbps (FDR10) Active", 40.0),
            ("4X 10.0 Gbps Active", 32.0), ("4X 10.3125 Gbps", 40.0), ("4X 14 Gbps (FDR) Active", 4 * 13.64), ("4X 25.78125 Gbps", 100.0),
            ("2X 106.25 Gbps", 200.0), ("4X 212.5 Gbps", 800.0), ("8X 5.0 Gbps", 32.0),
        ):  # fmt: skip
            self.assertAlmostEqual(lanes.rate_of_signal(state, "f:1"), rate)
        for state in ("4X 51.0 Gbps Active", "4x 50.0 Gbps", "", "Down", "4X 10.0 Gbps (FDR) Active", "4X 50.0 Gbps (EDR)", "4X 50.0 Gbpsx"):
            self.refused(
                f"f:1: found {state[:40]!r}, expected lanes and the signalling rate of each, as 4X 53.125 Gbps", lanes.rate_of_signal, state
            )
        self.refused("f:1: found 3xHDR, expected 1, 2, 4, 8 or 12 times one of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR", lanes.rate_of_signal, "3X 50.0 Gbps")


if __name__ == "__main__":
    unittest.main()
