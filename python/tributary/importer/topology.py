# SPDX-License-Identifier: BSD-3-Clause
"""NCCL's and RCCL's topology of a node (NCCL_TOPO_DUMP_FILE): GPUs with their links, and NICs with their rates."""

from __future__ import annotations

import re
import xml.parsers.expat
from typing import Iterator, Optional

from .._cli import Refused, clean
from .source import Notes

# GB/s of one NVLink in one direction, by compute capability; of one xGMI link of 16 lanes, by architecture.
NVLINK_GBps = {60: 20.0, 70: 25.0, 80: 25.0, 86: 14.0, 90: 25.0, 100: 50.0, 103: 50.0, 120: 50.0}
XGMI_GBps = {"gfx906": 46.0, "gfx908": 46.0, "gfx90a": 50.0, "gfx940": 64.0, "gfx941": 64.0, "gfx942": 64.0, "gfx950": 76.8}
# Interfaces that are no NIC of their own.
VIRTUAL = re.compile(
    r"(lo$|docker|br-|br\d|virbr|vmbr|ovs|veth|vnet|tun|utun|tap|wg|wl|ww|ath\d|ppp|tailscale|zt|vpn|nordlynx|proton|gpd|cscotun|ham\d|ipsec|gre|gretap|sit|ip6|dummy|ifb|macv|ipvlan|"
    r"cni|flannel|cali|cilium|lxc|lxd|podman|vxlan|geneve|kube|nodelocaldns|vmnet|vboxnet|usb|idrac)"
)

_NO_CPUS = "links to a CPU are left out: a conf has GPUs as hosts, and no CPUs"


class Tag:
    """An element of XML with the line where it begins."""

    def __init__(self, name: str, attributes: dict[str, str], where: str) -> None:
        self.name, self.attributes, self.where = name, attributes, where
        self.children: list[Tag] = []

    def get(self, key: str, other: str = "") -> str:
        return self.attributes.get(key, other)

    def walk(self, name: str) -> Iterator[Tag]:
        for child in self.children:
            if child.name == name:
                yield child
            yield from child.walk(name)

    def number(self, key: str) -> int:
        value = self.get(key)
        try:
            return int(value, 0)
        except ValueError:
            raise Refused(f'{self.where}: found {key}="{clean(value, 40)}" at a <{self.name}>, expected a number') from None


def parse(path: str, text: str) -> Tag:
    parser, stack = xml.parsers.expat.ParserCreate(), [Tag("", {}, path)]

    def begin(name: str, attributes: dict[str, str]) -> None:
        tag = Tag(name, attributes, f"{path}:{parser.CurrentLineNumber}")
        stack[-1].children.append(tag)
        stack.append(tag)

    def doctype(*_: object) -> None:
        raise Refused(f"{path}:{parser.CurrentLineNumber}: found a document type, expected NCCL's topology, which has none")

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _: stack.pop()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text.encode(), True)
    except xml.parsers.expat.ExpatError as e:
        raise Refused(f"{path}:{e.lineno}: found no XML ({e}), expected NCCL's topology") from None
    root = stack[0].children[0]
    if root.name != "system":
        raise Refused(f"{root.where}: found <{clean(root.name, 40)}>, expected <system> of NCCL's topology")
    return root


class Gpu:
    """links: by what they lead to: (how many, the <nvlink> or <xgmi>)."""

    def __init__(self, host: str, busid: str, tag: Tag) -> None:
        self.host, self.busid, self.tag, self.dev = host, busid.lower(), tag, tag.number("dev")
        self.links: dict[str, tuple[int, Tag]] = {}
        for link in tag.children:
            if link.name in ("nvlink", "xgmi"):
                target, count = link.get("target").lower(), link.number("count")
                if not 1 <= count <= 64:
                    raise Refused(f'{link.where}: found count="{count}" at an <{link.name}>, expected 1 to 64')
                self.links[target] = (self.links.get(target, (0, link))[0] + count, link)

    def model(self) -> str:
        """What tells the rate of its links: gfx942 of AMD, the compute capability of NVIDIA."""
        gcn = self.tag.get("gcn").split(":")[0].lower()
        if gcn:
            gcn = {"910": "90a"}.get(gcn, gcn)
            return gcn if gcn.startswith("gfx") else "gfx" + gcn
        return str(self.tag.number("sm"))


