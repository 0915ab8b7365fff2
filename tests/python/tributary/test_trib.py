# SPDX-License-Identifier: BSD-3-Clause
"""What trib says becomes an exception's text."""
import os
import subprocess
import sys
import tempfile
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


class Places(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name).resolve()

    def put(self, path):
        at = self.top / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.touch()
        return at

    def found(self, here, which=None):
        with mock.patch.object(_trib, "__file__", str(self.top / here)), mock.patch.object(_trib.shutil, "which", lambda name: name == "trib" and which):
            return _trib.trib()

    def test_trib_is_of_the_checkout_or_prefix_or_the_path(self):
        checkout, installed = "r/python/tributary/_trib.py", "p/lib/python3/dist-packages/tributary/_trib.py"
        with self.assertRaises(FileNotFoundError) as e:
            self.found(installed)
        self.assertEqual(str(e.exception), (
            f"found no trib; looked for {self.top}/p/lib/python3/scripts/trib, {self.top}/p/bin/trib and on the PATH (make install puts it there)"
        ))  # fmt: skip
        os.symlink(self.put("real"), self.top / "link")
        self.assertEqual(self.found(installed, str(self.top / "link")), self.top / "real")
        at = self.put("p/bin/trib")
        self.assertEqual(self.found(installed), at)
        at = self.put("r/scripts/trib")
        self.assertEqual(self.found(checkout), at)
        with mock.patch.object(_trib, "__file__", "/a/b/c/d.py"), mock.patch.object(_trib.shutil, "which", lambda name: None), self.assertRaises(FileNotFoundError) as e:
            _trib.trib()
        self.assertEqual(str(e.exception), "found no trib; looked for /a/scripts/trib and on the PATH (make install puts it there)")

    def test_a_name_that_is_none_is_asked_for(self):
        for stderr, says in ((" trib: found no conf x \n", "found no conf x"), ("", "found no file 'x', expected a path or the name of one that comes with trib")):
            ran = mock.Mock(return_value=mock.Mock(stderr=stderr))
            with mock.patch.object(subprocess, "run", ran), mock.patch.object(_trib, "trib", lambda: Path("/bin/trib")):
                self.assertEqual(str(_trib.no_such_file("x", "faults")), says)
            ran.assert_called_once_with(["/bin/trib", "--conf-file", "x", "faults"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def test_what_is_started_is_ended_with_us(self):
        child = mock.Mock(communicate=mock.Mock(side_effect=[KeyboardInterrupt, ("", "")]))
        with mock.patch.object(subprocess, "Popen", return_value=child) as made, self.assertRaises(KeyboardInterrupt):
            _trib.call(["x"])
        made.assert_called_once_with(["x"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        child.terminate.assert_called_once_with()
        self.assertEqual(child.communicate.call_count, 2)

    def test_bytes_that_are_no_text_are_replaced(self):
        code = r"import os; os.write(1, b'o\xff'); os.write(2, b'e\xff')"
        self.assertEqual(_trib.call([sys.executable, "-c", code]), (0, "e\ufffd"))
        with mock.patch.object(_trib, "trib", lambda: Path(sys.executable)):
            self.assertEqual(_trib.output(["-c", code]), "o\ufffd")
        self.assertEqual(_trib.why(0, ""), "exit code 0, without a word")


if __name__ == "__main__":
    unittest.main()
