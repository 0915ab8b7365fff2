# SPDX-License-Identifier: BSD-3-Clause
"""InfiniBand fabrics line by line: nodes, links, levels and names, what is left out with which note, and what is refused by its line."""
import unittest

from tributary._cli import Refused
from tributary.importer import ibnetdiscover, iblinkinfo, verdict
from tributary.importer.network import Network, Node
from tributary.importer.source import Notes


def switch(guid, name, ports=""):
    return f'Switch\t36 "S-{guid}"\t\t# "{name}" enhanced port 0 lid 1 lmc 0\n{ports}'


def ca(guid, name, ports=""):
    return f'Ca\t1 "H-{guid}"\t\t# "{name}"\n{ports}'


def port(n, guid, far, rate="4xHDR"):
    return f'[{n}](aa)\t"{guid}"[{far}](bb)\t\t# "x" lid 5 {rate}\n'


def conf(text, read=ibnetdiscover.read, without=(), notes=None):
    notes = Notes() if notes is None else notes
    net = read("f", text, notes)
    net.reduce(without, notes)
    net.name(notes)
    return [(line.text.strip(), line.where) for line in net.conf()]


TREE = (
    "# head\nvendid=0x2c9\nswitchguid=0x1(0x1)\t\t# Chassis 1\n\n" + switch("01", "spine", port(1, "S-02", 2) + port(3, "S-03", 2))
    + switch("02", "leaf a", port(2, "S-01", 1) + port(4, "H-0a", 1, "4xEDR")) + switch("03", "leaf b", port(2, "S-01", 3) + port(5, "H-0b", 1))
    + "caguid=0x1\n" + ca("0a", "n1 HCA-1", port(1, "S-02", 4, "4xHDR")) + "DR path x\n" + ca("0b", "n2 mlx5_0", port(1, "S-03", 5))
)  # fmt: skip


