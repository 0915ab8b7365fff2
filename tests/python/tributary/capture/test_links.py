# SPDX-License-Identifier: BSD-3-Clause
"""Links as they are captured: files that grow, and pipes from other machines; what switch processes say."""
import os
import struct
import tempfile
import time
import unittest
from unittest import mock

from tributary._cli import Refused
from tributary.capture import fabric, links, pcapng
from tributary.capture.links import FarLink, Link


def pcap(s, ns, data, length=None):
    return struct.pack("=IIII", s, ns, len(data), length or len(data)) + data


class Near(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.link = Link("h0-s", 3, folder.name, os.geteuid())

    def grow(self, data):
        with open(self.link.path, "ab") as f:
            f.write(data)

    def test_frames_are_read_as_they_grow(self):
        two = pcap(2, 7, b"abc", 1500) + pcap(3, 0, b"defgh")
        self.grow(bytes(24) + two[:-2])
        self.assertEqual(self.link.frames(), [(2000000007, 3, 1500, b"abc")])
        self.assertEqual(self.link.frames(), [])
        self.grow(two[-2:])
        self.assertEqual(self.link.frames(), [(3000000000, 3, 5, b"defgh")])

    def test_what_was_read_is_freed(self):
        self.grow(bytes(24) + pcap(1, 0, b"abcd") + b"rest")
        with mock.patch.object(links, "_LIBC") as libc:
            self.link.frames()
            self.link.frames()
        (fd, how, begin, end), = (call.args for call in libc.fallocate.call_args_list)
        self.assertEqual((fd, how, begin.value, end.value), (self.link.fd, 3, 0, 24 + 16 + 4 + 4))

    def test_somebody_elses_file_is_refused(self):
        self.grow(b"")
        self.link.owner += 1
        with self.assertRaisesRegex(Refused, "found another file than the fabric's there$"):
            self.link.frames()
        other = Link("h0-s", 4, os.path.dirname(self.link.path), os.geteuid())
        os.link(self.link.path, other.path)
        with self.assertRaises(Refused):
            other.frames()
        os.symlink(self.link.path, other.path + "5")
        with self.assertRaises(OSError):
            Link("h0-s", 45, os.path.dirname(self.link.path), os.geteuid()).frames()


class Far(unittest.TestCase):
    def setUp(self):
        fd, self.to = os.pipe()
        self.link = FarLink(f"@{fd}:m2:h1-s", 5)
        self.addCleanup(os.close, fd)

    def test_frames_that_come_with_the_head_are_not_lost(self):
        os.write(self.to, pcapng.heads(["h1:0-s:1"]) + pcapng.packet(9, 0, 1500, b"ab"))
        self.link.begin(time.monotonic() + 60)
        self.assertEqual(self.link.told(), "h1:0-s:1 on machine m2")
        os.write(self.to, pcapng.packet(10, 0, 2, b"cd"))
        self.assertEqual(self.link.frames(), [(9, 5, 1500, b"ab"), (10, 5, 2, b"cd")])
        self.assertEqual((self.link.frames(), self.link.ended), ([], False))
        os.close(self.to)
        self.assertEqual((self.link.frames(), self.link.ended), ([], True))

    def test_one_that_ends_at_once_is_told(self):
        os.close(self.to)
        with self.assertRaisesRegex(Refused, "^cannot capture h1-s on machine m2: it has ended before it began$"):
            self.link.begin(time.monotonic() + 60)

    def test_one_that_says_something_else_is_told(self):
        os.write(self.to, b"Permission denied\n")
        os.close(self.to)
        with self.assertRaisesRegex(Refused, "^h1-s on machine m2: what comes from there is no pcapng$"):
            self.link.begin(time.monotonic() + 60)


class Said(unittest.TestCase):
    def test_the_answer_of_the_process_that_has_the_link(self):
        for out, err, want in (
            ('{"a": {"elsewhere": true}, "b": {"capturing": "x"}}', "", {"capturing": "x"}), ('{"a": {"elsewhere": true}}', "", None), ('{"a": "text"}', "", None),
        ):  # fmt: skip
            self.assertEqual(fabric.said_of(out, err), want)

    def test_what_it_refuses(self):
        for out, err, says in (
            ('{"a": {"elsewhere": true}, "b": {"error": "no link"}}', "", "no link"), ("", "trib-telemetry: gone\n", "the fabric does not answer: trib-telemetry: gone"),
            ("x", "", "the fabric does not answer: no answer"), ("{}", "one\ntrib-telemetry: no: process", "no: process"),
        ):  # fmt: skip
            with self.assertRaises(Refused) as e:
                fabric.said_of(out, err)
            self.assertEqual(str(e.exception), says)

    def test_what_is_asked(self):
        asked = []
        link = Link("h0-s", 0, "/d", 0)
        link.path = "/d/part"
        with mock.patch.object(fabric.Fabric, "ask", lambda self, command: asked.append(command) or {"capturing": "h0:1-s:2"}):
            fabric.Fabric("client", "dir").begin(link, "udp port 1")
            fabric.Fabric("client", "dir").begin(link, "")
        self.assertEqual(asked, [f"/trib/capture/filtered,h0-s,{os.getpid()},10,udp port 1,/d/part", f"/trib/capture/start,h0:1-s:2,{os.getpid()},/d/part"])
        with mock.patch.object(fabric.Fabric, "ask", lambda self, command: None), self.assertRaisesRegex(Refused, "^cannot capture h0:1-s:2: no process has an end of it$"):
            fabric.Fabric("client", "dir").begin(link, "")


if __name__ == "__main__":
    unittest.main()
