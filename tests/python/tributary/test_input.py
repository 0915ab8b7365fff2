# SPDX-License-Identifier: BSD-3-Clause
"""Files that users name: what is read, and by which sentence all else is refused."""
import os
import tempfile
import threading
import unittest

from tributary import _input
from tributary._input import WrongFile

EXPECTED = "a file of tests"


class Input(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "x")

    def tearDown(self):
        self.folder.cleanup()

    def put(self, data):
        with open(self.path, "wb") as f:
            f.write(data)
        return self.path

    def refused(self, says, call, *args):
        with self.assertRaises(WrongFile) as e:
            call(*args)
        self.assertEqual(str(e.exception), says)

    def test_what_is_not_printable_is_escaped(self):
        self.assertEqual(_input.shown("a\x1b[2J\n\x7f é"), "a\\x1b[2J\\n\\x7f é")
        self.assertEqual(_input.shown(7), "7")

    def test_a_file_is_read_whole_and_no_more_than_allowed(self):
        big = bytes(range(256)) * 8192  # two parts
        self.assertEqual(_input.data_of(self.put(big)), big)
        self.assertEqual(_input.data_of(self.put(b""), 0), b"")
        self.assertEqual(_input.data_of(self.put(b"abc"), 3), b"abc")
        self.refused(f"{self.path}: found more than 0 MiB, expected less", _input.data_of, self.put(b"abcd"), 3)
        self.refused(f"{self.path}: found more than 2 MiB, expected less", _input.data_of, self.put(bytes((2 << 20) + 1)), 2 << 20)

    def test_other_kinds_of_files_are_refused(self):
        self.refused("a\\x00b: found a name with a byte of value 0, expected the name of a file", _input.data_of, "a\0b")
        self.refused("/dev/zero: found no plain file, expected one or a pipe", _input.data_of, "/dev/zero")
        with self.assertRaises(IsADirectoryError) as e:
            _input.data_of(self.folder.name)
        self.assertEqual((e.exception.errno, e.exception.filename), (21, self.folder.name))
        with self.assertRaises(FileNotFoundError):
            _input.data_of(self.path)
        os.mkfifo(self.path)
        self.refused(f"{self.path}: found a FIFO to which nobody writes, expected a file", _input.data_of, self.path)

    def test_a_pipe_is_read_until_its_writer_ends(self):
        read, write = os.pipe()
        writer = threading.Timer(0.1, lambda: (os.write(write, b"late"), os.close(write)))
        writer.start()
        try:
            self.assertEqual(_input.data_of(f"/dev/fd/{read}"), b"late")
        finally:
            writer.join()
            os.close(read)

    def test_text_is_utf_8(self):
        self.assertEqual(_input.text_of(self.put("\ufeffaé\n".encode())), "aé\n")
        self.refused(f"{self.path}: found a byte of value 0, expected text in UTF-8", _input.text_of, self.put(b"a\0"))
        self.refused(
            f"{self.path}: found a byte of value 0xe9 in line 3, expected {EXPECTED}", _input.text_of, self.put(b"a\nb\nc\xe9\n"), 100, EXPECTED
        )
        self.refused(f"{self.path}: found a byte of value 0xff in line 1, expected {EXPECTED}", _input.text_of, self.put(b"\xff"), 100, EXPECTED)
        self.refused(f"{self.path}: found more than 0 MiB, expected less", _input.text_of, self.put(b"abc"), 2)

    def test_json_of_a_sound_size_is_taken(self):
        for text, value in (
            ("7", 7), ("[]", []), ('{"a":[1,{"b":null}],"c":"x"}', {"a": [1, {"b": None}], "c": "x"}), ("[" * 64 + "]" * 64, None),
            ("[9e59,-9e59," + "8" + "9" * 59 + "]", None), ('"\\ud83d\\ude00"', "\U0001f600"), ('[true,false]', [True, False]),
        ):  # fmt: skip
            found = _input.json_of_text(text, "p", EXPECTED)
            if value is not None:
                self.assertEqual(found, value)

    def test_json_that_nobody_can_use_is_refused(self):
        deep = f"p: found JSON nested more than 64 deep, expected {EXPECTED}"
        for text, says in (
            ("{", f"p: found no JSON (Expecting property name enclosed in double quotes, line 1), expected {EXPECTED}"),
            ("[1,\n2,\n}", f"p: found no JSON (Expecting value, line 3), expected {EXPECTED}"),
            ("[" * 65 + "]" * 65, deep), ('{"a":' * 65 + "1" + "}" * 65, deep), ("[" * 100000 + "]" * 100000, deep),
            ("[1e60]", f"p: found the number 1e+60, expected {EXPECTED}"), ("[-1e60]", f"p: found the number -1e+60, expected {EXPECTED}"),
            ('{"a":NaN}', f"p: found the number nan, expected {EXPECTED}"), ("[Infinity]", f"p: found the number inf, expected {EXPECTED}"),
            ("[1" + "0" * 60 + "]", f"p: found the number of more than 60 digits, expected {EXPECTED}"),
            ("[-1" + "0" * 60 + "]", f"p: found the number of more than 60 digits, expected {EXPECTED}"),
            ("[" + "9" * 5000 + "]", f"p: found a number of more than 60 digits, expected {EXPECTED}"),
            ('["\\ud83d"]', f"p: found half of a character, expected {EXPECTED}"),
        ):  # fmt: skip
            self.refused(says, _input.json_of_text, text, "p", EXPECTED)

    def test_an_object_is_asked_for(self):
        self.assertEqual(_input.json_of(self.put(b'{"a":1}'), EXPECTED), {"a": 1})
        self.refused(f"{self.path}: found no object, expected {EXPECTED}", _input.json_of, self.put(b"[1]"), EXPECTED)
        self.refused(f"{self.path}: found a byte of value 0, expected {EXPECTED}", _input.json_of, self.put(b"\0"), EXPECTED)

    def test_what_a_file_lacks_is_its_mistake(self):
        def raises(e):
            with _input.whole("p\n", EXPECTED, "a run"):
                raise e

        for e, says in (
            (KeyError("k"), f"p\\n: found a run that is not whole (no 'k'), expected {EXPECTED}"),
            (IndexError("at"), f"p\\n: found a run that is not whole (at), expected {EXPECTED}"),
            (TypeError(), f"p\\n: found a run that is not whole (TypeError), expected {EXPECTED}"),
            (ZeroDivisionError("x" * 90), f"p\\n: found a run that is not whole ({'x' * 80}), expected {EXPECTED}"),
            (ValueError("y" * 90), f"p\\n: found {'y' * 80}, expected {EXPECTED}"),
            (WrongFile("of its own"), "of its own"),
        ):
            self.refused(says, raises, e)
        with self.assertRaisesRegex(ValueError, "^found z, expected w$") as e:
            raises(ValueError("found z, expected w"))
        self.assertNotIsInstance(e.exception, WrongFile)
        with self.assertRaises(OSError):
            raises(OSError(2, "no"))
        with _input.whole("p", EXPECTED):
            pass


if __name__ == "__main__":
    unittest.main()