class Discovered(unittest.TestCase):
    def refused(self, says, call, *args, **given):
        with self.assertRaises(Refused) as e:
            call(*args, **given)
        self.assertEqual(str(e.exception), says)

    def test_a_tree_has_roles_ports_and_lines(self):
        notes = Notes()
        self.assertEqual(conf(TREE, notes=notes), [
            ("nodes = (", ""), ('{ name = ( "n1", "n2" ); kind = "host"; },', "f:15"), ('{ name = "leaf_a"; role = "leaf"; },', "f:8"), ('{ name = "leaf_b"; role = "leaf"; },', "f:11"),
            ('{ name = "spine"; role = "spine"; }', "f:5"), (");", ""), ("links = (", ""), ('{ a = "leaf_a:1"; b = "spine:0"; rate = "200Gb/s"; },', "f:6"),
            ('{ a = "leaf_b:1"; b = "spine:2"; rate = "200Gb/s"; },', "f:7"), ('{ a = "n1"; b = "leaf_a:3"; rate = "100Gb/s"; },', "f:10"),
            ('{ a = "n2"; b = "leaf_b:4"; rate = "200Gb/s"; }', "f:13"), (");", ""),
        ])  # fmt: skip
        self.assertEqual(notes.lines(), ["f:16: the two ends have different rates, the smaller one counts"])

    def test_what_is_no_output_is_refused(self):
        for text, says in (
            (port(1, "S-01", 1), 'f:1: found a port of no node, expected a line as Switch 40 "S-..." before it'),
            ("hello " * 20, f"f:1: found {('hello ' * 20)[:60]!r}, expected a node or a port as ibnetdiscover prints them"),
            ("", "f: found no node, expected what ibnetdiscover or iblinkinfo prints, or NCCL's topology"),
            (switch("01", "a") * 2, 'f:2: found "S-01" a second time, expected it once (line 1)'),
            (switch("01", "a", port(1, "S-09", 1)), 'f:2: found a link to "S-09", which the file does not have'),
            (switch("01", "a", port(1, "S-01", 1)), 'f:2: found a link from port 1 of "S-01" to itself, expected another port'),
            (switch("01", "a", port(1, "H-0a", 1) + port(1, "H-0b", 1)) + ca("0a", "x") + ca("0b", "y"), 'f:3: found a second link at port 1 of "S-01", expected one (line 2)'),
            (switch("01", "a", port(1, "S-02", 1, "")) + switch("02", "b"), "f:2: found a link without its rate, expected one as 4xHDR at its end"),
        ):
            self.refused(says, ibnetdiscover.read, "f", text, Notes())
        self.refused("f: found no links between hosts and switches, expected some", conf, switch("01", "a", port(1, "S-02", 1)) + switch("02", "b"))

    def test_what_a_conf_cannot_have_is_left_out(self):
        notes = Notes()
        text = TREE + (
            'Rt\t2 "R-01"\t# "router"\n' + port(1, "S-01", 9) + ca("0c", "Mellanox Technologies Aggregation Node", port(1, "S-01", 8)) + switch("04", "lonely")
            + switch("05", "far", port(1, "S-06", 1)) + switch("06", "farther")
        )  # fmt: skip
        self.assertEqual(len(conf(text, notes=notes)), 12)
        self.assertEqual(notes.lines()[1:], [
            "f:20: a router is left out", "f:22: an aggregation node is left out: all switches of the conf reduce",
            "f:26: a link between switches of one level is left out: routes go up, then down", "f:24: a node that no link joins to hosts is left out (and 2 more)",
        ])  # fmt: skip
        self.assertEqual([t for t, _ in conf(TREE, without=("n1",))][1], '{ name = ( "n2" ); kind = "host"; },')
        level = TREE + switch("07", "leaf c", port(1, "S-02", 9) + port(2, "H-0d", 1)) + ca("0d", "n3 HCA-1")
        net = ibnetdiscover.read("f", level, Notes())
        net.reduce((), notes)
        self.assertEqual(net.level_links, [("S-02", "S-07", 21)])

    def names(self, *nodes):
        """Of a fabric of these nodes at one switch."""
        net, notes = Network("f"), Notes()
        for i, (kind, text) in enumerate(nodes, 1):
            net.add(f"{kind[0]}-00000{i}", Node(kind, text, i), "x")
        net.name(notes)
        return [n.name for n in net.nodes.values()], notes.lines()

    def test_hosts_are_called_by_what_stands_before_their_hca(self):
        for text, machine in (
            ("n1 HCA-1", ("n1", "HCA-1")), ("'n 1' mlx5_0", ("n 1", "mlx5_0")), ("n1:hfi1_0", ("n1", "hfi1_0")), ("n1", ("n1", "")), (" HCA-1", ("HCA-1", "")), ("n1 ibp3s0", ("n1", "ibp3s0")),
            ("n1 HCA-x", ("n1 HCA-x", "")),
        ):  # fmt: skip
            self.assertEqual(Node("Ca", text, 1).machine(), machine)
        self.assertEqual(self.names(("Ca", "a HCA-1"), ("Ca", "a HCA-2"), ("Ca", "b")), (["a", "a", "b"], []))
        self.assertEqual(self.names(("Ca", "b"), ("Ca", "b")), (["b", "b_2"], []))
        self.assertEqual(self.names(("Ca", "a HCA-1"), ("Ca", "a HCA-1"), ("Ca", "a HCA-1")), (["a", "a_2", "a_3"], ['f:2: "a HCA-1" is several machines of one name']))
        taken = 'f:2: HCAs of "localhost", as machines without a name are called, are taken for those of one machine'
        self.assertEqual(self.names(("Ca", "localhost HCA-1"), ("Ca", "localhost HCA-2")), (["localhost"] * 2, [taken]))
        self.assertEqual(self.names(("Ca", "localhost HCA-1")), (["localhost"], []))
        self.refused(
            'f:3: found a second "a HCA-2" (line 2) beside other HCAs of that name, expected machines with names of their own: which HCAs are of one machine cannot be told',
            self.names, ("Ca", "a HCA-1"), ("Ca", "a HCA-2"), ("Ca", "a HCA-2"),
        )

    def test_switches_are_called_by_their_names_or_places(self):
        for texts, names in (
            (("a", "b"), ["a", "b"]), (("a", "a"), ["sw000001", "sw000002"]), (("MF0;d:MCS8500/L07/U1", "MF0;d:MCS8500/S02/U1", "x"), ["d_L07", "d_S02", "x"]),
            (("MF0;d:MCS8500/L07/U1", "x"), ["d", "x"]), (("MF0;d:MQM8700/U1", "MF0;d:MQM8700/U1"), ["d", "d_2"]), (("", "x"), ["sw000001", "x"]),
        ):  # fmt: skip
            self.assertEqual(self.names(*(("Switch", t) for t in texts))[0], names)

    def test_levels_above_three_are_switches(self):
        net, notes = Network("f"), Notes()
        net.add("H", Node("Ca", "h", 1), "h")
        for i in range(1, 5):
            net.add(f"S{i}", Node("Switch", f"s{i}", i + 1), "s")
            net.join((f"S{i}", 1), ("H", 1) if i == 1 else (f"S{i - 1}", 2), 100.0, i, notes)
        net.reduce((), notes)
        net.name(notes)
        self.assertEqual([n.level for n in net.nodes.values()], [0, 1, 2, 3, 4])
        self.assertEqual([line.text.split("role")[1] for line in net.conf()[2:6]], [' = "leaf"; },', ' = "spine"; },', ' = "core"; },', ' = "switch"; }'])
        self.assertEqual(net.lines_of_names(), {"h": "f:1", "s1": "f:2", "s2": "f:3", "s3": "f:4", "s4": "f:5"})


