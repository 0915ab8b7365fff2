# SPDX-License-Identifier: BSD-3-Clause
"""A conf as text: values are found and changed where they are, and all else stays; the paths that a conf has."""
import unittest

from tributary._cli import Refused
from tributary.calibrate import paths
from tributary._conf_text import Conf
from tributary.calibrate.rows import Series

TEXT = """\
// head
name = "x"; # of "y"
a : { b = 1; c = "p" "q"; /* } */ d = ( 1, { e = 2; } ); };
costs = {
    nvlink = {
        step = "1us";
    };
    last = [ 1, 2 ]
};
mtu = 4096
"""


class Text(unittest.TestCase):
    def test_values_are_found_by_their_paths(self):
        c = Conf(TEXT)
        for path, value in (
            ("name", "x"), ("a.b", "1"), ("a.c", 'p" "q'), ("a.d", "( 1, { e = 2; } )"), ("costs.nvlink.step", "1us"), ("costs.last", "[ 1, 2 ]"), ("mtu", "4096"),
            ("a", None), ("costs", None), ("e", None), ("a.d.e", None), ("none", None),
        ):  # fmt: skip
            self.assertEqual(c.get(path), value, path)
        self.assertEqual(c.group_text("a"), ' b = 1; c = "p" "q"; /* } */ d = ( 1, { e = 2; } );')
        self.assertEqual(c.group_text("costs.nvlink"), '\n        step = "1us";')
        self.assertIsNone(c.group_text("mtu"))
        self.assertEqual(sorted(c.at), ["a", "a.b", "a.c", "a.d", "costs", "costs.last", "costs.nvlink", "costs.nvlink.step", "mtu", "name"])
        self.assertEqual([c.text[slice(*s)] for s in c.comments], ["// head", '# of "y"', "/* } */"])

    def test_what_ends_early_is_no_endless_loop(self):
        for text, at in (("a", []), ("a =", []), ("a = {", ["a"]), ("a = (1", ["a"]), ("a = { b = 1", ["a", "a.b"]), ('a = "x" "y"', ["a"]), ('a = "x', []), ("= 1; b = 2", ["b"])):
            self.assertEqual(sorted(Conf(text).at), at, text)
        self.assertEqual(Conf("a = (1").get("a"), "(1")
        self.assertEqual(Conf('a = "x" "y"').get("a"), 'x" "y')

    def test_a_value_is_replaced_where_it_is(self):
        self.assertEqual(Conf(TEXT).set("a.b", "7", None).text, TEXT.replace("b = 1", "b = 7"))
        self.assertEqual(Conf(TEXT).set("mtu", "1024", None).text, TEXT.replace("4096", "1024"))
        self.assertEqual(Conf(TEXT).set("costs.nvlink.step", '"2us"', "why").text, TEXT.replace('        step = "1us"', '        # calibrated: costs.nvlink.step why\n        step = "2us"'))

    def test_a_new_value_goes_to_its_group(self):
        for text, path, made in (
            ("a = 1;", "b", "a = 1;\n\nb = 7;\n"), ("a = 1;\n\n\n", "b", "a = 1;\n\nb = 7;\n"), ("a = { };", "a.b", "a = { b = 7; };"),
            ("a = { c = 1; };", "a.b", "a = { c = 1; b = 7; };"), ("a = { c = 1 };", "a.b", "a = { c = 1; b = 7; };"), ("a = { c = 1, };", "a.b", "a = { c = 1, b = 7; };"),
            ("a = {\n  c = 1\n};", "a.b", "a = {\n  c = 1;\n    b = 7;\n};"), ("  a = {\n  c = 1; # x\n  };", "a.b", "  a = {\n  c = 1; # x\n      b = 7;\n  };"),
            ("a = {\n};", "a.b", "a = {\n    b = 7;\n};"), ("x = 1;", "a.b.c", "x = 1;\n\na = { b = { c = 7; }; };\n"), ("a = { x = 1; };", "a.b.c", "a = { x = 1; b = { c = 7; }; };"),
        ):  # fmt: skip
            found = Conf(text).set(path, "7", None)
            self.assertEqual(found.text, made)
            self.assertEqual(found.get(path), "7")

    def test_a_remark_is_above_and_replaces_an_older_one(self):
        text = "# mine\n# calibrated: a old\n# calibrated: b other\na = 1; b = 2;\n"
        self.assertEqual(Conf(text).set("a", "3", "new").text, "# mine\n# calibrated: b other\n# calibrated: a new\na = 3; b = 2;\n")
        self.assertEqual(Conf("# calibrated: a old\nx = 1;\na = 1;\n").set("a", "3", "new").text, "# calibrated: a old\nx = 1;\n# calibrated: a new\na = 3;\n")
        self.assertEqual(Conf("a = 1;").set("a", "3", "w").text, "# calibrated: a w\na = 3;")
        self.assertEqual(Conf("\t a = 1;\n").set("a", "3", "w").text, "\t # calibrated: a w\n\t a = 3;\n")
        self.assertEqual(Conf("/* x\n y */ a = 1;\n").set("a", "3", "w */ z").text, "/* x\n y */ a = 3 /* w * / z */;\n")
        self.assertEqual(Conf("x = 1;").set("b", "3", "w").text, "x = 1;\n\n# calibrated: b w\nb = 3;\n")
        self.assertEqual(Conf("x = 1;").set("a.b", "3", "w").text, "x = 1;\n\n# calibrated: a.b w\na = { b = 3; };\n")


