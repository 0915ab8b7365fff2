# SPDX-License-Identifier: BSD-3-Clause
"""A conf as an object: keys by their ends, templates, names. libconfig's text is in the end-to-end tests."""
import unittest
from pathlib import Path
from unittest import mock

from tributary import conf
from tributary.conf import Conf

LINK = {"rate": "400Gb/s", "latency": "300ns"}


class Names(unittest.TestCase):
    def test_a_name_is_checked_as_trib_does(self):
        for good in ("a", "0", "a_b.c-d", "x" * 31):
            self.assertEqual(conf.checked_name(good), good)
        for bad, shown in (
            ("", "''"), ("_a", "'_a'"), ("a b", "'a b'"), ("é", "'é'"), ("a\n", "'a\\n'"), ("x" * 32, repr("x" * 32)), (7, "7"), (None, "None"),
            ("y" * 99, ("'" + "y" * 99)[:80]),
        ):  # fmt: skip
            with self.assertRaises(ValueError) as e:
                conf.checked_name(bad)
            self.assertEqual(
                str(e.exception),
                f"name: found {shown}, expected a name of 1 to 31 letters, digits, '_', '.' or '-' that begins with a letter or digit",
            )

    def test_a_files_stem_is_the_default_name(self):
        for path, name in (
            ("a/b.conf", "b"), ("b", "b"), ("x.y.conf", "x.y"), (".conf", "fconf"), ("a b&c.conf", "a-b-c"), ("-x.conf", "fx"),
            ("12345678901234567890123456789012.conf", "1234567890123456789012345678901"), ("", ""),
        ):  # fmt: skip
            self.assertEqual(conf.default_name(Path(path)), name)


class Keys(unittest.TestCase):
    def setUp(self):
        self.c = Conf({"name": "n", "leaf_spine": {"leaves": 2, "spine_link": dict(LINK), "host_link": dict(LINK)}, "mtu": 4096}, ecmp="hash")

    def test_the_end_of_a_path_is_enough_where_one_key_has_it(self):
        c = self.c
        self.assertEqual(c["mtu"], 4096)
        self.assertEqual(c["ecmp"], "hash")
        self.assertEqual(c["leaves"], 2)
        self.assertEqual(c["spine_link.rate"], "400Gb/s")
        self.assertEqual(c["leaf_spine.spine_link.latency"], "300ns")
        self.assertEqual(len(c), 4)
        self.assertEqual(list(c), ["name", "leaf_spine", "mtu", "ecmp"])
        self.assertEqual(c.name, "n")
        self.assertEqual(Conf().name, "fabric")
        with self.assertRaises(KeyError) as e:
            c["rate"]
        self.assertEqual(
            e.exception.args[0], "found 'rate', expected one key, which has leaf_spine.spine_link.rate, leaf_spine.host_link.rate"
        )
        for key in ("eaves", "none", "spine_link.none"):
            with self.assertRaises(KeyError) as e:
                c[key]
            self.assertEqual(
                e.exception.args[0],
                f"found {key!r}, expected one of name, leaf_spine, mtu, ecmp, leaf_spine.leaves, leaf_spine.spine_link, leaf_spine.host_link, "
                "leaf_spine.spine_link.rate, leaf_spine.spine_link.latency, leaf_spine.host_link.rate, leaf_spine.host_link.latency",
            )

    def test_a_whole_path_comes_before_the_end_of_another(self):
        c = Conf({"a": {"mtu": 1}, "mtu": 2})
        self.assertEqual(c["mtu"], 2)
        self.assertEqual(c["a.mtu"], 1)

    def test_keys_are_set_where_they_are_or_made(self):
        c = self.c
        c["leaves"] = 4
        c["spine_link.rate"] = "1Gb/s"
        c["spine_link.loss"] = 0.5
        c["dilation"] = 2
        self.assertEqual(c.groups["leaf_spine"]["leaves"], 4)
        self.assertEqual(c.groups["leaf_spine"]["spine_link"], {"rate": "1Gb/s", "latency": "300ns", "loss": 0.5})
        self.assertEqual(c.groups["leaf_spine"]["host_link"], LINK)
        self.assertEqual(c.groups["dilation"], 2)
        for key in ("none.x", "mtu.x", "leaves.x"):
            with self.assertRaises(KeyError) as e:
                c[key] = 1
            self.assertTrue(e.exception.args[0].startswith(f"found {key[:-2]!r}, expected one of name, "))
        del c["leaves"]
        self.assertNotIn("leaves", c.groups["leaf_spine"])
        with self.assertRaises(KeyError):
            del c["leaves"]

    def test_copies_are_apart_and_equal(self):
        c, groups = self.c, {"a": [1, {"b": (2,)}], "c": [1, 2], "d": (3,)}
        self.assertEqual(Conf(groups).groups, {"a": (1, {"b": (2,)}), "c": [1, 2], "d": (3,)})
        other = c.copy(name="m")
        self.assertEqual((other.name, c.name), ("m", "n"))
        other["spine_link.rate"] = "x"
        self.assertEqual(c["spine_link.rate"], "400Gb/s")
        self.assertNotEqual(c, other)
        self.assertEqual(c, c.copy())
        self.assertNotEqual(c, c.groups)
        with self.assertRaises(TypeError):
            hash(c)

    def test_a_secret_is_not_shown(self):
        self.assertNotIn("word", repr(Conf(trunk_key="word", name="n")))
        self.assertIn("'n'", repr(Conf(trunk_key="word", name="n")))