class Machine:
    """A node: what of its GPUs' links a conf can have, and its NICs' rates in Gb/s.

    planes: links to each NVSwitch, the same for all GPUs; mesh: links between GPUs, by their places.
    """

    def __init__(self, path: str, text: str, notes: Notes) -> None:
        self.path = path
        root = parse(path, text)
        self.gpus = self._gpus(root)
        self.model = self.gpus[0].model()
        for gpu in self.gpus[1:]:
            if gpu.model() != self.model:
                raise Refused(f"{gpu.tag.where}: found a GPU of {gpu.model()} beside {self.model}, expected GPUs alike")
        self.rates = self._nics(root, notes)
        self.planes, self.mesh = self._links(notes)

    def _gpus(self, root: Tag) -> list[Gpu]:
        found: dict[tuple[str, object], Gpu] = {}
        hosts = [cpu.get("host_hash") for cpu in root.walk("cpu")]
        for cpu in root.walk("cpu"):
            for pci in cpu.walk("pci"):
                for tag in (t for t in pci.children if t.name == "gpu"):
                    gpu = Gpu(cpu.get("host_hash"), pci.get("busid"), tag)
                    for key, what in ((gpu.busid, f'busid "{gpu.busid}"'), (gpu.dev, f"dev {gpu.dev}")):
                        if (gpu.host, key) in found:
                            raise Refused(f"{tag.where}: found a second GPU of {what}, expected each once ({found[gpu.host, key].tag.where})")
                        found[gpu.host, key] = gpu
        gpus = list(dict.fromkeys(found.values()))
        if not gpus:
            raise Refused(f"{self.path}: found no <gpu> in a <pci> of a <cpu>, expected some, as in NCCL_TOPO_DUMP_FILE (files for NCCL_TOPO_FILE need not have them)")
        return sorted(gpus, key=lambda g: (hosts.index(g.host), g.dev))

    def _nics(self, root: Tag, notes: Notes) -> list[float]:
        nets: dict[tuple[str, str], Tag] = {}
        for cpu in root.walk("cpu"):
            for net in cpu.walk("net"):
                key = (cpu.get("host_hash"), net.get("dev") or net.get("name"))
                same = nets.setdefault(key, net)
                for what in ("name", "speed"):
                    if same.get(what) != net.get(what):
                        raise Refused(f'{net.where}: found {what}="{clean(net.get(what), 40)}" of a NIC that has "{clean(same.get(what), 40)}" at {same.where}, expected the same')
        names = {net.get("name") for net in nets.values()}
        rates = []
        for net in nets.values():
            name, speed = net.get("name"), net.number("speed")  # Mb/s
            parts = re.split(r"[+]", name)
            if VIRTUAL.match(name.lower()):
                notes.add(f'"{clean(name, 40)}" is no NIC of its own and left out', net.where)
            elif len(parts) > 1 and names.issuperset(parts) or re.sub(r"\.\d+$", "", name) in names - {name}:
                notes.add(f'"{clean(name, 40)}" is made of NICs that are listed too, and left out', net.where)
            elif speed <= 0:
                notes.add(f'"{clean(name, 40)}" has no speed and is left out', net.where)
            else:
                rates.append(speed / 1000)
        return rates

    def _links(self, notes: Notes) -> tuple[tuple[int, ...], dict[tuple[int, int], int]]:
        places = {(g.host, g.busid): i for i, g in enumerate(self.gpus)}
        planes: list[dict[str, int]] = []
        mesh: dict[tuple[int, int], int] = {}
        of: dict[tuple[int, int], Tag] = {}
        for i, gpu in enumerate(self.gpus):
            planes.append({})
            for c2c in (t for t in gpu.tag.children if t.name == "c2c"):
                notes.add(_NO_CPUS, c2c.where)
            for target, (count, link) in gpu.links.items():
                kind = _kind(link)
                j = places.get((gpu.host, target))
                if j is not None and kind in ("GPU", ""):
                    if j == i:
                        raise Refused(f"{link.where}: found a link of a GPU to itself, expected another target")
                    mesh[i, j], of[i, j] = count, link
                elif kind == "NVSwitch":
                    planes[i][target] = count
                elif kind == "CPU":
                    notes.add(_NO_CPUS, link.where)
                elif kind == "GPU":
                    notes.add("links to a GPU that the file does not have are left out", link.where)
                else:
                    raise Refused(f'{link.where}: found tclass="{clean(link.get("tclass"), 20)}", expected 0x03.. or 0x12.. (a GPU), 0x068000 (an NVSwitch) or 0x068001 (a CPU)')
        for (i, j), count in mesh.items():
            if mesh.get((j, i), 0) != count:
                back = f"GPU {self.gpus[j].dev}, which has {mesh.get((j, i), 0)} to it"
                raise Refused(f"{of[i, j].where}: found {count} links from GPU {self.gpus[i].dev} to {back}, expected as many")
        if any(planes):
            self._alike(planes)
            if mesh:
                link = next(iter(of.values()))
                raise Refused(f"{link.where}: found links between GPUs beside links to NVSwitches, expected one kind")
        return tuple(n for _, n in sorted(planes[0].items())), {(min(k), max(k)): n for k, n in mesh.items()}

    def _alike(self, planes: list[dict[str, int]]) -> None:
        usual = max(planes, key=lambda p: (planes.count(p), sum(p.values())))
        for gpu, counts in zip(self.gpus, planes):
            if counts != usual:
                raise Refused(
                    f"{gpu.tag.where}: found GPU {gpu.dev} with {_said(counts)} to NVSwitches beside GPUs with {_said(usual)}, expected GPUs alike: "
                    "a conf has the same planes for all"
                )

    def link_GBps(self, notes: Notes) -> Optional[float]:
        """Of one NVLink or xGMI link; None: there is none."""
        if not self.planes and not self.mesh:
            return None
        amd = self.model.startswith("gfx")
        known = XGMI_GBps.get(self.model) if amd else NVLINK_GBps.get(int(self.model))
        if known is None:
            known = 64.0 if amd else 25.0
            what = f"architecture {self.model} is not known: {known:g} GB/s an xGMI link" if amd else f"compute capability {self.model} is not known: {known:g} GB/s an NVLink"
            notes.add(what, self.gpus[0].tag.where)
        return known

    def shape(self) -> tuple[object, ...]:
        """By what nodes are alike."""
        return len(self.gpus), self.model, self.planes, tuple(sorted(self.mesh.items()))


def _kind(link: Tag) -> str:
    """What a link leads to, by its PCI class; "": it does not say."""
    tclass = link.get("tclass").lower()
    if not tclass:
        return ""
    if tclass.startswith(("0x03", "0x12")):
        return "GPU"
    return {"0x068000": "NVSwitch", "0x068001": "CPU"}.get(tclass, tclass)


def _said(counts: dict[str, int]) -> str:
    return f"{'+'.join(str(n) for _, n in sorted(counts.items()))} links" if counts else "no links"
