# SPDX-License-Identifier: BSD-3-Clause
"""What a file of results is, and its series."""

from __future__ import annotations

import re

from .._cli import Refused, clean
from .._input import WrongFile, data_of
from . import imb, json_results, nccl, osu, perftest
from .launchers import untagged
from .rows import MIB, Options, Series, bad

MOST_BYTES = 64 * MIB
KINDS = "results of nccl-tests, trib, perftest, OSU or IMB"


def _data(path: str) -> bytes:
    try:
        return data_of(path, MOST_BYTES)
    except IsADirectoryError:
        raise Refused(f"{clean(path, 200)}: found a directory, expected {KINDS}") from None
    except FileNotFoundError:
        raise Refused(f"{clean(path, 200)}: found no file, expected {KINDS}") from None
    except WrongFile as e:
        raise Refused(f"{e}: {KINDS}") from None
    except OSError as e:
        raise Refused(f"{clean(path, 200)}: cannot read: {e.strerror}") from None


def _text(path: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        text, at = "\0", e.start
    else:
        at = data.find(b"\0")
    if not text.strip():
        raise Refused(f"{clean(path)}: found an empty file, expected {KINDS}")
    if "\0" in text:
        raise Refused(f"{clean(path)}:{data[:at].count(10) + 1}: found a binary file (byte 0x{data[at]:02x}), expected text or JSON")
    return text


def _series(path: str, text: str, o: Options) -> list[Series]:
    given = [line.rstrip("\r") for line in text.split("\n")]
    lines = untagged(given)
    first = next((line for line in lines if line.strip()), "").lstrip()
    table = any(re.match(r"#\s+size\s+count\s", line) for line in lines)
    if first[:1] == "{":
        return json_results.read(path, "\n".join(lines), o)
    if imb.is_imb(lines):
        return imb.read(path, lines)
    if perftest.is_perftest(lines):
        return perftest.read(path, lines)
    if osu.is_osu(lines):
        return osu.read(path, lines)
    if table:
        return nccl.Text(path, o).read(lines)
    if text.lstrip()[:1] == "[":
        return json_results.read(path, text, o)
    at = next(i for i, line in enumerate(given, 1) if line.strip())
    raise bad(
        path, at, f"'{clean(given[at - 1].strip())}' and no head of columns after it",
        "results of nccl-tests (# size count type ...), trib, perftest (#bytes #iterations ...), OSU (# OSU ...) or IMB (#bytes #repetitions ...)",
    )  # fmt: skip


def read_results(path: str, o: Options) -> list[Series]:
    """All series of a file. Refused: it has none."""
    series = [s for s in _series(path, _text(path, _data(path)), o) if s.rows or s.notes]
    if not any(s.rows for s in series):
        notes = "".join("; " + n for s in series for n in s.notes[:3])
        raise Refused(f"{clean(path)}: found no row with a size and a time{notes}")
    found = [s for s in series if s.rows]
    found[0].notes += [n for s in series if not s.rows for n in s.notes]
    return found
