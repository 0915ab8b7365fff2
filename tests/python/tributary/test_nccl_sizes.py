# SPDX-License-Identifier: BSD-3-Clause
"""Sizes on trib nccl's command line, read as those of the other tools."""

import getopt
import unittest

from tributary.nccl.command import size_of, sizes_of


class Sizes(unittest.TestCase):
    def test_units_are_those_of_the_other_tools(self) -> None:
        for text, expected in (("4096", 4096), ("64K", 65536), ("64k", 65536), ("64KiB", 65536), ("64kB", 64000), ("1.5M", 3 << 19), ("64MB", 64000000)):
            self.assertEqual(size_of({"minbytes": text}, "minbytes", "1K"), expected, text)
        self.assertEqual(size_of({}, "minbytes", "1K"), 1024)

    def test_what_is_no_size_of_whole_floats_is_refused(self) -> None:
        for text in ("", "0", "6", "1.3K", "-4", "4T", "16G", "many", "4 4"):
            with self.assertRaisesRegex(getopt.GetoptError, "--maxbytes: found '.*', expected a size of whole floats from 4 to 8G"):
                size_of({"maxbytes": text}, "maxbytes", "1K")

    def test_series(self) -> None:
        self.assertEqual(sizes_of({"minbytes": "1K", "maxbytes": "20K"}), [1024, 4096, 16384])
        self.assertEqual(sizes_of({"minbytes": "1K", "maxbytes": "1K", "stepfactor": "2"}), [1024])
        with self.assertRaisesRegex(getopt.GetoptError, "-b: found 2048 bytes, expected no more than the 1024 of -e"):
            sizes_of({"minbytes": "2K", "maxbytes": "1K"})


if __name__ == "__main__":
    unittest.main()
