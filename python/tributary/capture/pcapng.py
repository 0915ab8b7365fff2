# SPDX-License-Identifier: BSD-3-Clause
"""pcapng (IETF draft-ietf-opsawg-pcapng): blocks, as they are written and as they are read from a stream."""

from __future__ import annotations

import struct
from typing import Iterable

SNAP = 65535
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6  # kinds of blocks
_LEAST = {INTERFACE: 20, PACKET: 32}  # bytes of a block
_IF_NAME, _IF_TSRESOL = 2, 9  # options of an interface


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _block(kind: int, body: bytes) -> bytes:
    size = 12 + len(body)
    return struct.pack("=II", kind, size) + body + struct.pack("=I", size)


def _option(code: int, data: bytes) -> bytes:
    return struct.pack("=HH", code, len(data)) + _padded(data)


def heads(names: Iterable[str]) -> bytes:
    """The section, and an interface for each name: Ethernet, nanoseconds."""
    end = _option(0, b"")
    section = _block(SECTION, struct.pack("=IHHq", 0x1A2B3C4D, 1, 0, -1) + _option(4, b"Tributary") + end)
    return section + b"".join(
        _block(INTERFACE, struct.pack("=HHI", 1, 0, SNAP) + _option(_IF_NAME, name.encode()) + _option(_IF_TSRESOL, b"\x09") + end) for name in names
    )


def packet(ns: int, interface: int, length: int, data: bytes) -> bytes:
    """A frame of so many bytes, of which data was caught."""
    return _block(PACKET, struct.pack("=IIIII", interface, ns >> 32, ns & 0xFFFFFFFF, len(data), length) + _padded(data))


def name_of(body: bytes, default: str) -> str:
    """The name in an interface's block."""
    code, n = struct.unpack_from("=HH", body + bytes(4), 8)
    name = body[12 : 12 + n].decode(errors="replace")
    return name if code == _IF_NAME and name.isprintable() else default


def frame_of(body: bytes) -> tuple[int, int, bytes]:
    """ns, length and what was caught, of a packet's block."""
    _, high, low, caught, length = struct.unpack_from("=IIIII", body)
    return high << 32 | low, length, body[20 : 20 + caught]


class Blocks:
    """A stream of pcapng, as it comes."""

    def __init__(self) -> None:
        self.rest, self.began = b"", False

    def read(self, data: bytes) -> list[tuple[int, bytes]]:
        """(kind, body) of the blocks that are whole now. ValueError: it is no pcapng of ours."""
        self.rest += data
        found, at = [], 0
        while len(self.rest) - at >= 12:
            kind, size = struct.unpack_from("=II", self.rest, at)
            if size % 4 or not _LEAST.get(kind, 12) <= size <= 2 * SNAP or (not self.began and kind != SECTION):
                raise ValueError("what comes from there is no pcapng")
            if len(self.rest) - at < size:
                break
            self.began = True
            found.append((kind, self.rest[at + 8 : at + size - 4]))
            at += size
        self.rest = self.rest[at:]
        return found
