# SPDX-License-Identifier: BSD-3-Clause
"""Sizes in bytes: texts, series, and the options of as few runs as have them."""
import unittest

from tributary import _sizes


class Sizes(unittest.TestCase):
    def test_a_text_is_so_many_bytes(self):
        rows = {
            "4096": 4096, "1": 1, "4K": 4096, "4k": 4096, "4KiB": 4096, "4kib": 4096, "4kB": 4000, "1.5K": 1536, "1.5kB": 1500, "2M": 2 << 20,
            "2MiB": 2 << 20, "2MB": 2 * 10**6, "3G": 3 << 30, "3GB": 3 * 10**9, "7B": 7, "7b": 7, " 4K ": 4096, "0.5K": 512, "0.001kB": 1,
        }
        for text, size in rows.items():
            self.assertEqual(_sizes.size_bytes(text), size, text)
        self.assertEqual(_sizes.size_bytes(17), 17)
        self.assertEqual(_sizes.size_bytes(1), 1)
        self.assertIs(type(_sizes.size_bytes(8.0)), int)

    def test_what_is_no_size_is_refused(self):
        for wrong in ("", "0", "-1", "1.5", "K", "4T", "4K5", "0.3K", "0.5", "4 K B", 0, -4, 1.5, True, False):
            with self.assertRaisesRegex(ValueError, "found the size .* expected bytes"):
                _sizes.size_bytes(wrong)

    def test_a_size_as_text(self):
        rows = {
            1: "1 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 20: "1 MiB", (1 << 20) - 512: "1024 KiB", 1 << 30: "1 GiB",
            3 << 40: "3072 GiB",
        }
        for size, text in rows.items():
            self.assertEqual(_sizes.size_text(size), text)

    def test_a_series_ends_at_the_last_that_fits(self):
        self.assertEqual(_sizes.sizes("1K", "64K"), [1024, 4096, 16384, 65536])
        self.assertEqual(_sizes.sizes("1K", "16383"), [1024, 4096])
        self.assertEqual(_sizes.sizes(1, 8, 2), [1, 2, 4, 8])
        self.assertEqual(_sizes.sizes(5, 5, 2), [5])
        for wrong in (1, 0, 2.5, -2):
            with self.assertRaisesRegex(ValueError, "found the factor"):
                _sizes.sizes(1, 8, wrong)
        with self.assertRaisesRegex(ValueError, "expected the smaller one first"):
            _sizes.sizes(9, 8)

    def test_a_list_is_sorted_and_has_each_once(self):
        self.assertEqual(_sizes.size_list("4K"), [4096])
        self.assertEqual(_sizes.size_list(5), [5])
        self.assertEqual(_sizes.size_list(["4K", 5, 4096]), [5, 4096])
        with self.assertRaisesRegex(ValueError, "found no sizes"):
            _sizes.size_list([])

    def test_options_are_those_of_as_few_runs_as_there_can_be(self):
        rows = [
            ([8], [["-b", "8", "-e", "8", "-f", "2"]]),
            ([8, 16, 32], [["-b", "8", "-e", "32", "-f", "2"]]),
            ([8, 24, 72], [["-b", "8", "-e", "72", "-f", "3"]]),
            ([8, 12, 16], [["-b", "8", "-e", "16", "-i", "4"]]),
            ([8, 20], [["-b", "8", "-e", "20", "-i", "12"]]),
            ([8, 16, 20], [["-b", "8", "-e", "16", "-f", "2"], ["-b", "20", "-e", "20", "-f", "2"]]),
            ([8, 16, 24, 48], [["-b", "8", "-e", "24", "-i", "8"], ["-b", "48", "-e", "48", "-f", "2"]]),
            ([], []),
        ]
        for series, options in rows:
            self.assertEqual(_sizes.size_options(series), options, series)


if __name__ == "__main__":
    unittest.main()
