# SPDX-License-Identifier: BSD-3-Clause
"""An InfiniBand fabric: nodes by their GUIDs, links by their ends; without what a conf cannot have, with names, as a conf."""

from __future__ import annotations

import re
from typing import Mapping, Sequence

from .._cli import Refused
from .source import Line, Names, Notes

End = tuple[str, int]  # GUID, port
ROLES = {1: "leaf", 2: "spine", 3: "core"}
_HCA = re.compile(r"[\s:]+(HCA-\d+|mlx\d+_\w+|hfi\d+_\w+|ib[ps]\S+|qib\d+|mthca\d+)$")
_DEFAULTS = ("localhost", "localhost.localdomain", "(none)")  # what machines are called that nobody has named


class Node:
    """kind: Switch, Ca or Rt. level: of a switch, its distance from the nearest host."""

    def __init__(self, kind: str, description: str, line: int) -> None:
        self.kind, self.description, self.line = kind, description.strip(), line
        self.level, self.name = 0, ""

    def machine(self) -> tuple[str, str]:
        """What stands before the HCA's name, and that name; "": the description has none."""
        found = _HCA.search(self.description)
        return (self.description[: found.start()].strip().strip("'"), found.group(1)) if found else (self.description, "")


class Network:
    def __init__(self, path: str) -> None:
        self.path = path
        self.nodes: dict[str, Node] = {}
        self.links: dict[tuple[End, End], tuple[float, int]] = {}  # Gb/s and line
        self.level_links: list[tuple[str, str, int]] = []  # left out: between switches of one level

    def where(self, line: int) -> str:
        return f"{self.path}:{line}"

    def add(self, guid: str, node: Node, called: str) -> None:
        if guid in self.nodes:
            raise Refused(f"{self.where(node.line)}: found {called} a second time, expected it once (line {self.nodes[guid].line})")
        self.nodes[guid] = node

    def join(self, near: End, far: End, rate: float, line: int, notes: Notes) -> None:
        """A link, as one of its ends has it."""
        ends = (near, far) if near <= far else (far, near)
        if ends in self.links:
            if self.links[ends][0] != rate:
                notes.add("the two ends have different rates, the smaller one counts", self.where(line))
            self.links[ends] = (min(rate, self.links[ends][0]), self.links[ends][1])
        else:
            self.links[ends] = (rate, line)

    def check(self) -> None:
        """Refused: there is nothing, or a link does not fit the nodes."""
        if not self.nodes:
            raise Refused(f"{self.path}: found no node, expected what ibnetdiscover or iblinkinfo prints, or NCCL's topology")
        taken: dict[End, int] = {}
        for ends, (_, line) in self.links.items():
            if ends[0] == ends[1]:
                raise Refused(f'{self.where(line)}: found a link from port {ends[0][1]} of "{ends[0][0]}" to itself, expected another port')
            for end in ends:
                if end[0] not in self.nodes:
                    raise Refused(f'{self.where(line)}: found a link to "{end[0]}", which the file does not have')
                if end in taken:
                    raise Refused(f'{self.where(line)}: found a second link at port {end[1]} of "{end[0]}", expected one (line {taken[end]})')
                taken[end] = line

    def reduce(self, without: Sequence[str], notes: Notes) -> None:
        """Without what a conf cannot have, and without hosts that are not wanted. Refused: nothing is left."""
        for guid, node in list(self.nodes.items()):
            if node.kind == "Rt":
                notes.add("a router is left out", self.where(node.line))
            elif node.kind == "Ca" and "Aggregation Node" in node.description:
                notes.add("an aggregation node is left out: all switches of the conf reduce", self.where(node.line))
            elif not (node.kind == "Ca" and node.machine()[0] in without):
                continue
            del self.nodes[guid]
        self._keep_whole()
        self._level()
        for ends, (_, line) in list(self.links.items()):
            a, b = (self.nodes[guid] for guid, _ in ends)
            if a.kind == b.kind == "Switch" and a.level == b.level:
                notes.add("a link between switches of one level is left out: routes go up, then down", self.where(line))
                self.level_links.append((ends[0][0], ends[1][0], line))
                del self.links[ends]
        joined = {guid for ends in self.links for guid, _ in ends}
        for guid, node in list(self.nodes.items()):
            if guid not in joined or (node.kind == "Switch" and not node.level):
                notes.add("a node that no link joins to hosts is left out", self.where(node.line))
                del self.nodes[guid]
        self._keep_whole()
        if not self.links:
            raise Refused(f"{self.path}: found no links between hosts and switches, expected some")

    def _keep_whole(self) -> None:
        self.links = {e: v for e, v in self.links.items() if e[0][0] in self.nodes and e[1][0] in self.nodes}

    def _level(self) -> None:
        near, level = {g for g, n in self.nodes.items() if n.kind == "Ca"}, 0
        beside: dict[str, set[str]] = {}
        for (a, _), (b, _) in self.links:
            beside.setdefault(a, set()).add(b)
            beside.setdefault(b, set()).add(a)
        while near:
            level += 1
            near = {b for a in near for b in beside.get(a, ()) if self.nodes[b].kind == "Switch" and not self.nodes[b].level}
            for guid in near:
                self.nodes[guid].level = level

    def name(self, notes: Notes) -> None:
        """Hosts by what stands before their HCAs' names; switches by theirs, or by GUID where several share one."""
        names = Names()
        for machine, guids in self._machines(notes):
            name = names.make(machine, "host")
            for guid in guids:
                self.nodes[guid].name = name
        told = [_switch_name(n.description) for n in self.nodes.values() if n.kind == "Switch"]
        for guid, node in self.nodes.items():
            if node.kind == "Switch":
                own, place = _switch_name(node.description)
                if [name for name, _ in told].count(own) > 1:
                    own = own + place if place else ""  # switches of a chassis have a place there
                node.name = names.make(own or "sw" + guid[-6:], "sw" + guid[-6:])

    def _machines(self, notes: Notes) -> list[tuple[str, list[str]]]:
        """Names of machines with the GUIDs of their HCAs. Two HCAs of one name are of two machines."""
        by_name: dict[str, list[str]] = {}
        for guid, node in self.nodes.items():
            if node.kind == "Ca":
                name, hca = node.machine()
                by_name.setdefault(name if hca else f"\0{guid}", []).append(guid)
        found: list[tuple[str, list[str]]] = []
        for name, guids in by_name.items():
            if name.startswith("\0"):
                found.append((self.nodes[guids[0]].description, guids))
                continue
            hcas = [self.nodes[g].machine()[1] for g in guids]
            again = next((i for i, hca in enumerate(hcas) if hca in hcas[:i]), None)
            if again is None:
                if len(guids) > 1 and name in _DEFAULTS:
                    notes.add(f'HCAs of "{name}", as machines without a name are called, are taken for those of one machine', self.where(self.nodes[guids[1]].line))
                found.append((name, guids))
            elif len(set(hcas)) == 1:
                notes.add(f'"{name} {hcas[0]}" is several machines of one name', self.where(self.nodes[guids[again]].line))
                found += [(name, [guid]) for guid in guids]
            else:
                first = self.nodes[guids[hcas.index(hcas[again])]].line
                raise Refused(
                    f'{self.where(self.nodes[guids[again]].line)}: found a second "{name} {hcas[again]}" (line {first}) beside other HCAs of that name, '
                    "expected machines with names of their own: which HCAs are of one machine cannot be told"
                )
        return found

    def conf(self) -> list[Line]:
        """nodes and links of a conf."""
        hosts: dict[str, Node] = {}
        for node in self.nodes.values():
            if node.kind == "Ca":
                hosts.setdefault(node.name, node)
        quoted = ", ".join(f'"{h}"' for h in hosts)
        rows = [Line(f'    {{ name = ( {quoted} ); kind = "host"; }}', self.where(min(n.line for n in hosts.values())))] if hosts else []
        for node in sorted((n for n in self.nodes.values() if n.kind == "Switch"), key=lambda n: n.level):
            rows.append(Line(f'    {{ name = "{node.name}"; role = "{ROLES.get(node.level, "switch")}"; }}', self.where(node.line)))
        cables = []
        for ends, (rate, line) in sorted(self.links.items(), key=lambda v: v[1][1]):
            low, high = (self._port(end) for end in sorted(ends, key=lambda e: self.nodes[e[0]].level))
            cables.append(Line(f'    {{ a = "{low}"; b = "{high}"; rate = "{rate:g}Gb/s"; }}', self.where(line)))
        return [*listed("nodes", rows), *listed("links", cables)]

    def _port(self, end: End) -> str:
        node = self.nodes[end[0]]
        return node.name + (f":{end[1] - 1}" if node.kind == "Switch" else "")

    def lines_of_names(self) -> Mapping[str, str]:
        """Where the input has each node of the conf."""
        found: dict[str, str] = {}
        for node in self.nodes.values():
            found.setdefault(node.name, self.where(node.line))
        return found


def _switch_name(description: str) -> tuple[str, str]:
    """Name and place of "MF0;director:MCS8500/L07/U1": director and _L07; a description that nobody manages is a name."""
    managed = re.match(r"MF0;([^:]+):[^/]*(?:/([LS]\d+))?", description)
    return (managed.group(1), "_" + (managed.group(2) or "")) if managed else (description, "")


def listed(key: str, rows: Sequence[Line]) -> list[Line]:
    """A list of a conf, an entry a line."""
    return [Line(f"{key} = ("), *(Line(r.text + ("," if i + 1 < len(rows) else ""), r.where) for i, r in enumerate(rows)), Line(");")] if rows else []