class Paths(unittest.TestCase):
    def test_times_are_in_seconds(self):
        for text, s in (("300ns", 3e-7), ("1.5 us", 1.5e-6), ("2ms", 2e-3), ("3s", 3.0), ("7ps", 7e-12), ("", 0.0), (None, 0.0), ("5", 0.0), ("x us", 0.0)):
            self.assertAlmostEqual(paths.seconds(text), s, 18)

    def path(self, text, algo="ring", ranks=4, kind="time"):
        return paths.path_of(Conf(text), Series("f", "all_reduce", algo, ranks, None, kind))

    def test_a_path_is_of_the_ranks_and_the_algorithm(self):
        node = "gpu_nodes = { gpus = 4; nic = { }; };"
        for text, args, name, efficiency, step in (
            (node, {}, "nvlink", ["gpu_nodes.nvlink.efficiency"], "costs.nvlink.step"), (node, {"ranks": 5}, "network", ["gpu_nodes.nic.efficiency"], "costs.network.step"),
            (node, {"algo": "nvls"}, "multimem", ["costs.multimem.load", "costs.multimem.store"], None),
            (node, {"algo": "nvls", "ranks": 5}, "network", ["gpu_nodes.nic.efficiency"], "costs.network.step"),
            (node, {"kind": "rate"}, "network", ["gpu_nodes.nic.efficiency"], "costs.network.step"),
            (node, {"kind": "latency", "algo": "nvls"}, "network", ["gpu_nodes.nic.efficiency"], "costs.network.step"),
            ("link_defaults = { }; full_mesh = { host_link = { }; };", {}, "network", ["full_mesh.host_link.efficiency"], "costs.network.step"),
            ("link_defaults = { };", {"ranks": 0, "algo": "nvls"}, "network", ["link_defaults.efficiency"], "costs.network.step"),
        ):  # fmt: skip
            p = self.path(text, **args)
            self.assertEqual((p.name, p.efficiency, p.step, p.launch), (name, efficiency, step, f"costs.{name}.launch"))
        with self.assertRaises(Refused) as e:
            self.path("gpu_nodes = { gpus = 2; };")
        self.assertEqual(str(e.exception), "found no gpu_nodes.nic, host_link or link_defaults in CONF itself, expected one of them: results over the network need its rate")


if __name__ == "__main__":
    unittest.main()
