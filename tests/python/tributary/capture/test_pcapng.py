# SPDX-License-Identifier: BSD-3-Clause
"""pcapng: what is written is read again, in pieces of any length, and what is none is refused."""
import struct
import unittest

from tributary.capture import pcapng


class Blocks(unittest.TestCase):
    FILE = pcapng.heads(["h0-leaf0", "é"]) + pcapng.packet((7 << 32) + 9, 1, 1500, b"abcde") + pcapng.packet(1, 0, 4, b"wxyz")

    def test_a_file_is_as_the_format_says(self):
        self.assertEqual(struct.unpack("=IIIHHq", self.FILE[:24]), (0x0A0D0D0A, 48, 0x1A2B3C4D, 1, 0, -1))
        self.assertEqual(self.FILE[24:48], struct.pack("=HH9s3xHHI", 4, 9, b"Tributary", 0, 0, 48))
        self.assertEqual(self.FILE[48:92], struct.pack("=IIHHI", 1, 44, 1, 0, 65535) + struct.pack("=HH8s", 2, 8, b"h0-leaf0") + struct.pack("=HHB3xHHI", 9, 1, 9, 0, 0, 44))
        self.assertEqual(pcapng.packet((7 << 32) + 9, 1, 1500, b"abcde"), struct.pack("=IIIIIII5s3xI", 6, 40, 1, 7, 9, 5, 1500, b"abcde", 40))

    def test_what_comes_in_pieces_is_read(self):
        for n in (1, 3, 11, 50, 1000):
            stream, found = pcapng.Blocks(), []
            for at in range(0, len(self.FILE), n):
                found += stream.read(self.FILE[at : at + n])
            self.assertEqual([kind for kind, _ in found], [pcapng.SECTION, 1, 1, 6, 6], n)
            self.assertEqual([pcapng.name_of(body, "?") for kind, body in found if kind == 1], ["h0-leaf0", "é"])
            self.assertEqual([pcapng.frame_of(body) for kind, body in found if kind == 6], [((7 << 32) + 9, 1500, b"abcde"), (1, 4, b"wxyz")])

    def test_another_machines_name_may_be_none(self):
        def body(code, name):
            return bytes(8) + struct.pack("=HH", code, len(name)) + name

        for data, want in ((body(2, b"h1-s"), "h1-s"), (body(2, b"h1\x1b"), "mine"), (body(3, b"note"), "mine"), (bytes(8), "mine")):
            self.assertEqual(pcapng.name_of(data, "mine"), want)

    def test_what_is_no_pcapng_is_refused(self):
        section = pcapng.heads([])
        for data in (b"HTTP/1.1 200", pcapng.packet(1, 0, 1, b"a"), section + struct.pack("=III", 1, 16, 0), section + struct.pack("=III", 6, 28, 0),
                     section + struct.pack("=III", 9, 13, 0), section + struct.pack("=III", 9, 8, 0), section + struct.pack("=III", 6, 131072, 0)):  # fmt: skip
            with self.assertRaisesRegex(ValueError, "^what comes from there is no pcapng$"):
                pcapng.Blocks().read(data)


if __name__ == "__main__":
    unittest.main()
