# SPDX-License-Identifier: BSD-3-Clause
"""Published series: how sizes are written for the programs that predict them."""
import unittest

from tributary.validate import published


class Sizes(unittest.TestCase):
    def test_the_largest_unit_that_divides_it(self):
        texts = {0: "0", 1: "1", 1000: "1000", 1023: "1023", 1 << 10: "1K", 1500 << 10: "1500K", 1 << 20: "1M", 1536 << 20: "1536M", 1 << 30: "1G", 16 << 30: "16G"}
        self.assertEqual({z: published.size_text(z) for z in texts}, texts)


if __name__ == "__main__":
    unittest.main()
