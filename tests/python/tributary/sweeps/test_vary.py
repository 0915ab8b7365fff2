# SPDX-License-Identifier: BSD-3-Clause
"""--vary: keys by their ends, values that replace others and leave the rest of the text, all combinations; and the table."""
import getopt
import os
import stat
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tributary._conf_text import Conf
from tributary.sweeps import table, vary

TEXT = """\
name = "x"; // rate = "no"
mtu: 4096
a = { rate = "400Gb/s"; latency = "3ns"; deep = { rate = 5 }; };
b = { rate = "1Gb/s"; list = [1, 2]; };
nodes = ( { name = "h0"; count = 3; } );
/* mtu = 1 */
"""


class Keys(unittest.TestCase):
    CONF = Conf(TEXT)

    def test_keys_are_those_with_one_value(self):
        self.assertEqual(vary.keys_of(self.CONF), ["a.deep.rate", "a.latency", "a.rate", "b.rate", "mtu", "name"])

    def test_a_key_goes_by_its_end(self):
        for key, path in (("mtu", "mtu"), ("latency", "a.latency"), ("deep.rate", "a.deep.rate"), ("b.rate", "b.rate")):
            self.assertEqual(vary.key_of(self.CONF, key, "c"), path)
        for key, says in (
            ("rate", '--vary: found "rate", expected one key of c, which has a.deep.rate a.rate b.rate'), ("count", '--vary: found "count", expected a key that c has: a.deep.rate a.latency a.rate b.rate mtu name'),
            ("m\n\x1b", '--vary: found "m\\n\\x1b", expected a key that c has: a.deep.rate a.latency a.rate b.rate mtu name'), ("tu", '--vary: found "tu", expected a key that c has: a.deep.rate a.latency a.rate b.rate mtu name'),
        ):  # fmt: skip
            with self.assertRaises(getopt.GetoptError) as e:
                vary.key_of(self.CONF, key, "c")
            self.assertEqual(str(e.exception), says)

    def test_words_are_keys_with_values(self):
        self.assertEqual(vary.varied_of(self.CONF, ["mtu=1,2,", "b.rate=a=b"], "c"), [("mtu", ["1", "2"]), ("b.rate", ["a=b"])])
        for words, says in (
            (["mtu"], 'found "mtu", expected KEY=VALUE,...'), (["mtu="], 'found "mtu=", expected KEY=VALUE,...'), (["=1"], 'found "=1", expected KEY=VALUE,...'),
            (["mtu=1", "mtu=2"], "found mtu twice, expected each key once"), (["mtu=1,,2"], 'found the value "" of mtu, expected one without " and \\'),
            (['name=a"b'], 'found the value "a"b" of name, expected one without " and \\'), (["name=a\\"], 'found the value "a\\" of name, expected one without " and \\'),
        ):  # fmt: skip
            with self.assertRaises(getopt.GetoptError) as e:
                vary.varied_of(self.CONF, words, "c")
            self.assertEqual(str(e.exception), "--vary: " + says)

    def test_a_text_stays_one_and_all_else_stays(self):
        self.assertEqual(vary.with_value(self.CONF, "a.rate", "1").text, TEXT.replace('"400Gb/s"', '"1"'))
        self.assertEqual(vary.with_value(self.CONF, "mtu", "9").text, TEXT.replace("mtu: 4096", "mtu: 9"))

    def test_all_combinations_the_last_fastest(self):
        made = vary.confs_of(self.CONF, [vary.Varied("mtu", ["1", "2"]), vary.Varied("b.rate", ["3 G/s", "4"])])
        self.assertEqual([name for name, _ in made], [",mtu=1,b.rate=3_G_s", ",mtu=1,b.rate=4", ",mtu=2,b.rate=3_G_s", ",mtu=2,b.rate=4"])
        self.assertEqual(made[2][1], TEXT.replace("mtu: 4096", "mtu: 2").replace('"1Gb/s"', '"3 G/s"'))


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.conf = self.top / "x.conf"
        self.conf.write_text('mtu = 1; rate = "a";\n')
        umask = os.umask(0o022)
        self.addCleanup(os.umask, umask)
        patch = mock.patch.object(vary, "conf_file", lambda word: str(self.top / word))
        patch.start()
        self.addCleanup(patch.stop)

    def make(self, *words, conf="x.conf"):
        return vary.make(str(self.top / "d"), conf, words, ["all_reduce", "-b", "4K"])

    def test_confs_and_their_list_are_written(self):
        self.assertEqual(self.make("mtu=1,2"), ["mtu"])
        d = self.top / "d"
        self.assertEqual(sorted(os.listdir(d)), ["keys", "list", "x,mtu=1.conf", "x,mtu=2.conf"])
        self.assertEqual((d / "list").read_text(), f"{d}/x,mtu=1.conf all_reduce -b 4K\n{d}/x,mtu=2.conf all_reduce -b 4K\n")
        self.assertEqual(((d / "x,mtu=2.conf").read_text(), (d / "keys").read_text()), ('mtu = 2; rate = "a";\n', "mtu\n"))
        self.assertEqual(vary.values_in(str(d / "x,mtu=2.conf"), ["mtu", "rate"]), ["2", "a"])

    def test_results_of_another_conf_are_removed(self):
        self.make("mtu=1,2")
        for i in (0, 1):
            (self.top / "d" / f"0000{i}.json").write_text("{}")
        self.make("mtu=1,2")
        self.assertEqual([(self.top / "d" / f"0000{i}.json").exists() for i in (0, 1)], [True, True])
        self.make("mtu=1,3")
        self.assertEqual([(self.top / "d" / f"0000{i}.json").exists() for i in (0, 1)], [True, False])

    def modes(self):
        return [oct(stat.S_IMODE(os.stat(self.top / "d" / n).st_mode)) for n in ("x,mtu=1.conf", "list")]

    def test_permissions_are_the_confs(self):
        self.conf.chmod(0o640)
        self.make("mtu=1")
        self.assertEqual(self.modes(), ["0o640", "0o644"])

    def test_a_secret_is_its_owners_alone(self):
        self.conf.write_text('mtu = 1; trunk_key = "s";\n')
        self.make("mtu=1")
        self.assertEqual(self.modes(), ["0o600", "0o600"])

    def test_names_that_are_several_words_are_refused(self):
        for folder, conf, says in ((f"{self.top}/a b", "x.conf", "found the directory"), (str(self.top), "x\nname.conf", "found the conf")):
            with self.assertRaisesRegex(getopt.GetoptError, says):
                vary.make(folder, conf, ["mtu=1"], [])


