# SPDX-License-Identifier: BSD-3-Clause
"""What iblinkinfo prints: nodes with their ports. A node is known by its LIDs: an HCA has one for each port."""

from __future__ import annotations

import re

from .._cli import Refused
from .lanes import rate_of_signal
from .network import Network, Node
from .source import Notes

_IS = re.compile(r"^[ \t]*(Switch|CA|Router):|\] ?==\(", re.MULTILINE)
_OWNER = re.compile(r"(Switch|CA|Router):\s*(0x[0-9a-fA-F]{16}(?=\s))?\s*(.*?):?$")
_LINK = re.compile(
    r"(?:(0x[0-9a-fA-F]+)\s+)?(\d+)\s+(\d+)\[\s*\d*\s*\]\s*==\((?P<state>(?:[^()]|\([^)]*\))*)\)(?: \(HOQ:[^)]*\))?==>"
    r'\s*(?:(?:(?P<lid>\d+)\s+(?P<port>\d+))?\s*\[\s*\d*\s*\]\s*".*?"|"Port not available")'
)
_EACH = re.compile(r'0x[0-9a-fA-F]+\s+".*?"\s+\d+\s+\d+\[.*==\(')
_KINDS = {"Switch": "Switch", "CA": "Ca", "Router": "Rt"}


def is_iblinkinfo(text: str) -> bool:
    return bool(_IS.search(text))


def read(path: str, text: str, notes: Notes) -> Network:
    net, here = Network(path), ""
    of_lid: dict[str, str] = {}
    rows: list[tuple[tuple[str, int], tuple[str, int], float, int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line, where = line.strip(), f"{path}:{number}"
        owner, link = _OWNER.match(line), _LINK.match(line)
        if not line or line.startswith("#"):
            continue
        if _EACH.match(line):
            raise Refused(f"{where}: found a line of iblinkinfo --line, which does not say what is a switch, expected iblinkinfo without --line")
        if owner:
            kind = _KINDS[owner.group(1)]
            here = f"{kind[0]}-{owner.group(2)[2:] if owner.group(2) else number}"
            net.add(here, Node(kind, owner.group(3), number), owner.group(2) or "a node")
        elif link and here:
            state = link.group("state")
            down = re.search(r"\bDown\b", state)
            if (not down or link.group(2) != "0") and of_lid.setdefault(link.group(2), here) != here:
                raise Refused(f"{where}: found LID {link.group(2)}, which the node of line {net.nodes[of_lid[link.group(2)]].line} has")
            if link.group("lid") and re.search(r"\bLinkUp\b", state) and not down:
                rows.append(((here, int(link.group(3))), (link.group("lid"), int(link.group("port"))), rate_of_signal(state, where), number))
            elif not down:
                notes.add("a link that is not up is left out", where)
        elif link:
            raise Refused(f"{where}: found a port of no node, expected a line as Switch: 0x... NAME: before it")
        else:
            raise Refused(f"{where}: found {line[:60]!r}, expected a node or a port as iblinkinfo prints them")
    for near, (lid, port), rate, number in rows:
        if lid not in of_lid:
            raise Refused(f"{path}:{number}: found a link to LID {lid}, which no node of the file has")
        net.join(near, (of_lid[lid], port), rate, number, notes)
    net.check()
    return net
