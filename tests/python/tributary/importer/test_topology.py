# SPDX-License-Identifier: BSD-3-Clause
"""GPUs, their links and NICs of NCCL's topology, and by which line it is refused."""
import unittest

from tributary._cli import Refused
from tributary.importer.source import Notes
from tributary.importer.topology import Machine

SWITCH, CPU, GPU = "0x068000", "0x068001", "0x030200"


def gpu(bus, dev, *links, sm='sm="90"'):
    rows = "".join(f'<{kind} target="{target}" count="{count}"{f" tclass={chr(34)}{tclass}{chr(34)}" if tclass else ""}/>\n' for kind, target, count, tclass in links)
    return f'<pci busid="{bus}">\n<gpu dev="{dev}" {sm}>\n{rows}</gpu>\n</pci>\n'


def net(name, speed, dev="", bus="f"):
    return f'<pci busid="{bus}{name}"><nic><net name="{name}" dev="{dev or name}" speed="{speed}"/></nic></pci>\n'


def text(*parts, host="1"):
    return f'<system version="1">\n<cpu host_hash="{host}">\n{"".join(parts)}</cpu>\n</system>\n'


class Topology(unittest.TestCase):
    def machine(self, *parts):
        self.notes = Notes()
        return Machine("t", text(*parts), self.notes)

    def refused(self, says, *parts, whole=None):
        with self.assertRaises(Refused) as e:
            Machine("t", whole if whole is not None else text(*parts), Notes())
        self.assertEqual(str(e.exception), says)

    def test_planes_are_links_to_nvswitches(self):
        m = self.machine(*(gpu(f"B{i}", i, ("nvlink", "s1", 4, SWITCH), ("nvlink", "s0", 5, SWITCH), ("nvlink", "s0", 1, SWITCH)) for i in (1, 0)), net("mlx0", 400000))
        self.assertEqual((m.planes, m.mesh, m.rates, m.model), ((6, 4), {}, [400.0], "90"))
        self.assertEqual([g.dev for g in m.gpus], [0, 1])
        self.assertEqual(m.link_GBps(self.notes), 25.0)
        self.assertEqual(m.shape(), (2, "90", (6, 4), ()))
        self.assertEqual(self.notes.lines(), [])

    def test_a_mesh_is_of_links_between_gpus(self):
        m = self.machine(gpu("a", 0, ("nvlink", "B", 2, GPU), ("nvlink", "c", 1, "")), gpu("b", 1, ("nvlink", "A", 2, GPU)), gpu("c", 2, ("nvlink", "a", 1, GPU), ("nvlink", "x", 1, CPU)))
        self.assertEqual((m.planes, m.mesh), ((), {(0, 1): 2, (0, 2): 1}))
        self.assertEqual(self.notes.lines(), ["t:17: links to a CPU are left out: a conf has GPUs as hosts, and no CPUs"])
        self.machine(gpu("a", 0, ("nvlink", "z", 2, GPU)))
        self.assertEqual(self.notes.lines(), ["t:5: links to a GPU that the file does not have are left out"])
        self.assertIsNone(self.machine(gpu("a", 0)).link_GBps(self.notes))

    def test_the_rate_of_a_link_is_the_models(self):
        for sm, kind, rate, note in (
            ('sm="60"', "nvlink", 20.0, []), ('sm="70"', "nvlink", 25.0, []), ('sm="86"', "nvlink", 14.0, []), ('sm="100"', "nvlink", 50.0, []),
            ('sm="99"', "nvlink", 25.0, ["t:4: compute capability 99 is not known: 25 GB/s an NVLink"]), ('gcn="gfx942:sramecc+"', "xgmi", 64.0, []),
            ('gcn="910"', "xgmi", 50.0, []), ('gcn="906"', "xgmi", 46.0, []), ('gcn="GFX950"', "xgmi", 76.8, []),
            ('gcn="gfx1"', "xgmi", 64.0, ["t:4: architecture gfx1 is not known: 64 GB/s an xGMI link"]),
        ):  # fmt: skip
            m = self.machine(gpu("a", 0, (kind, "b", 1, GPU), sm=sm), gpu("b", 1, (kind, "a", 1, GPU), sm=sm))
            self.assertEqual(m.link_GBps(self.notes), rate)
            self.assertEqual(self.notes.lines(), note)

    def test_nics_are_counted_once_and_what_is_none_is_left_out(self):
        m = self.machine(
            gpu("a", 0), net("mlx0", 400000), net("mlx0", 400000, bus="g"), net("mlx1", 100000), net("docker0", 10000), net("eth0", 0), net("eth1", -1),
            net("mlx0+mlx1", 1), net("mlx1.7", 1), net("mlx9.7", 25000), net("a+b", 10000),
        )  # fmt: skip
        self.assertEqual(m.rates, [400.0, 100.0, 25.0, 10.0])
        self.assertEqual([line.split(": ", 1)[1] for line in self.notes.lines()], [
            '"docker0" is no NIC of its own and left out', '"eth0" has no speed and is left out', '"eth1" has no speed and is left out',
            '"mlx0+mlx1" is made of NICs that are listed too, and left out', '"mlx1.7" is made of NICs that are listed too, and left out',
        ])  # fmt: skip

    def test_what_is_no_topology_is_refused(self):
        self.refused('t:1: found no XML (no element found: line 1, column 0), expected NCCL\'s topology', whole="")
        self.refused("t:1: found <graph>, expected <system> of NCCL's topology", whole="<graph/>")
        self.refused("t:1: found a document type, expected NCCL's topology, which has none", whole="<!DOCTYPE x><system/>")
        self.refused(
            "t: found no <gpu> in a <pci> of a <cpu>, expected some, as in NCCL_TOPO_DUMP_FILE (files for NCCL_TOPO_FILE need not have them)", net("a", 1)
        )

    def test_mistakes_have_their_line(self):
        for parts, says in (
            ([gpu("a", "x")], 't:4: found dev="x" at a <gpu>, expected a number'),
            ([gpu("a", 0), gpu("a", 1)], 't:8: found a second GPU of busid "a", expected each once (t:4)'),
            ([gpu("a", 0), gpu("b", 0)], "t:8: found a second GPU of dev 0, expected each once (t:4)"),
            ([gpu("a", 0), gpu("b", 1, sm='sm="80"')], "t:8: found a GPU of 80 beside 90, expected GPUs alike"),
            ([gpu("a", 0, ("nvlink", "s", 0, SWITCH))], 't:5: found count="0" at an <nvlink>, expected 1 to 64'),
            ([gpu("a", 0, ("nvlink", "s", 65, SWITCH))], 't:5: found count="65" at an <nvlink>, expected 1 to 64'),
            ([gpu("a", 0, ("nvlink", "a", 1, GPU))], "t:5: found a link of a GPU to itself, expected another target"),
            ([gpu("a", 0, ("nvlink", "q", 1, "0x99"))],
             't:5: found tclass="0x99", expected 0x03.. or 0x12.. (a GPU), 0x068000 (an NVSwitch) or 0x068001 (a CPU)'),
            ([gpu("a", 0, ("nvlink", "b", 2, GPU)), gpu("b", 1, ("nvlink", "a", 1, GPU))],
             "t:5: found 2 links from GPU 0 to GPU 1, which has 1 to it, expected as many"),
            ([gpu("a", 0, ("nvlink", "b", 2, GPU)), gpu("b", 1)], "t:5: found 2 links from GPU 0 to GPU 1, which has 0 to it, expected as many"),
            ([gpu("a", 0, ("nvlink", "s", 2, SWITCH)), gpu("b", 1, ("nvlink", "s", 2, SWITCH)), gpu("c", 2)],
             "t:14: found GPU 2 with no links to NVSwitches beside GPUs with 2 links, expected GPUs alike: a conf has the same planes for all"),
            ([gpu("a", 0, ("nvlink", "s", 2, SWITCH), ("nvlink", "b", 1, GPU)), gpu("b", 1, ("nvlink", "s", 2, SWITCH), ("nvlink", "a", 1, GPU))],
             "t:6: found links between GPUs beside links to NVSwitches, expected one kind"),
            ([gpu("a", 0), net("m", 1), net("m", 2)], 't:8: found speed="2" of a NIC that has "1" at t:7, expected the same'),
        ):  # fmt: skip
            self.refused(says, *parts)


if __name__ == "__main__":
    unittest.main()