LINKED = (
    "# x\nSwitch: 0x0000000000000001 sw 1:\n"
    '           2    1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>       5    1[  ] "n1 HCA-1" ( )\n'
    '           2    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )\n'
    '           2    3[  ] ==( 4X 53.125 Gbps Initialize/  LinkUp)==>             [  ] "" ( )\n'
    '           2    4[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==>       6    1[  ] "n2 HCA-1" ( )\n'
    "CA: 0x0000000000000002 n1 HCA-1:\n"
    '  0x0000000000000003      5    1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>       2    1[  ] "sw 1" ( )\n'
    "CA: n2 HCA-1:\n"
    '           6    1[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==>       2    4[  ] "sw 1" ( )\n'
    '           0    2[  ] ==(                Down/ Disabled)==>             [  ] "" ( )\n'
    "CA: 0x0000000000000009 n3:\n"
    '           0    2[  ] ==(                Down/ Disabled)==>             [  ] "" ( )\n'
)


class Linked(unittest.TestCase):
    def test_nodes_are_known_by_their_lids(self):
        notes = Notes()
        self.assertEqual(conf(LINKED, iblinkinfo.read, notes=notes), [
            ("nodes = (", ""), ('{ name = ( "n1", "n2" ); kind = "host"; },', "f:7"), ('{ name = "sw_1"; role = "leaf"; }', "f:2"), (");", ""), ("links = (", ""),
            ('{ a = "n1"; b = "sw_1:0"; rate = "200Gb/s"; },', "f:3"), ('{ a = "n2"; b = "sw_1:3"; rate = "100Gb/s"; }', "f:6"), (");", ""),
        ])  # fmt: skip
        self.assertEqual(notes.lines(), ["f:5: a link that is not up is left out", "f:12: a node that no link joins to hosts is left out"])
        net = iblinkinfo.read("f", LINKED, Notes())
        self.assertEqual(list(net.nodes), ["S-0000000000000001", "C-0000000000000002", "C-9", "C-0000000000000009"])
        self.assertEqual([n.kind for n in net.nodes.values()], ["Switch", "Ca", "Ca", "Ca"])

    def test_a_head_tells_the_tool(self):
        for text, found in ((LINKED, True), ("x\n  CA: y", True), ("1[ ] ==( x", True), (TREE, False), ("a Switch: b", False)):
            self.assertEqual(iblinkinfo.is_iblinkinfo(text), found)

    def test_mistakes_have_their_line(self):
        head = "Switch: 0x0000000000000001 a:\n"
        link = '  2    1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>       5    1[  ] "b" ( )\n'
        for text, says in (
            ('0x1 "a" 2 1[ ] ==( x', "f:1: found a line of iblinkinfo --line, which does not say what is a switch, expected iblinkinfo without --line"),
            (link, "f:1: found a port of no node, expected a line as Switch: 0x... NAME: before it"), (head + "z" * 70, f"f:2: found {'z' * 60!r}, expected a node or a port as iblinkinfo prints them"),
            (head + link, "f:2: found a link to LID 5, which no node of the file has"), (head + link + head.replace("1 a", "2 b") + link, "f:4: found LID 2, which the node of line 1 has"),
            (head + head, "f:2: found 0x0000000000000001 a second time, expected it once (line 1)"),
        ):  # fmt: skip
            with self.assertRaises(Refused) as e:
                iblinkinfo.read("f", text, Notes())
            self.assertEqual(str(e.exception), says)


class Between(unittest.TestCase):
    """Why two hosts have no way."""

    def why(self, links, a="n1", b="n2"):
        net, notes = Network("f"), Notes()
        for i, guid in enumerate(sorted({g for pair in links for g in pair}), 1):
            net.add(guid, Node("Ca" if guid[0] == "n" else "Switch", guid, i), guid)
        for i, (x, y) in enumerate(links):
            net.join((x, 10 + i), (y, 10 + i), 1.0, 100 + i, notes)
        net.reduce((), notes)
        net.name(notes)
        return verdict.between_hosts(net)(a, b)

    def test_ways_are_told(self):
        for links, says in (
            ([("n1", "s1"), ("n2", "s2")], 'f:2: found no links that join "n1" and "n2" (line 1), expected one fabric'),
            ([("n1", "s1"), ("n2", "s2"), ("s1", "s2")], 'f:102: found a link between "s1" and "s2", both 1 link from hosts, as the only way between "n1" and "n2", '
             "expected a switch above both: routes go up, then down (--without HOST leaves out a host that is on a spine)"),
            ([("n1", "s1"), ("n2", "s2"), ("s1", "t1"), ("s2", "t2"), ("t1", "t2")], 'f:104: found a link between "t1" and "t2", both 2 links from hosts, as the only way '
             'between "n1" and "n2", expected a switch above both: routes go up, then down (--without HOST leaves out a host that is on a spine)'),
            ([("n1", "s1"), ("n2", "s2"), ("n3", "s3"), ("s1", "t1"), ("s3", "t1"), ("s3", "t2"), ("s2", "t2")],
             'f:2: found "n1" and "n2" (line 1) joined only by ways that go down and up again, expected one that goes up, then down'),
        ):  # fmt: skip
            self.assertEqual(self.why(links), says)


if __name__ == "__main__":
    unittest.main()
