# SPDX-License-Identifier: BSD-3-Clause
"""What a table of options gives: help, manual page, completion, parsing, exit status."""
import contextlib
import getopt
import io
import os
import unittest
from unittest import mock

from tributary import _cli
from tributary._cli import Command, Option, Refused
from tributary._input import WrongFile

COMMAND = Command(
    "trib-x", "does x", "[OPTION...] FILE", "First.\n\n.Second - one.",
    (
        Option("output", "o", "FILE", "", "where the results go"),
        Option("kind", "", "KIND", "red blue", "of the result, of which there are two that a line of the help has no room for"),
        *_cli.HELP,
    ),
    (("0", "done"), ("2", "a mistake")), "trib(1)",
)  # fmt: skip


class Text(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.object(_cli, "version", lambda: "1.2")
        patch.start()
        self.addCleanup(patch.stop)

    def test_help_is_in_two_columns(self):
        self.assertEqual(COMMAND.usage(), "\n".join([
            "Usage: trib-x [OPTION...] FILE", "First.", "", ".Second - one.", "", "Options:",
            "  -o, --output FILE             where the results go",
            "      --kind KIND               of the result, of which there are two that a line of the help has no",
            "                                room for: red, blue",
            "  -h, --help                    print this text",
            "      --version                 print the version",
            "", "Exit status:",
            "  0                             done",
            "  2                             a mistake",
        ]))  # fmt: skip

    def test_help_has_lines_of_68_characters(self):
        for n, lines in ((33, 1), (34, 2)):
            text = f"{'x' * 34} {'y' * n}"
            usage = COMMAND._replace(options=(Option("a", "", "", "", text),)).usage()
            self.assertEqual(sum(line.strip().startswith(("--a", "yyy")) for line in usage.split("\n")), lines)

    def test_the_manual_page_is_escaped(self):
        self.assertEqual(COMMAND.answered(["--help=man", "more"]), "\n".join([
            '.TH TRIB-X 1 "" "Tributary 1.2" "Tributary manual"', ".SH NAME", "trib\\-x \\- does x", ".SH SYNOPSIS",
            "\\fBtrib\\-x\\fR [OPTION...] FILE", ".SH DESCRIPTION", "First.\n.PP\n\\&.Second \\- one.", ".SH OPTIONS",
            ".TP\n\\fB\\-o, \\-\\-output FILE\\fR\nwhere the results go.",
            ".TP\n\\fB\\-\\-kind KIND\\fR\nof the result, of which there are two that a line of the help has no room for: red, blue.",
            ".TP\n\\fB\\-h, \\-\\-help\\fR\nprint this text.", ".TP\n\\fB\\-\\-version\\fR\nprint the version.",
            ".SH EXIT STATUS", ".TP\n\\fB0\\fR\ndone.", ".TP\n\\fB2\\fR\na mistake.", ".SH SEE ALSO", "trib(1)",
        ]))  # fmt: skip

    def test_a_help_with_examples_is_as_it_is(self):
        command = COMMAND._replace(synopsis="trib-x A\n       trib-x -b", verbatim="A is:\n    .x -y")
        self.assertEqual(command.usage(), "Usage: trib-x A\n       trib-x -b\nA is:\n    .x -y")
        self.assertIn("\n.SH SYNOPSIS\n.nf\ntrib\\-x A\ntrib\\-x \\-b\n.fi\n.SH DESCRIPTION\n.nf\nA is:\n    .x \\-y\n.fi\n.SH OPTIONS\n", command.man_page())

    def test_options_may_end_where_arguments_begin(self):
        argv = ["-o", "a", "--output=b", "f", "-o", "c"]
        self.assertEqual(COMMAND.pairs(argv), ([("output", "a"), ("output", "b"), ("output", "c")], ["f"]))
        self.assertEqual(COMMAND._replace(ordered=True).pairs(argv), ([("output", "a"), ("output", "b")], ["f", "-o", "c"]))
        self.assertEqual(COMMAND.parse(argv)[0], {"output": "c"})

    def test_completion_has_a_line_for_each_option(self):
        self.assertEqual(COMMAND.answered(["--help=complete"]).split("\n"), [
            "--output\t-o\tFILE\t\twhere the results go",
            "--kind\t\tKIND\tred blue\tof the result, of which there are two that a line of the help has no room for",
            "--help\t-h\t\t\tprint this text", "--version\t\t\t\tprint the version",
        ])  # fmt: skip
        self.assertEqual(COMMAND.answered(["--help=complete", "more"]), COMMAND.answered(["--help=complete"]))
        for argv in ([], ["--help"], ["x", "--help=man"]):
            self.assertIsNone(COMMAND.answered(argv))

    def test_a_text_of_others_becomes_a_line(self):
        self.assertEqual(_cli.clean("a\x1b\nb"), "a??b")
        self.assertEqual(_cli.clean("x" * 60), "x" * 60)
        self.assertEqual(_cli.clean("x" * 61), "x" * 57 + "...")
        self.assertEqual(_cli.clean("abcde", 4), "a...")

    def test_options_are_parsed_by_any_spelling(self):
        for argv in (["-o", "x", "--kind=red", "f"], ["f", "--kind", "red", "-ox"], ["--kin=red", "--output=x", "f"]):
            self.assertEqual(COMMAND.parse(argv), ({"output": "x", "kind": "red"}, ["f"]))
        self.assertEqual(COMMAND.parse([]), ({}, []))
        self.assertEqual(COMMAND.parse(["-h", "--", "-o"]), ({"help": ""}, ["-o"]))

    def test_mistakes_say_what_was_found(self):
        for argv, says in (
            (["--kind", "pink\x1b"], "--kind: found 'pink?', expected one of red, blue"),
            (["--knd", "x"], "found --knd, expected an option of trib-x; did you mean --kind?"),
            (["--zzz"], "found --zzz, expected an option of trib-x"),
            (["-z"], "found -z, expected an option of trib-x"),
            (["--zz"], "found --zz, expected an option of trib-x"),
            (["-o"], "found -o at the end, expected its value"),
            (["--output"], "found --output at the end, expected its value"),
            (["--kin\x1b"], "found --kin?, expected an option of trib-x; did you mean --kind?"),
        ):
            with self.assertRaises(getopt.GetoptError) as e:
                COMMAND.parse(argv)
            self.assertEqual(str(e.exception), says)

    def run_it(self, argv, work):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = COMMAND.run(argv, work)
        return code, out.getvalue() if not out.closed else "closed", err.getvalue()

    def test_a_run_ends_with_its_status(self):
        def raises(e):
            def work(_given, _args):
                raise e

            return work

        done = []
        self.assertEqual(self.run_it(["-o", "x", "f"], lambda given, args: done.append((given, args))), (0, "", ""))
        self.assertEqual(done, [({"output": "x"}, ["f"])])
        self.assertEqual(self.run_it(["-h", "f"], raises(KeyError())), (0, COMMAND.usage() + "\n", ""))
        self.assertEqual(self.run_it(["--version"], raises(KeyError())), (0, "trib-x (Tributary) 1.2\n", ""))
        self.assertEqual(self.run_it(["--help=complete"], None)[1], COMMAND.answered(["--help=complete"]) + "\n")
        self.assertEqual(self.run_it(["-z"], None), (2, "", "trib-x: found -z, expected an option of trib-x\n"))
        self.assertEqual(self.run_it([], raises(Refused("no"))), (1, "", "trib-x: no\n"))
        self.assertEqual(self.run_it([], raises(WrongFile("bad"))), (1, "", "trib-x: bad\n"))
        self.assertEqual(self.run_it([], raises(OSError(2, "missing", "a\x1b"))), (1, "closed", "trib-x: a\\x1b: missing\n"))
        self.assertEqual(self.run_it([], raises(OSError(28, "full"))), (1, "closed", "trib-x: cannot write: full\n"))
        self.assertEqual(self.run_it([], raises(KeyboardInterrupt())), (130, "", ""))
        with self.assertRaises(KeyError):
            self.run_it([], raises(KeyError()))
        with mock.patch.object(os, "dup2") as to, mock.patch.object(os, "open", lambda path, how: (path, how)):
            self.assertEqual(self.run_it([], raises(BrokenPipeError())), (1, "", ""))
        to.assert_called_once_with(("/dev/null", os.O_WRONLY), 1)
        self.assertEqual(self.run_it([], lambda _given, _args: 3), (3, "", ""))

    def test_a_reader_who_has_enough_may_be_no_failure(self):
        def breaks():
            raise BrokenPipeError

        with mock.patch.object(os, "dup2"), mock.patch.object(os, "open", lambda path, how: (path, how)):
            self.assertEqual([_cli.ended(print, breaks, code) for code in (0, 141)], [0, 141])


class Python(unittest.TestCase):
    """In which Python a command goes on."""

    def goes_on_in(self, names, env, executable=True):
        def run(path, argv, env):
            ran.append((path, argv, env.get("TRIB_REPORT_PYTHON")))

        ran = []
        with mock.patch.object(os, "execve", run), mock.patch.object(os, "access", lambda path, how: executable), mock.patch.dict(os.environ, env), \
                mock.patch.object(_cli.sys, "argv", ["bin/trib-x", "a b"]):
            _cli.need_modules(*names)
        return ran

    def test_this_one_where_it_has_the_modules(self):
        self.assertEqual(self.goes_on_in(("json", "os"), {}), [])

    def test_the_systems_where_one_is_missing(self):
        self.assertEqual(self.goes_on_in(("json", "no_such_module"), {}), [("/usr/bin/python3", ["/usr/bin/python3", "bin/trib-x", "a b"], "/usr/bin/python3")])

    def test_this_one_where_the_systems_lacks_it_too(self):
        self.assertEqual(self.goes_on_in(("no_such_module",), {"TRIB_REPORT_PYTHON": "x"}), [])
        self.assertEqual(self.goes_on_in(("no_such_module",), {}, executable=False), [])


if __name__ == "__main__":
    unittest.main()
