# SPDX-License-Identifier: BSD-3-Clause
"""perftest's tables and JSON: ib_write_bw, ib_read_bw, ib_send_bw, and _lat of each; between two hosts."""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional, Sequence

from .._cli import Refused, clean
from .rows import MIB, Row, Series, bad, cut_off, number, whole

# MB/sec is 2^20 bytes a second. Bytes per us of each unit.
UNITS = {"MB/sec": MIB / 1e6, "MiB/sec": MIB / 1e6, "Gb/sec": 125.0, "Mb/sec": 0.125, "GB/sec": 1e3}
ONE_WAY = "RDMA_Write, RDMA_Read or Send BW Test, RDMA_Write or Send Latency Test: one direction, one port"
_TITLE = re.compile(r"^\s*(\S.*\b(?:BW|Latency) Test)\s*$")
# A read's latency is of the request and the answer; of a write or a send, half of the way there and back.
_KNOWN = re.compile(r"((RDMA_Write|RDMA_Write_With_Imm|RDMA_Write_imm|Send)( Post List)? (BW|Latency)|RDMA_Read( Post List)? BW) Test")
_COLUMN = re.compile(r"99(?:\.9)?%\s+percentile\[\w+\]|BW \w+(?: ?Port\d)?\[\S+?\]|MsgRate[^[]*\[\S+?\]|tps average|[#\w]+(?:\[\w+\])?")


def is_perftest(lines: Sequence[str]) -> bool:
    return any(re.match(r"\s*#bytes\s+#iterations\b", line) for line in lines)


class _Table:
    """A head: which column is read, and what its unit is in bytes per us; 0: it is a time."""

    def __init__(self, path: str, line: str, at: int, title: str) -> None:
        self.columns = _COLUMN.findall(line)
        bw = [re.search(r"BW average\[(\S+?)\]", c) for c in self.columns]
        units = [m[1] for m in bw if m]
        if not title:
            raise bad(path, at, "a table without perftest's title", f"it above: {ONE_WAY}")
        if units and units[0] not in UNITS:
            raise bad(path, at, f"the unit {clean(units[0])}", f"one of {', '.join(UNITS)}")
        if not units and not any(c.startswith(("t_avg", "t_typical")) for c in self.columns):
            raise bad(path, at, "a head without BW average and t_typical", "perftest's")
        if not units and "[usec]" not in line:
            raise bad(path, at, "times in cycles", "microseconds (perftest without --report-cycles)")
        if ("Latency" in title) == bool(units):
            raise bad(path, at, f"columns of {'bandwidth' if units else 'latency'}", f"those of {title}")
        self.factor = UNITS[units[0]] if units else 0.0
        names = [i for i, m in enumerate(bw) if m] or [i for want in ("t_typical", "t_avg") for i, c in enumerate(self.columns) if c.startswith(want)]
        self.column = names[0]


def read(path: str, lines: Sequence[str]) -> list[Series]:
    series: list[Series] = []
    table: Optional[_Table] = None
    title = ""
    for at, line in enumerate(lines, 1):
        named = _TITLE.match(line)
        if named:
            title, table = " ".join(named[1].split()), None
            if not _KNOWN.fullmatch(title):
                raise bad(path, at, f"'{clean(title)}'", ONE_WAY)
        elif re.match(r"\s*Dual-port\s*:\s*ON\b", line):
            raise bad(path, at, "Dual-port: ON", ONE_WAY)
        elif re.match(r"\s*Connection type\s*:\s*RawEth", line):
            raise bad(path, at, "Connection type: RawEth", ONE_WAY + ", by RDMA")
        elif line.lstrip().startswith("#bytes"):
            table = _Table(path, line, at, title)
            series.append(Series(path, "sendrecv", "direct", 2, None, "rate" if table.factor else "latency"))
        elif table and line.strip() and not re.match(r"^[-\s]+$", line):
            _row(series[-1], table, line, at, lines)
    return series


def _row(s: Series, table: _Table, line: str, at: int, lines: Sequence[str]) -> None:
    words, columns = line.split(), table.columns
    if not re.match(r"\d", words[0]):
        if not re.match(r"\s*[A-Za-z]", line):
            raise bad(s.path, at, f"'{clean(line.strip())}'", f"a row of {len(columns)} columns, bytes first")
        return
    if len(words) < table.column + 1 or len(words) > len(columns) + 1:
        cut = cut_off(s.path, at, lines) if len(words) < table.column + 1 else ""
        if not cut:
            raise bad(s.path, at, f"{len(words)} columns", f"{len(columns)}: {' '.join(columns)}")
        s.notes.append(cut)
        return
    size, value = whole(words[0], s.path, at, "bytes"), number(words[table.column], s.path, at, columns[table.column])
    if size and value:
        s.rows.append(Row(size, size / (value * table.factor) if table.factor else value, at))


def read_json(path: str, top: Mapping[str, Any]) -> list[Series]:
    """Of one size. It names no unit of the bandwidth: the rate of messages tells it."""
    info: Mapping[str, Any] = top["test_info"]
    title = str(info.get("test", "")).replace("_", " ").replace("RDMA ", "RDMA_")
    if not _KNOWN.fullmatch(title) or str(info.get("Dual_port", "OFF")).upper() != "OFF":
        port = "" if str(info.get("Dual_port", "OFF")).upper() == "OFF" else " with Dual_port"
        raise Refused(f"{clean(path)}: test_info: found '{clean(title)}'{port}, expected {ONE_WAY}")
    results: Mapping[str, Any] = top["results"] if isinstance(top.get("results"), dict) else {}
    if not results:
        raise Refused(f"{clean(path)}: results: found none of one direction, expected an object of perftest's JSON")

    def value(key: str) -> float:
        found = results.get(key)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 < found < 1e15:
            raise Refused(f"{clean(path)}: results.{key}: found {clean(repr(found))}, expected a positive number")
        return float(found)

    size = int(value("MsgSize"))
    if "Latency" in title:
        s = Series(path, "sendrecv", "direct", 2, None, "latency")
        s.rows.append(Row(size, value("t_typical" if "t_typical" in results else "t_avg"), 1))
        return [s]
    bw, by_messages = value("BW_average"), value("MsgRate") * size  # Mpps: bytes per us
    unit = next((f for f in UNITS.values() if abs(bw * f / by_messages - 1) < 0.02), None)
    if unit is None:
        raise Refused(f"{clean(path)}: results: found BW_average {bw:g} and MsgRate {value('MsgRate'):g}, expected them to agree in one of {', '.join(UNITS)}")
    s = Series(path, "sendrecv", "direct", 2, None, "rate")
    s.rows.append(Row(size, size / (bw * unit), 1))
    return [s]
