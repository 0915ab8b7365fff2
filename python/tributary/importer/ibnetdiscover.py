# SPDX-License-Identifier: BSD-3-Clause
"""What ibnetdiscover prints: nodes by their GUIDs, each with its ports and where these lead."""

from __future__ import annotations

import re

from .._cli import Refused
from .lanes import rate_of_name
from .network import Network, Node
from .source import Notes

_END = r"\[(\d+)\](?:\[ext \d+\])?(?:\([0-9a-fA-F]+\))?"
_NODE = re.compile(r'(Switch|Ca|Rt)\s+(\d+)\s+"([SHR]-[0-9a-fA-F]+)"\s*(?:#\s*"(.*)"(.*))?$')
_PORT = re.compile(_END + r'\s+"([SHR]-[0-9a-fA-F]+)"' + _END + r"\s*(?:#(.*))?$")
_KEY = re.compile(r"\w+=\S*(\s+\w+=\S*)*(\s+#.*)?$")  # with --grouping a comment says of which chassis
_OTHER = re.compile(r"(Chassis|Non-Chassis|DR path|Hostname)\b")


def read(path: str, text: str, notes: Notes) -> Network:
    net, here = Network(path), ""
    for number, line in enumerate(text.splitlines(), 1):
        line, where = line.strip(), f"{path}:{number}"
        if not line or line.startswith("#") or _KEY.match(line) or _OTHER.match(line):
            continue
        node, port = _NODE.match(line), _PORT.match(line)
        if node:
            here = node.group(3)
            net.add(here, Node(node.group(1), node.group(4) or "", number), f'"{here}"')
        elif port and here:
            near, far = (here, int(port.group(1))), (port.group(2), int(port.group(3)))
            net.join(near, far, rate_of_name(port.group(4) or "", where), number, notes)
        elif port:
            raise Refused(f'{where}: found a port of no node, expected a line as Switch 40 "S-..." before it')
        else:
            raise Refused(f"{where}: found {line[:60]!r}, expected a node or a port as ibnetdiscover prints them")
    net.check()
    return net
