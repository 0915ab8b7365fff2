# SPDX-License-Identifier: BSD-3-Clause
"""What trib says becomes an exception's text."""
import sys
import unittest
from pathlib import Path
from unittest import mock

from tributary import _trib


class Trib(unittest.TestCase):
    def test_accounts_hints_and_empty_lines_say_no_reason(self):
        self.assertEqual(_trib.said("a\n\n  \n1 s simulated in 2 s\ntrib -h shows all options\nb\n"), "a\nb")
        self.assertEqual(_trib.said("\n".join(map(str, range(30)))), "\n".join(map(str, range(10, 30))))
        self.assertEqual(_trib.said(""), "")

    def test_a_signal_is_named(self):
        for code, stderr, text in (
            (1, "no\n", "no"), (1, "", "exit code 1, without a word"), (128, "", "exit code 128, without a word"),
            (-9, "", "ended by signal 9"), (137, "x", "ended by signal 9; it said: x"), (129, "", "ended by signal 1"),
        ):  # fmt: skip
            self.assertEqual(_trib.why(code, stderr), text)

    def test_a_command_is_called_without_input(self):
        code = "import sys; sys.stderr.write('e' + sys.stdin.read()); print('o'); sys.exit(3)"
        self.assertEqual(_trib.call([sys.executable, "-c", code]), (3, "e"))

    def test_an_error_has_its_command(self):
        e = _trib.TribError("text", ("a", "b"), 4)
        self.assertEqual((str(e), e.command, e.code, e.rows), ("text", ["a", "b"], 4, None))

    def test_what_is_missing_is_named_with_its_package(self):
        self.assertIs(_trib.need("sys", "x"), sys)
        with self.assertRaisesRegex(ImportError, r"^tributary needs no_such_module here: .*\(Debian: apt-get install pkg\)$"):
            _trib.need("no_such_module", "pkg")

    def test_output_is_that_of_the_command(self):
        with mock.patch.object(_trib, "trib", lambda: Path("/bin/echo")):
            self.assertEqual(_trib.output(["a", "b"]), "a b\n")
        with mock.patch.object(_trib, "trib", lambda: Path("/bin/false")), self.assertRaises(_trib.TribError) as e:
            _trib.output(["a"])
        self.assertEqual((str(e.exception), e.exception.command, e.exception.code), ("exit code 1, without a word", ["/bin/false", "a"], 1))

    def test_confs_that_come_with_trib_have_names(self):
        root = Path(__file__).resolve().parents[3]
        with mock.patch.object(_trib, "trib", lambda: root / "scripts" / "trib"):
            conf = root / "conf" / "leaf-spine-8.conf"
            for name in ("leaf-spine-8", "leaf-spine-8.conf", "conf/leaf-spine-8", "conf/leaf-spine-8.conf"):
                self.assertEqual(_trib.shipped(name), conf)
            for name in ("", "leaf-spine", "conf/", "faults"):
                self.assertIsNone(_trib.shipped(name))
            self.assertIsNone(_trib.shipped("leaf-spine-8", "faults"))
            some = sorted((root / "conf" / "faults").glob("*.conf"))[0]
            self.assertEqual(_trib.shipped(some.stem, "faults"), some)


if __name__ == "__main__":
    unittest.main()
