# SPDX-License-Identifier: BSD-3-Clause
"""Other machines: words that reach them unchanged, which machine has which link, and what is read of what they say."""
import contextlib
import io
import os
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tributary._cli import Refused
from tributary.machines import command, links, machine, status, up, words
from tributary.machines.machine import Machine

PLAN = """\
fabric x

Nodes
node    kind    process  links
h0      host    p0       1
leaf:0  switch  p1       4

Links
"""


class Words(unittest.TestCase):
    def test_a_plain_word_is_itself_for_every_shell(self):
        for word, plain in (("up", True), ("-t", True), ("loss=0.1%", False), ("a=b", True), ("=x", False), ("~/x", False), ("a b", False), ("$(id)", False), ("", False), ("a\n", False), ("é", False)):
            self.assertEqual(words.is_plain(word), plain, word)

    def test_others_travel_in_hexadecimal(self):
        self.assertEqual(words.plain_words(["link", "h0-s"]), ["link", "h0-s"])
        self.assertEqual(words.plain_words(["a", "b c\udcff"]), ["--words=" + b"a\0b c\xff\0".hex()])

    def test_trib_goes_by_its_name_where_that_is_this_one(self):
        with tempfile.TemporaryDirectory() as folder:
            top = Path(os.path.realpath(folder))
            (top / "trib").write_text("")
            (top / "trib").chmod(0o755)
            with mock.patch.dict(os.environ, {"PATH": str(top)}):
                self.assertEqual([words.name_of(str(top / "trib")), words.name_of("/else/trib"), words.name_of("/el se/trib")], ["trib", "/else/trib", "trib"])


class There(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)

    def put(self, name, text):
        path = self.top / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def test_a_launcher_gets_the_address_or_the_name_of_the_machine(self):
        says = self.put("says", 'printf "%s|" "$TRIB_MACHINE" "${TRIB_RUN-}" "$@"; echo')
        with mock.patch.dict(os.environ, {"TRIB_RUN": "/here"}):
            self.assertEqual(Machine("m2 10.0.0.2 p1", "m1", says + " -q", "/t/trib").run("link", "a b"), (0, f"m2||-q|10.0.0.2|/t/trib|--words={b'link'.hex()}00{b'a b'.hex()}00|\n"))
            self.assertEqual(Machine("m2 10.0.0.2 p1", "m1", says + " -w $TRIB_MACHINE", "/t/trib").run("down"), (0, "m2||-w|m2|/t/trib|down|\n"))
            self.assertEqual(Machine("m1 10.0.0.1 p0", "m1", "ssh", says).run("down", "a b"), (0, "|/here|down|a b|\n"))

    def test_what_it_says_has_its_name(self):
        m = Machine("m2 10.0.0.2 p1 p2", "m1", "ssh", "trib")
        self.assertEqual((m.told(" a\nb\n"), m.told(" \n"), m.here, m.processes), ("m2: a\nm2: b", "m2: it says nothing", False, ["p1", "p2"]))

    def test_machines_are_those_of_the_plan(self):
        plan = self.put("plan", '[ "$*" = "--machines x.conf" ] && printf "m1 a p0\\nm2 b p1\\n"')
        self.assertEqual([(m.name, m.here) for m in machine.machines_of("m2", "ssh", "trib", plan, "x.conf")], [("m1", False), ("m2", True)])
        with self.assertRaisesRegex(Refused, "^no conf$"):
            machine.machines_of("m2", "ssh", "trib", self.put("bad", "echo no conf >&2; exit 1"), "x.conf")

    def test_links_that_are_elsewhere(self):
        nodes = machine.process_of(PLAN)
        self.assertEqual(nodes, {"h0": "p0", "leaf:0": "p1"})
        nodes = {"h0": "p0", "h1": "p1", "s-1": "p1"}
        self.assertEqual([machine.ends(x, nodes) for x in ("h0-s-1", "h0:1-s-1:2", "h1-h0", "h0-x", "h0")], [("h0", "s-1"), ("h0", "s-1"), ("h1", "h0"), None, None])
        both = [Machine("m1 a p0", "m1", "ssh", "trib"), Machine("m2 b p1", "m1", "ssh", "trib")]
        self.assertEqual([[m.name for m in machine.far_ends(both, nodes, x)] for x in ("h0-s-1", "h1-s-1", "h9-s-1")], [[], ["m2"], []])

    def test_a_capture_with_an_end_here_is_none_of_others(self):
        both = [Machine("m1 a p0", "m1", "ssh", "trib"), Machine("m2 b p1", "m1", "ssh", "trib")]
        with mock.patch.object(links, "processes", lambda plan, conf: {"h0": "p0", "s": "p1"}):
            self.assertEqual(links.capture(both, "f", "plan", "conf", ["program", "d", "c", "", "o", "", "h0-s"]), 3)

    def test_links_of_others_come_by_pipes(self):
        shows = self.put("shows", 'for w; do case $w in @*) fd=${w#@}; echo "$w" | cut -d: -f2-; eval "cat <&${fd%%:*}";; *) echo "$w";; esac; done >"' + str(self.top) + '/said"')
        far = self.put("far", 'echo "asked: $*"')
        with mock.patch.object(links, "processes", lambda plan, conf: {"h0": "p0", "h1": "p1", "s": "p1", "t": "p0"}), mock.patch.object(links.signal, "signal", lambda *_: None):
            rc = links.capture([Machine("m1 a p0", "m1", far, "trib"), Machine("m2 b p1", "m1", far, "/t/trib")], "f", "plan", "conf", [shows, "d", "c", "udp", "o", "5", "h0-t", "h1-s"])
        self.assertEqual((rc, (self.top / "said").read_text()), (0, "d\nc\nudp\no\n5\nh0-t\nm2:h1-s\nasked: b /t/trib capture f h1-s -o - -t 5 --filter udp\n"))


