# SPDX-License-Identifier: BSD-3-Clause
"""A link that is captured: one of this machine, whose frames come in a file of its own, or one of another machine, whose pcapng comes by a pipe."""

from __future__ import annotations

import ctypes
import os
import select
import stat
import struct
import time

from .._cli import Refused
from . import pcapng

FAR_BEGINS_S = 30  # wall time for another machine to begin
_PCAP_HEAD, _FRAME_HEAD = 24, 16
_PUNCH_HOLE = 0x01 | 0x02  # fallocate(2): and keep the size
_LIBC = ctypes.CDLL(None)

Frame = tuple[int, int, int, bytes]  # ns, number of the link, length, bytes that were caught


class Link:
    """One link's part: its file and how far it has been read."""

    def __init__(self, name: str, number: int, folder: str, owner: int) -> None:
        self.name, self.number, self.owner = name, number, owner
        self.path = os.path.join(folder, f"capture.{os.getpid()}.{number}")
        self.at, self.rest, self.fd = _PCAP_HEAD, b"", -1

    def told(self) -> str:
        return self.name

    def _open(self) -> None:
        self.fd = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        of = os.fstat(self.fd)
        if not stat.S_ISREG(of.st_mode) or of.st_uid != self.owner or of.st_nlink != 1:
            raise Refused(f"cannot read {self.path}: found another file than the fabric's there")

    def frames(self) -> list[Frame]:
        """The frames that have come; what was read is freed."""
        if self.fd < 0:
            self._open()
        data = self.rest
        while more := os.pread(self.fd, 1 << 20, self.at):
            self.at += len(more)
            data += more
        found, at = [], 0
        while len(data) - at >= _FRAME_HEAD:
            s, ns, caught, length = struct.unpack_from("=IIII", data, at)
            if len(data) - at < _FRAME_HEAD + caught:
                break
            found.append((s * 1000000000 + ns, self.number, length, data[at + _FRAME_HEAD : at + _FRAME_HEAD + caught]))
            at += _FRAME_HEAD + caught
        self.rest = data[at:]
        if found:
            _LIBC.fallocate(self.fd, _PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(self.at))
        return found


class FarLink:
    """A link of another machine, @FD:MACHINE:LINK: the pcapng of it alone, as it comes."""

    def __init__(self, word: str, number: int) -> None:
        fd, self.machine, self.name = word[1:].split(":", 2)
        self.number = number
        self.fd, self.stream, self.ended = int(fd), pcapng.Blocks(), False
        self.early: list[tuple[int, bytes]] = []  # blocks that came with its head
        os.set_blocking(self.fd, False)

    def told(self) -> str:
        return f"{self.name} on machine {self.machine}"

    def _read(self) -> bytes:
        data = b""
        try:
            while more := os.read(self.fd, 1 << 20):
                data += more
            self.ended = True
        except BlockingIOError:
            pass
        return data

    def _blocks(self) -> list[tuple[int, bytes]]:
        try:
            return self.stream.read(self._read())
        except ValueError as e:
            raise Refused(f"{self.told()}: {e}") from None

    def begin(self, until: float) -> None:
        """Waits for its head, and takes its name from there."""
        while time.monotonic() < until:
            blocks = self._blocks()
            for i, (kind, body) in enumerate(blocks):
                if kind == pcapng.INTERFACE:
                    self.name, self.early = pcapng.name_of(body, self.name), blocks[i + 1 :]
                    return
            if self.ended:
                raise Refused(f"cannot capture {self.told()}: it has ended before it began")
            select.select([self.fd], [], [], 1)
        raise Refused(f"cannot capture {self.told()}: nothing within {FAR_BEGINS_S} s")

    def frames(self) -> list[Frame]:
        found, blocks = [], [*self.early, *self._blocks()]
        self.early = []
        for kind, body in blocks:
            if kind == pcapng.PACKET:
                ns, length, data = pcapng.frame_of(body)
                found.append((ns, self.number, length, data))
        return found
