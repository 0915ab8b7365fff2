# SPDX-License-Identifier: BSD-3-Clause
"""trib-import: which files go together, the conf that is written, and by which line of the input trib plan's refusal is told."""
import contextlib
import io
import os
import subprocess
import tempfile
import unittest
from unittest import mock

from tributary._cli import Refused
from tributary.importer import command, gpus, verdict
from tributary.importer.source import Line, Notes
from tributary.importer.topology import Machine

IB = 'Switch 36 "S-01" # "sw" x\n[1] "H-0a"[1] # "n1" lid 5 4xHDR\n[2] "H-0b"[1] # "n2" lid 5 4xHDR\nCa 1 "H-0a" # "n1 HCA-1"\nCa 1 "H-0b" # "n2 HCA-1"\n'
LINKED = (
    'Switch: 0x0000000000000001 sw:\n 2 1[ ] ==( 4X 53.125 Gbps Active/ LinkUp)==> 5 1[ ] "n1" ( )\nCA: 0x0000000000000002 n1 HCA-1:\n'
    ' 5 1[ ] ==( 4X 53.125 Gbps Active/ LinkUp)==> 2 1[ ] "sw" ( )\n'
)


def node(links="", gpus_=2, nets=(), sm="90"):
    """links: of each GPU by its number."""
    parts = "".join(f'<pci busid="b{i}">\n<gpu dev="{i}" sm="{sm}">{links(i) if links else ""}</gpu></pci>\n' for i in range(gpus_))
    parts += "".join(f'<pci busid="x{i}"><nic><net name="m{i}" dev="{i}" speed="{speed}"/></nic></pci>\n' for i, speed in enumerate(nets))
    return f'<system version="1"><cpu host_hash="1">\n{parts}</cpu></system>\n'


def to_switch(_):
    return '<nvlink target="s" count="6" tclass="0x068000"/>'


def to_other(i):
    return f'<nvlink target="b{1 - i}" count="3" tclass="0x030200"/>' if i < 2 else ""


class Gpus(unittest.TestCase):
    def conf(self, *texts, times=1):
        notes = Notes()
        lines, where = gpus.conf([Machine(f"f{i}", t, notes) for i, t in enumerate(texts)] * times, "9ns", notes)
        return [(line.text.strip(), line.where) for line in lines], where, notes.lines()

    def refused(self, says, call, *args, **given):
        with self.assertRaises(Refused) as e:
            call(*args, **given)
        self.assertEqual(str(e.exception), says)

    def test_nodes_with_switches_have_planes(self):
        lines, where, notes = self.conf(node(to_switch))
        self.assertEqual(lines, [('gpu_nodes = { nodes = 1; gpus = 2; planes = ( 6 ); nvlink = { rate = "25GB/s"; latency = "9ns"; }; };', "f0:3")])
        self.assertEqual((where, notes), ({"n0g0": "f0:3", "n0g1": "f0:5"}, []))
        lines, where, notes = self.conf(node(to_switch, nets=(400000, 200000, 100000)), times=2)
        self.assertEqual(lines, [
            ('gpu_nodes = { nodes = 2; gpus = 2; planes = ( 6 ); nvlink = { rate = "25GB/s"; latency = "9ns"; }; };', "f0:3"), ("nodes = (", ""),
            ('{ name = "leaf0"; role = "leaf"; }', "f0:3"), (");", ""), ("links = (", ""), ('{ a = ( "n0g0", "n0g1" ); b = "leaf0"; rate = "350Gb/s"; latency = "9ns"; },', "f0:3"),
            ('{ a = ( "n1g0", "n1g1" ); b = "leaf0"; rate = "350Gb/s"; latency = "9ns"; }', "f0:3"), (");", ""),
        ])  # fmt: skip
        self.assertEqual((sorted(where), notes), (["n0g0", "n0g1", "n1g0", "n1g1"], ["f0: 3 NICs for 2 GPUs: each GPU has its share of them"]))

    def test_nodes_without_switches_have_links(self):
        lines, _, notes = self.conf(node(to_other))
        self.assertEqual(lines, [
            ("nodes = (", ""), ('{ name = ( "n0g0", "n0g1" ); kind = "host"; }', "f0:3"), (");", ""), ("links = (", ""),
            ('{ a = "n0g0"; b = "n0g1"; cables = 3; rate = "25GB/s"; latency = "9ns"; }', "f0:3"), (");", ""),
        ])  # fmt: skip
        self.assertEqual(notes, [])
        lines, _, notes = self.conf(node(nets=(1000, 1000)))
        self.assertEqual([t for t, _ in lines][1:6:2], ['{ name = ( "n0g0", "n0g1" ); kind = "host"; },', ");", '{ a = ( "n0g0", "n0g1" ); b = "leaf0"; rate = "1Gb/s"; latency = "9ns"; }'])
        self.assertEqual(notes, ["f0: GPUs without NVLink meet at the leaf: a conf has no PCIe"])
        self.refused("f0: found no <net> with a speed, expected one to join nodes or GPUs without NVLink or xGMI", self.conf, node())
        self.refused("f0: found no <net> with a speed, expected one to join nodes", self.conf, node(to_other), times=2)

    def test_nodes_are_alike(self):
        self.refused("f1: found other GPUs or links than in f0, expected nodes alike", self.conf, node(to_switch), node(to_other))
        self.refused("f1: found NICs of no speed, and in f0 of 1, 2 Gb/s, expected nodes alike", self.conf, node(to_switch, nets=(2000, 1000)), node(to_switch))
        self.assertEqual(len(self.conf(node(to_switch, nets=(2000, 1000)), node(to_switch, nets=(1000, 2000)))[0]), 8)
        m = Machine("f", node(to_other, 3), Notes())
        self.assertEqual(gpus.unlinked(m, "n0g0", "n0g2"), (
            "f:3: found GPU 0 without a link to GPU 2 (f:7), expected links between every two GPUs of a node that is alone: GPUs do not forward (--nodes joins nodes by their NICs)"
        ))  # fmt: skip