class Said(unittest.TestCase):
    def test_lines_of_status_that_say_who_is_not_heard(self):
        m = Machine("m1 a p0", "m1", "ssh", "trib")
        text = "fabric f\n  machine m1: this one\n  machine m2: there\n  machine m3: not there\n  machine m4: has another conf\n"
        self.assertEqual(up.unheard(m, 0, text), ["m1: machine m3: not there", "m1: machine m4: has another conf"])
        self.assertEqual(up.unheard(m, 0, "  machine m1: this one\n"), [])
        self.assertEqual(up.unheard(m, 1, "  machine m1: this one\n"), ["m1: machine m1: this one"])
        self.assertEqual(up.unheard(m, 0, ""), ["m1: it says nothing"])

    def test_it_is_up_when_it_says_so(self):
        def start(text, rc, stays=False):
            s = up.Start.__new__(up.Start)
            s.machine, s.stays, s.process, s.log = Machine("m2 a p0", "m1", "ssh", "trib"), stays, mock.Mock(poll=lambda: rc), io.StringIO(text)
            return s

        said = "f is up on machine m2: 3 processes"
        self.assertEqual([start(said, 0).is_up(), start(said, None).is_up(), start(said, None, True).is_up(), start("", None).is_up()], [True, None, True, None])
        for text, rc in (("", 0), (said, 1), ("no", 255)):
            with self.assertRaisesRegex(Refused, "^m2: "):
                start(text, rc).is_up()

    def test_lines_that_come_in_pieces_are_marked(self):
        lines = status.Lines("m2")
        self.assertEqual(lines.marked(b"a\n\n{ \"x\": 1}\nhal"), ["m2: a", "m2:", '{"machine": "m2", "x": 1}'])
        self.assertEqual(lines.marked(b"f\n"), ["m2: half"])

    def test_one_object_of_all_machines(self):
        class M:
            def __init__(self, name, text):
                self.name, self.text = name, text

            def start(self, *_):
                return mock.Mock(communicate=lambda: (self.text, None))

        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            rc = status.as_json([M("m1", '{"up": 1}'), M("m2", "ssh: no route\n"), M("m3", "")], "f", ["--json"])
        self.assertEqual((rc, out.getvalue().replace("\n", "").replace(" ", "")),
                         (1, '{"fabric":"f","machines":{"m1":{"up":1},"m2":{"error":"ssh:noroute"},"m3":{"error":"itsaysnothing"}}}'))  # fmt: skip

    def test_a_refusal_is_one_of_trib(self):
        err = io.StringIO()
        with contextlib.redirect_stderr(err), mock.patch.object(subprocess, "run", lambda *_, **__: mock.Mock(returncode=1, stderr="x.conf:1: no\n")):
            rc = command.main(["up", "", "ssh", "trib", "plan", "x.conf", "f"])
        self.assertEqual((rc, err.getvalue()), (1, "trib: x.conf:1: no\n"))


if __name__ == "__main__":
    unittest.main()
