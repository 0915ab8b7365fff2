# SPDX-License-Identifier: BSD-3-Clause
"""trib-report: which files are asked for, in which order, and what is refused; the page itself is only noted."""
import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tributary import report
from tributary.report import command


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.written, self.needed, self.error = [], [], None
        for at, name, what in ((report, "write", self.write), (command, "need_modules", lambda *names: self.needed.append(names))):
            patch = mock.patch.object(at, name, what)
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, files, to, title):
        if self.error:
            raise self.error
        self.written.append((files, to, title))

    def main(self, *argv):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(argv)
        return code, err.getvalue()

    def put(self, *names):
        for name in names:
            (self.top / name).write_text("{}", encoding="utf-8")
        return [str(self.top / name) for name in names]

    def test_files_and_title_are_handed_on(self):
        a, b = self.put("a.json", "b.json")
        self.assertEqual(self.main(b, a), (0, ""))
        self.assertEqual(self.main(a, "-o", "x.html", "--title", "T"), (0, ""))
        self.assertEqual(self.written, [([b, a], "report.html", ""), ([a], "x.html", "T")])
        self.assertEqual(self.needed, [("pandas", "matplotlib")] * 2)

    def test_a_folder_is_the_files_of_a_sweep_in_order(self):
        self.put("00002.json", "00010.json", "100000.json", "99999.json", "notes.json", "00002.out")
        self.assertEqual(command.results_of(str(self.top)), [str(self.top / f"{n}.json") for n in ("00002", "00010", "99999", "100000")])

    def test_a_folder_without_numbers_is_all_its_files(self):
        self.put("bb.json", "a.json", "list")
        self.assertEqual(command.results_of(str(self.top)), [str(self.top / "a.json"), str(self.top / "bb.json")])

    def test_a_folder_of_nothing_is_refused(self):
        self.put("list")
        self.assertEqual(self.main(str(self.top)), (1, f"trib-report: {self.top}: found no *.json in it, expected files of trib's -J, as trib-sweep writes them\n"))

    def test_a_result_is_not_overwritten(self):
        (a,) = self.put("a.json")
        os.link(a, self.top / "same")
        self.assertEqual(self.main(a, "-o", str(self.top / "same")), (2, f"trib-report: -o: found {self.top}/same, which is a RESULT, expected another file\n"))
        self.assertEqual(self.main(), (2, "trib-report: found no RESULT, expected files of trib's -J or --timeline (-h shows all)\n"))
        self.assertEqual(self.written, [])

    def test_what_the_page_refuses_is_one_line(self):
        (a,) = self.put("a.json")
        for error, says in ((ValueError("found x\nexpected\x1b y"), "found x expected\\x1b y"), (ImportError("no pandas"), "no pandas")):
            self.error = error
            self.assertEqual(self.main(a), (1, f"trib-report: {says}\n"))
        self.error = KeyError("a bug")
        with self.assertRaises(KeyError):
            self.main(a)


if __name__ == "__main__":
    unittest.main()