class Import(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        at = os.getcwd()
        self.addCleanup(os.chdir, at)
        os.chdir(folder.name)
        self.code, self.stderr, self.planned = 0, "", []
        for where, name, instead in ((subprocess, "run", self.ran), (verdict, "program", lambda name: f"/bin/{name}")):
            patch = mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)
        for name, text in (("my fab.txt", IB), ("l", LINKED), ("n.xml", node(to_switch, nets=(8000, 8000))), ("o.xml", node(to_switch, nets=(8000, 8000))), ("m.xml", node(to_other, 3))):
            with open(name, "w", encoding="utf-8") as f:
                f.write(text)

    def ran(self, words, **how):
        with open(words[1], encoding="utf-8") as f:
            self.planned.append((words[0], os.path.basename(words[1]), f.read()))
        return subprocess.CompletedProcess(words, self.code, "", self.stderr)

    def main(self, *argv):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(argv)
        return code, out.getvalue(), err.getvalue().replace("trib-import: ", "", 1)

    HEAD = '# %s of %s. Latencies, MTU and aggregation are not in it: they are assumed.\nname = "%s";\ndilation = "auto";\nmtu = 4096;\necmp = "balanced";\nreduce = { groups = 64; slots = 16384; window = 256; };\n'  # noqa: E501

    def test_the_conf_is_what_trib_plan_takes(self):
        body = 'nodes = (\n    { name = ( "n1", "n2" ); kind = "host"; },\n    { name = "sw"; role = "leaf"; }\n);\nlinks = (\n'
        body += '    { a = "n1"; b = "sw:0"; rate = "200Gb/s"; },\n    { a = "n2"; b = "sw:1"; rate = "200Gb/s"; }\n);\n'
        conf = self.HEAD % ("ibnetdiscover's output", "my fab.txt", "my_fab") + 'link_defaults = { latency = "300ns"; };\n' + body
        self.assertEqual(self.main("my fab.txt"), (0, conf, ""))
        self.assertEqual(self.planned, [("/bin/trib-plan", "my_fab.conf", conf)])
        self.assertEqual(self.main("my fab.txt", "--name", "x", "--latency", "1.5us", "-o", "out"), (0, "", ""))
        with open("out", encoding="utf-8") as f:
            self.assertEqual(f.read(), conf.replace('"my_fab"', '"x"').replace("300ns", "1.5us"))
        code, out, err = self.main("l")
        self.assertEqual((code, out.split(".")[0], err), (0, "# iblinkinfo's output of l", ""))
        code, out, err = self.main("n.xml", "--nodes", "3", "--latency", "2ns")
        self.assertEqual((code, err, out.startswith(self.HEAD % ("NCCL's topology", "n.xml", "n") + "gpu_nodes = { nodes = 3; gpus = 2;"), out.count('"2ns"')), (0, "", True, 4))
        code, out, _ = self.main("n.xml", "o.xml")
        self.assertEqual((code, out.split(". ")[0], "nodes = 2" in out), (0, "# NCCL's topology of n.xml, o.xml", True))
        self.assertEqual([t for t in self.main("my fab.txt", "--without", "n1,")[1].splitlines() if "host" in t], ['    { name = ( "n2" ); kind = "host"; },'])

    def test_files_and_options_that_do_not_go_together(self):
        for argv, says in (
            ((), "found no FILE, expected what ibnetdiscover or NCCL writes (-h shows all)"), (("l", "l"), "found 2 files, expected one of ibnetdiscover, or topologies of NCCL alone"),
            (("n.xml", "l"), "found 2 files, expected one of ibnetdiscover, or topologies of NCCL alone"), (("l", "--nodes", "2"), "found --nodes, expected it with one topology of NCCL"),
            (("n.xml", "o.xml", "--nodes", "2"), "found --nodes, expected it with one topology of NCCL"),
            (("n.xml", "--without", "x"), "found --without, expected it with ibnetdiscover's or iblinkinfo's output"), (("l", "--without", "zz"), "--without: found 'zz', expected a host of l"),
            (("l", "--without", "HCA-1"), "--without: found 'HCA-1', expected a host of l"), (("l", "--without", "sw"), "--without: found 'sw', expected a host of l"),
            (("l", "--name", "1x"), "--name: found '1x', expected a letter and at most 30 letters, digits, dots, dashes"), (("l", "--latency", "3"), "--latency: found '3', expected a time as 300ns"),
            (("l", "--nodes", "0"), "--nodes: found '0', expected 1 to 9999"),
        ):  # fmt: skip
            self.assertEqual(self.main(*argv), (2, "", says + "\n"))

    def test_what_trib_plan_refuses_is_told_by_the_input_s_line(self):
        lines = [Line("a"), Line("b", "f:7"), Line("c")]
        self.code = 1
        for stderr, says in (
            ("trib-plan: /t/x.conf:2: found no\n", "f:7: found no, as trib plan says of the conf"), ("trib-plan: /t/x.conf:1: found no\n", "p: found no, as trib plan says of the conf"),
            ("/t/x.conf:4: found no\n\n", "p: found no, as trib plan says of the conf"), ("/t/x.conf:0: no\n", "p: no, as trib plan says of the conf"),
            ('/t/x.conf: found "q" and "n1"\nmore\nand more\n', 'f:3: found "q" and "n1", as trib plan says of the conf (and 2 more)'),
            ("", "p: trib-plan ended with exit code 1, as trib plan says of the conf"), ('found no path between "n1" and "n2"\nx\n', "n1 to n2 (and 1 more)"),
            ('found no path between "n1" and "n9"\n', 'f:3: found no path between "n1" and "n9", as trib plan says of the conf'),
        ):  # fmt: skip
            self.stderr = stderr
            with self.assertRaises(Refused) as e:
                verdict.check(lines, "x", {"n1": "f:3"}, "p", lambda a, b: f"{a} to {b}" if b == "n2" else "")
            self.assertEqual(str(e.exception), says)
        for n, where in ((0, "p"), (1, "f:1"), (2, "f:2"), (3, "p")):
            self.stderr = f"x.conf:{n}: no\n"
            with self.assertRaisesRegex(Refused, f"^{where}: no, as trib plan says of the conf$"):
                verdict.check([Line("a", "f:1"), Line("b", "f:2")], "x", {}, "p", lambda a, b: "")
        self.assertEqual(self.planned[0], ("/bin/trib-plan", "x.conf", "a\nb\nc\n"))
        self.stderr = 'found no path between "n0g0" and "n0g2"\n'
        self.assertEqual(self.main("m.xml")[2].split(",")[0], "m.xml:3: found GPU 0 without a link to GPU 2 (m.xml:7)")
        self.stderr = 'trib-plan: x.conf: "n2" is no\n'
        self.assertEqual(self.main("my fab.txt"), (1, "", 'my fab.txt:5: "n2" is no, as trib plan says of the conf\n'))

    def test_notes_are_told_even_where_it_is_refused(self):
        with open("x.xml", "w", encoding="utf-8") as f:
            f.write(node(to_switch, nets=(0,)))
        self.assertEqual(self.main("x.xml")[2], 'x.xml:6: "m0" has no speed and is left out\n')
        self.code = 1
        self.assertEqual(self.main("x.xml")[2], 'x.xml:6: "m0" has no speed and is left out\ntrib-import: x.xml: trib-plan ended with exit code 1, as trib plan says of the conf\n')


if __name__ == "__main__":
    unittest.main()
