# SPDX-License-Identifier: BSD-3-Clause
"""Confs in files: what is read, written and asked of trib plan, by a libconf that only notes it; and programs that commands call."""
import os
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tributary import _cli, conf
from tributary._cli import Refused
from tributary.conf import Conf


class ConfigParseError(Exception):
    pass


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.texts = Path(folder.name), []
        self.libconf = mock.Mock(ConfigParseError=ConfigParseError, loads=self.loads, dump=lambda groups, out: out.write(f"{groups}"))
        self.groups = {"mtu": 1}
        patch = mock.patch.object(conf, "need", lambda module, package: {("libconf", "python3-libconf"): self.libconf}[module, package])
        patch.start()
        self.addCleanup(patch.stop)

    def loads(self, text):
        self.texts.append(text)
        if isinstance(self.groups, Exception):
            raise self.groups
        return self.groups

    def put(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def test_a_conf_is_loaded_by_its_path_or_name(self):
        path = self.put("a b.conf", "\ufefftext")
        self.assertEqual(Conf.load(path, ecmp="x").groups, {"mtu": 1, "name": "a-b", "ecmp": "x"})
        self.groups = {"name": "own"}
        self.assertEqual((Conf.load(str(path)).groups, Conf.load(path, name="mine").name, self.texts[0]), ({"name": "own"}, "mine", "text"))
        with mock.patch.object(conf, "shipped", lambda name: path if name == "known" else None), mock.patch.object(conf, "no_such_file", lambda name: FileNotFoundError(f"no {name}")):
            self.assertEqual(Conf.load("known").name, "own")
            with self.assertRaisesRegex(FileNotFoundError, "^no other$"):
                Conf.load("other")

    def test_what_is_no_conf_is_refused(self):
        for text, error, says in (
            ("a\n @include x", None, "t:2: found @include, expected a file that is complete by itself"), ("x", ConfigParseError("bad"), "t: found bad, expected libconfig's name = value;"),
            ("x", ConfigParseError("y" * 300), f"t: found {'y' * 200}, expected libconfig's name = value;"), ("x", RecursionError(), "t: found groups nested too deeply, expected a conf"),
            ("trunk_key", ConfigParseError("bad"), "t: found a syntax error, which is not shown, since the file has a secret, expected libconfig's name = value;"),
            ("x", KeyError("k"), "t: found no conf (KeyError), expected libconfig's name = value;"),
        ):  # fmt: skip
            self.groups = error
            with self.assertRaises(ValueError) as e:
                Conf.parse(text, "t")
            self.assertEqual(str(e.exception), says)
        self.groups = {}
        Conf.parse("\ufeffa @include\n#x")  # not at the beginning of a line
        self.assertEqual(self.texts[-1], "a @include\n#x")

    def test_a_conf_is_written_for_its_owner_where_it_has_a_secret(self):
        umask = os.umask(0o022)
        self.addCleanup(os.umask, umask)
        for groups, mode in (({"mtu": 1}, 0o644), ({"m": ({"trunk_key": "s"},)}, 0o600)):
            to = self.folder / f"o{mode}"
            self.assertEqual(Conf(groups).write(str(to)), to)
            self.assertEqual((stat.S_IMODE(os.stat(to).st_mode), to.read_text(encoding="utf-8")), (mode, str(groups)))
        self.assertEqual(Conf(name="x").write_into(self.folder), self.folder / "x.conf")
        with self.assertRaisesRegex(ValueError, "^name: found"):
            Conf(name="a/b").write_into(self.folder)

    def test_a_plan_is_of_the_conf_as_it_is(self):
        def output(words):
            asked.append((words[:-1], os.path.basename(words[-1]), Path(words[-1]).read_text(encoding="utf-8")))
            return "plan"

        asked = []
        with mock.patch.object(conf, "output", output):
            self.assertEqual(Conf(name="x").plan("--svg"), "plan")
        self.assertEqual(asked, [(["plan", "--svg"], "x.conf", "{'name': 'x'}")])

    def test_the_last_dot_ends_a_group(self):
        c = Conf({"a": {"b": {}}})
        c["a.b.c"] = [1, [2]]
        self.assertEqual(c.groups, {"a": {"b": {"c": (1, [2])}}})


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        patch = mock.patch.object(_cli, "trib", lambda: self.top / "scripts" / "trib")
        patch.start()
        self.addCleanup(patch.stop)
        patch = mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("TRIB_BUILD", None)

    def put(self, path, text="#!/bin/sh\n", mode=0o755):
        at = self.top / path
        at.parent.mkdir(exist_ok=True)
        at.write_text(text, encoding="utf-8")
        at.chmod(mode)
        return str(at)

    def test_a_program_is_where_it_was_built_or_installed(self):
        with self.assertRaises(Refused) as e:
            _cli.program("p")
        self.assertEqual(str(e.exception), f"found no program p beside {self.top}/scripts or in its build folder; run make first")
        for path in ("build/p", "scripts/p"):
            at = self.put(path)
            self.assertEqual(_cli.program("p"), at)
        os.environ["TRIB_BUILD"] = str(self.top / "other")
        self.assertEqual(_cli.program("p"), at)
        at = self.put("other/p")
        self.assertEqual(_cli.program("p"), at)
        os.chmod(at, 0o644)
        self.assertEqual(_cli.program("p"), str(self.top / "scripts" / "p"))

    def test_the_version_is_what_trib_plan_says(self):
        at, calls = self.put("build/trib-plan"), []

        def ran(words, **how):
            calls.append((words, how))
            return subprocess.CompletedProcess(words, code, "trib-plan (Tributary) 1.2.3\n", " no \n")

        with mock.patch.object(subprocess, "run", ran):
            code = 0
            self.assertEqual((_cli.version(), calls), ("1.2.3", [([at, "--version"], {"capture_output": True, "text": True})]))
            code = 1
            with self.assertRaisesRegex(Refused, "^no$"):
                _cli.version()


if __name__ == "__main__":
    unittest.main()