ROW = {"collective": "all_reduce", "algo": "ring", "size_bytes": 4096, "in_place": False, "time_us": 1.23456, "busbw_GBps": 12.0}


class Table(unittest.TestCase):
    def test_rows_of_collectives(self):
        self.assertEqual(table.cells_of({"results": [ROW, {**ROW, "in_place": True, "time_us": 2.0005}]}, ["mtu"], ["1"]), [
            ["mtu", "collective", "algorithm", "bytes", "place", "us", "busbw GB/s"], ["1", "all_reduce", "ring", "4096", "out", "1.235", "12"],
            ["1", "all_reduce", "ring", "4096", "in", "2.001", "12"]])  # fmt: skip

    def test_a_training_step_is_a_row(self):
        where = {p: {"comms_us": 1000.0 * i, "step_us": 2500.0 * i} for i, p in enumerate(("hosts", "nvswitches", "switches"), 1)}
        self.assertEqual(table.cells_of({"workload": "w", "math_us": 1500.0, **where}, [], [])[1], ["w", "1.5", "1", "2", "3", "2.5", "5", "7.5"])

    def test_what_is_not_whole_has_no_row(self):
        for result in ({"results": [{**ROW, "time_us": None}]}, {"results": [{}]}, {}):
            with self.assertRaises((KeyError, TypeError)):
                table.cells_of(result, [], [])

    def test_columns_are_below_one_head(self):
        head, other = ["a", "long name"], ["b"]
        self.assertEqual(table.aligned([head, ["wide", ""], head, ["1", "2"], other]), ["  a     long name", "  wide", "  1     2", "  b"])
        self.assertEqual(table.aligned([]), [])


if __name__ == "__main__":
    unittest.main()
