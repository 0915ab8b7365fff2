# SPDX-License-Identifier: BSD-3-Clause
"""Names that are made, notes that are told once, and files that are no text."""
import os
import tempfile
import unittest

from tributary._cli import Refused
from tributary.importer import source


class Source(unittest.TestCase):
    def test_a_note_is_told_once_with_how_many_there_are(self):
        notes = source.Notes()
        for why, where in (("a", "f:1"), ("b", "f:2"), ("a", "f:3"), ("a", "f:3"), ("a", "f:4")):
            notes.add(why, where)
        self.assertEqual(notes.lines(), ["f:1: a (and 2 more)", "f:2: b"])

    def test_names_are_of_letters_that_confs_take_each_once(self):
        names = source.Names()
        for text, name in (
            ("leaf 1", "leaf_1"), ("leaf-1", "leaf_1_2"), ("leaf/1", "leaf_1_3"), ("__a__", "a"), ("...", "sw7"), ("", "sw7_2"), ("1up", "n1up"),
            ("x" * 24, "x" * 24), ("host.example.com", "host.example.com"), ("host.a-very-long-domain.example.com", "host"),
            ("abcdefghijklmnopqrstuvwxy", "abcdefgh_klmnopqrstuvwxy"), ("abcdefg_ijklmnopq_stuvwxyzabcd", "abcdefg_pq_stuvwxyzabcd"),
        ):  # fmt: skip
            self.assertEqual(names.make(text, "sw7"), name)

    def test_what_is_no_text_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x")
            for data, says in (
                (b"\x1f\x8bx", "found a file that gzip has compressed, expected text in UTF-8"),
                (b"\xff\xfea\0", "found a binary file or one in UTF-16, expected text in UTF-8"),
                (b"\xfe\xff\0a", "found a binary file or one in UTF-16, expected text in UTF-8"),
                (b"a\0b", "found a binary file or one in UTF-16, expected text in UTF-8"),
                (b"a\n" + b"x" * 16385 + b"\n", "found a line of more than 16384 characters, expected what ibnetdiscover or NCCL writes"),
            ):
                with open(path, "wb") as f:
                    f.write(data)
                with self.assertRaises(Refused) as e:
                    source.text_of(path)
                self.assertEqual(str(e.exception), f"{path}: {says}")
            with open(path, "wb") as f:
                f.write(b"\xef\xbb\xbfa\xe9\n" + b"x" * 16384)
            self.assertEqual(source.text_of(path), "a\ufffd\n" + "x" * 16384)
            for name in ("a\nb", "a\x7f", "a\x9b"):
                with self.assertRaisesRegex(Refused, "found a name with control characters, expected one without: it is told in the conf$"):
                    source.text_of(os.path.join(folder, name))


if __name__ == "__main__":
    unittest.main()