class Templates(unittest.TestCase):
    def test_a_template_has_its_defaults(self):
        c = Conf.template("leaf-spine")
        self.assertEqual(c.groups, {
            "name": "leaf-spine", "mtu": 4096, "ecmp": "balanced", "reduce": {"groups": 64, "slots": 16384, "window": 256},
            "leaf_spine": {"leaves": 2, "spines": 2, "hosts_per_leaf": 4, "host_link": LINK, "spine_link": LINK},
        })  # fmt: skip
        self.assertEqual(set(Conf.template("rails").groups) - set(c.groups), {"gpu_nodes", "rails"})

    def test_keys_go_to_their_group_and_others_to_the_file(self):
        c = Conf.template("rails", leaves=4, unit=2, multimem=False, nic={"rate": "1Gb/s"}, core_link={"rate": "2Gb/s"}, mtu=256, name="x", planes=(1,))
        self.assertEqual(c.groups["rails"], {"leaves": 4, "spines": 4, "spine_link": LINK, "unit": 2, "core_link": {"rate": "2Gb/s"}})
        self.assertEqual(c.groups["gpu_nodes"]["nic"], {"rate": "1Gb/s", "latency": "300ns"})
        self.assertEqual((c.groups["gpu_nodes"]["multimem"], c.groups["gpu_nodes"]["planes"]), (False, (1,)))
        self.assertEqual((c["mtu"], c.name), (256, "x"))
        self.assertEqual(Conf.template("single-switch", host_link="x")["host_link"], "x")
        self.assertEqual(Conf.template("rails")["nic"], LINK)  # defaults are as they were

    def test_an_unknown_template_is_refused(self):
        with self.assertRaises(ValueError) as e:
            Conf.template("star")
        self.assertEqual(
            str(e.exception), "found the template 'star', expected one of leaf-spine, single-switch, full-mesh, gpu-node, rails"
        )


class Parse(unittest.TestCase):
    def parse(self, text, loads):
        class ConfigParseError(Exception):
            pass

        libconf = mock.Mock(loads=loads, ConfigParseError=ConfigParseError)
        with mock.patch.object(conf, "need", lambda *_: libconf):
            return Conf.parse(text, "p\n")

    def test_a_byte_order_mark_is_left_out(self):
        self.assertEqual(self.parse("\ufeffa = 1;", lambda text: {"text": text}).groups, {"text": "a = 1;"})
        self.assertEqual(self.parse("# @include x", lambda text: {"text": text}).groups, {"text": "# @include x"})

    def test_what_is_no_conf_is_refused(self):
        def raises(e):
            def loads(_text):
                raise e

            return loads

        for text, loads, says in (
            ("a\n  @include \"x\"", None, "p\\n:2: found @include, expected a file that is complete by itself"),
            ("a", raises(RecursionError()), "p\\n: found groups nested too deeply, expected a conf"),
            ("a", raises(TypeError()), "p\\n: found no conf (TypeError), expected libconfig's name = value;"),
        ):
            with self.assertRaises(ValueError) as e:
                self.parse(text, loads)
            self.assertEqual(str(e.exception), says)


if __name__ == "__main__":
    unittest.main()
